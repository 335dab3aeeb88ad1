"""Copies a stored pipeline as of its last commit, while ticks may run.

Files of a Delta table never change: a copy has the log up to the versions that a commit names, and
the files that it speaks of. Where they are removed meanwhile, a later commit is there to be copied.
A copy is whole, verified, and in its place, or it is not there.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from hydro_core.errors import DataError
from hydro_core.files.transfer import Put, put
from hydro_core.machine.delta_path import refuse_path
from hydro_core.spark.pipeline.comparison import COMPARED
from hydro_core.spark.pipeline.rework import STAGING
from hydro_core.spark.pipeline.verify import Verified, verify
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger, state_error
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydro_core.storage.delta import data_files, opened_table
from hydro_core.storage.places import empty, entries_in, files_in
from hydro_core.storage.remote import DataPlace, name_below

_ATTEMPTS = 5
_NOT_COPIED = ("state", "outputs", LEDGER, LOCK_FILE, STAGING, COMPARED, PUBLISHED)
"""What is copied table by table, and what belongs to a process that runs."""
_LOG, _CHECKPOINT = "_delta_log", "_last_checkpoint"

OnTable = Callable[[str], None]
"""Called with the name of each table before it is copied."""


def copy_pipeline(directory: DataPlace, to: Path, step: OnTable = lambda _: None) -> Verified:
    """Copies the pipeline in a directory to another, which is not there or is empty.

    Returns:
        What the copy has, which was read as a whole.

    Raises:
        DataError: there is nothing to copy, or it is broken (code `state`); the other directory is
            in use, or no place for it (`config`).
    """
    directory, to = directory.absolute(), to.absolute()
    _refuse_place(directory, to)
    to.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".hydrotick-", dir=to.parent))
    try:
        found = copy_into(directory, scratch / to.name, step)
        (scratch / to.name).rename(to)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return found


def _refuse_place(directory: DataPlace, to: Path) -> None:
    refuse_path(to)
    problem = None
    if directory == to or directory in to.parents:
        problem = f"{to} is within the pipeline that is to be copied"
    elif to.exists() and not (to.is_dir() and not any(to.iterdir())):
        problem = f"{to} is there already"
    if problem:
        raise DataError.of("config", problem, help="name a directory that is not there")


def copy_into(
    directory: DataPlace,
    to: DataPlace,
    step: OnTable = lambda _: None,
    put: Put = put,
) -> Verified:
    """Copies the pipeline in a directory to a place that is nobody else's, where nothing is.

    Args:
        directory: the pipeline's.
        to: where the copy is made; what is there, left by an attempt before, is removed.
        step: called with the name of each table.
        put: copies a file.

    Returns:
        What the copy has, which was read as a whole: it is of one commit.

    Raises:
        DataError: there is nothing to copy, or it is broken (code `state`).
    """
    problem, sequence = "", -1
    for _ in range(_ATTEMPTS):
        ledger = Ledger(directory)
        if ledger.last is None:
            raise state_error(f"no tick was committed in {directory}", "run some ticks first")
        if problem and ledger.last.sequence == sequence:
            break
        empty(to)
        _make(to, directory)
        sequence = ledger.last.sequence
        for name, version in ledger.last.versions.items():
            step(name)
            copy_table(directory / name, to / name, version, put)
        copy_table(directory / LEDGER, to / LEDGER, ledger.version, put)
        for file in others_in(directory):
            target = to / name_below(file, directory)
            target.parent.mkdir(parents=True, exist_ok=True)
            put(file, target)
        found = verify(to)
        if not found.problems:
            return found
        problem = found.problems[0].replace(str(to), str(directory))
    raise state_error(
        f"the pipeline in {directory} cannot be copied: {problem}",
        "restore it from an older copy, or start the flow over; "
        "`hydrotick status --verify` tells all that is wrong",
    )


def _make(to: DataPlace, like: DataPlace) -> None:
    if isinstance(to, Path):
        # Of a pipeline that may only be read, a copy is written.
        rights = like.stat().st_mode | stat.S_IRWXU if isinstance(like, Path) else 0o777
        to.mkdir(mode=rights)


def copy_table(table: DataPlace, to: DataPlace, version: int, put: Put = put) -> None:
    """Copies a Delta table up to a version: its log, and those files that the log adds and that are
    there.
    """
    (to / _LOG).mkdir(parents=True)
    names = _held(table, version)
    # What is lost here, or while it is copied, is found when the copy is verified.
    with contextlib.suppress(FileNotFoundError):
        for file in _log_until(table, version):
            put(file, to / _LOG / file.name)
            if file.suffix == ".json":
                names |= set(_added(file))
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            put(table / name, to / name, fixed=True)


def _held(table: DataPlace, version: int) -> set[str]:
    """The files of a version; those that earlier ones held as well, the log tells."""
    try:
        files = data_files(opened_table(table, version), "path")
    except DeltaError:
        return set()
    return {str(file["path"]) for file in files}


def _log_until(table: DataPlace, version: int) -> Iterator[DataPlace]:
    for file in sorted(entries_in(table / _LOG)):
        number = file.name.partition(".")[0]
        if file.name == _CHECKPOINT:
            number = str(json.loads(file.read_bytes())["version"])
        if number.isdecimal() and int(number) <= version:
            yield file


def _added(entry: DataPlace) -> Iterator[str]:
    """The files that an entry of a log adds."""
    for line in entry.read_bytes().splitlines():
        action = json.loads(line)
        if "add" in action:
            yield unquote(action["add"]["path"])


def others_in(directory: DataPlace) -> Iterator[DataPlace]:
    """The files of a pipeline that are of no table: deployments, lists of what has landed."""
    for place in sorted(entries_in(directory)):
        if place.name not in _NOT_COPIED and not place.name.startswith("."):
            yield from sorted(files_in(place)) if place.is_dir() else [place]
