"""A consistent copy of a stored pipeline, and a pipeline that is restored from one.

A pipeline is files that are only added, and a ledger: what the ledger does not name has not
happened. So the ledger is copied first, then the logs of the tables, then all else, while ticks
run. The tables of such a copy are at most ahead of its ledger, as after a kill, and the next tick
sets them back. Files that are removed meanwhile (`compact`, `forget`) would be missing: the copy
is read as a whole, and made again where it is not whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from hydro_core.spark.pipeline.comparison import COMPARED
from hydro_core.spark.pipeline.rework import STAGING
from hydro_core.spark.pipeline.verify import VerifyReport, verify
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger, replace_rows, state_error
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydro_core.storage.places import carry, empty, entries_in, files_in, pieces_of, remove_tree
from hydro_core.storage.remote import DataPlace, RemotePath, name_below

_ATTEMPTS = 5
_NOT_COPIED = (LOCK_FILE, STAGING, COMPARED, PUBLISHED)
"""What belongs to a process that runs, and tables that the next tick derives again."""
_LOG, _CHECKPOINT = "_delta_log", "_last_checkpoint"
_STAGED = ".restored"

FileHashes = Mapping[str, str]
"""The hash of each file of a copy, by its name below the copy."""


def copy_pipeline(directory: DataPlace, to: DataPlace) -> VerifyReport:
    """Copies a pipeline to a place of its own, which is emptied; gives what the copy holds.

    Raises:
        DataError: no tick is committed, or the pipeline is broken (code `state`).
    """
    problem = ""
    for _ in range(_ATTEMPTS):
        if Ledger(directory).last is None:
            raise state_error(f"no tick was committed in {directory}", "run some ticks first")
        empty(to)
        for file in _ledger_first(directory):
            # A file that is gone is missed when the copy is verified.
            with contextlib.suppress(FileNotFoundError):
                _carry_below(file, directory, to)
        copied = verify(to)
        if not copied.problems:
            return copied
        problem = copied.problems[0].replace(str(to), str(directory))
    raise state_error(
        f"the pipeline in {directory} cannot be copied: {problem}",
        "restore it from an older copy, or start the flow over; "
        "`hydrotick status --verify` tells all that is wrong",
    )


def hashes_of(copy: DataPlace) -> FileHashes:
    """The hashes of all files of a copy."""
    return {_name(file, copy): _hash(file) for file in files_in(copy)}


def damaged_files(copy: DataPlace, hashes: FileHashes) -> list[str]:
    """The files of a copy that are missing, or have another hash than they had."""
    found = hashes_of(copy)
    return [str(copy / name) for name, known in hashes.items() if found.get(name) != known]


def restore_pipeline(copy: DataPlace, hashes: FileHashes, to: DataPlace) -> None:
    """Replaces a pipeline by a copy; its writer's lock is held meanwhile.

    The ledger goes first and comes last. A process that ends in between leaves a pipeline without a
    ledger, of which no tick runs, until it is restored again.

    Raises:
        DataError: another writer is at work, or the copy is damaged (code `state`); the pipeline is
            as it was.
    """
    to.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(to, Ledger(to).fence)
    with lock.at_work("a restoration"):
        if isinstance(to, RemotePath):
            _restore_in_store(copy, to, lock)
        else:
            _restore_in_directory(copy, hashes, to)


def _restore_in_directory(copy: DataPlace, hashes: FileHashes, to: Path) -> None:
    staged = to.with_name(f".{to.name}{_STAGED}")
    shutil.rmtree(staged, ignore_errors=True)
    for file in files_in(copy):
        _carry_below(file, copy, staged)
    if damaged := damaged_files(staged, hashes):
        raise state_error(f"{damaged[0]} is not what was copied", "look at the disk; try it again")
    if (to / LEDGER).exists():
        # In one step: half of a ledger would be a broken one.
        (to / LEDGER).rename(staged / f".{LEDGER}")
    for place in [place for place in to.iterdir() if place.name != LOCK_FILE]:
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    for place in [place for place in staged.iterdir() if place.name.lstrip(".") != LEDGER]:
        place.rename(to / place.name)
    (staged / LEDGER).rename(to / LEDGER)
    shutil.rmtree(staged)


def _restore_in_store(copy: DataPlace, to: RemotePath, lock: WriterLock) -> None:
    lock.refuse_lost()
    remove_tree(to / LEDGER)
    to.store.delete([file.key for file in to.files() if file != to / LOCK_FILE])
    for place in _all_but(copy, LEDGER):
        for file in files_in(place) if place.is_dir() else [place]:
            _carry_below(file, copy, to)
    lock.refuse_lost()
    # The log of a ledger in a store has the number of its writer, which is this store's.
    Ledger(to).create()
    replace_rows(to, Ledger(copy).commits(since=-1), lock.number, lock.doubts)


def _ledger_first(directory: DataPlace) -> Iterator[DataPlace]:
    """The files of a pipeline, each after those that may name it; a list of files is made when the
    files before it have been taken.
    """
    yield from _sorted(directory / LEDGER / _LOG)
    yield from (f for f in _sorted(directory / LEDGER) if not _is_log(f, directory))
    rest = [place for place in _all_but(directory, LEDGER, *_NOT_COPIED) if place.name[0] != "."]
    for of_logs in (True, False):
        for place in rest:
            files = _sorted(place) if place.is_dir() else [place]
            yield from (file for file in files if _is_log(file, directory) == of_logs)


def _sorted(folder: DataPlace) -> list[DataPlace]:
    # The hint at the last checkpoint may be of a later one; Delta does without it.
    return sorted(file for file in files_in(folder) if file.name != _CHECKPOINT)


def _is_log(file: DataPlace, directory: DataPlace) -> bool:
    return _LOG in PurePath(_name(file, directory)).parts


def _all_but(folder: DataPlace, *names: str) -> Iterable[DataPlace]:
    return [place for place in entries_in(folder) if place.name not in names]


def _carry_below(file: DataPlace, folder: DataPlace, to: DataPlace) -> None:
    target = to / _name(file, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    carry(file, target)


def _name(file: DataPlace, folder: DataPlace) -> str:
    return PurePath(name_below(file, folder)).as_posix()


def _hash(file: DataPlace) -> str:
    digest = hashlib.sha256()
    for piece in pieces_of(file):
        digest.update(piece)
    return digest.hexdigest()
