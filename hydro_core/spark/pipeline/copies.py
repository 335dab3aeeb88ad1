"""Copies of stored pipelines, their verification, and pipelines restored from copies."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from hydro_core.artifact.deployment import deployment_numbers, name_at, why_unreadable
from hydro_core.errors import DataError
from hydro_core.files.parquet import files_as_dataset
from hydro_core.machine.faults import raise_outage
from hydro_core.spark.pipeline.publishing import compared
from hydro_core.spark.pipeline.rework import COMPARED, STAGING
from hydro_core.spark.store.delta.actions import summed_to
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger, state_error
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.spark.store.ledger.records import Commit, programs_of
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydro_core.spark.store.schema import OUTPUT_TICK, TableSpec, recorded_table
from hydro_core.storage.delta import data_files, is_table, opened_table
from hydro_core.storage.places import carry, empty, entries_in, files_in, pieces_of, remove_tree
from hydro_core.storage.remote import DataPlace, name_below

# The directory alone is asked, and no lock is taken: ticks may run, so what they commit makes
# `verify` look again.


_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at, and what is wrong."""

    last: int
    """The last committed tick; -1 where there is none."""
    tables: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    problems: tuple[str, ...] = ()
    """What is missing or differs from what the ledger says, each with its place."""
    notes: tuple[str, ...] = ()
    """What is as it may be, but worth a word."""


Measure = Callable[[pa.Table, TableSpec], tuple[int, int]]
"""The number and the sum of the hashes of some rows of a table, modulo 2**64."""


def verify(directory: DataPlace, measure: Measure | None = None) -> VerifyReport:
    """Reads every file of the pipeline in a directory, and compares it with the ledger.

    `measure`: how the hash sums of state tables came about that the ledger keeps; with it, values
    that were changed are found, too.
    """
    found = _verify(directory, measure)
    for _ in range(_ATTEMPTS):
        # Files that were replaced in the meantime may be gone: what is there now counts.
        if not found.problems or _last(directory) == found.last:
            break
        found = _verify(directory, measure)
    return found


def _last(directory: DataPlace) -> int | None:
    try:
        commit = Ledger(directory).last
    except DataError:
        return None
    return -1 if commit is None else commit.last


def _verify(directory: DataPlace, measure: Measure | None) -> VerifyReport:
    ledger = Ledger(directory)
    if not ledger.exists:
        left = [p for part in ("state", "outputs") for p in entries_in(directory / part)]
        lost = f"{directory} has tables but no ledger: {', '.join(p.name for p in left)}"
        return VerifyReport(-1, problems=(lost,) if left else ())
    try:
        commits = ledger.commits(since=-1)
    except DataError as error:
        return VerifyReport(-1, problems=(error.diagnostics[0].message,))
    if not commits:
        return VerifyReport(-1)
    last = max(commits, key=lambda commit: commit.sequence)
    owners = _owners(commits)
    problems, notes = [*_gaps(directory, commits, owners)], list[str]()
    counted: Counter[str] = Counter(tables=len(last.versions))
    problems += _deployments(directory, commits)
    for name in last.versions:
        table = _Table(directory, name, last, measure)
        problems += table.check(_whole(owners))
        notes += table.notes
        counted.update(table.counted)
    wrong, said = compared(directory, last) if not problems else ([], [])
    problems, notes = [*problems, *wrong], [*notes, *said]
    counts = {what: counted[what] for what in ("tables", "files", "rows", "bytes")}
    return VerifyReport(last.last, **counts, problems=tuple(problems), notes=tuple(notes))


def refuse_damaged(directory: DataPlace, table: str, measure: Measure | None = None) -> None:
    """Refuses a table of a pipeline that has not what the ledger says was written.

    Of an output no more is read than the ticks in files of several: the log has the rows of each
    file, and whoever reads a file finds damage in it. State is read whole, as its sums demand.

    Raises:
        DataError: what it lacks (code `state`).
    """
    problems: Sequence[str] = ()
    for _ in range(_ATTEMPTS):
        commits = Ledger(directory).commits(since=-1)
        last = max(commits, key=lambda commit: commit.sequence)
        checked = _Table(directory, table, last, measure, by_log=True)
        problems = list(checked.check(_whole(_owners(commits))))
        if not problems or _last(directory) == last.last:
            break
    for problem in problems:
        raise state_error(
            problem, "restore it from a copy; `status --verify` says all that is lost"
        )


def _deployments(directory: DataPlace, commits: Iterable[Commit]) -> Iterator[str]:
    """Why deployments cannot be read that have served and were not given up."""
    served = {commit.plan for commit in programs_of(commits)}
    for number in deployment_numbers(directory):
        name = name_at(directory, number)
        why = why_unreadable(directory, number) if name is None or name in served else ""
        if why:
            yield why


def _owners(commits: Iterable[Commit]) -> list[Commit | None]:
    """Of each committed tick the commit that made it last; None where the ledger has none."""
    owners: list[Commit | None] = []
    for commit in commits:
        del owners[commit.first :]
        owners += [None] * (commit.first - len(owners))
        owners += [commit] * len(commit.ticks)
    return owners


def _whole(owners: Iterable[Commit | None]) -> list[Commit]:
    """The commits all of whose ticks count: of the others, the ledger has no rows of each tick."""
    counted = Counter(commit.sequence for commit in owners if commit is not None)
    found = {commit.sequence: commit for commit in owners if commit is not None}
    return [found[n] for n, ticks in counted.items() if ticks == len(found[n].ticks)]


def _gaps(
    directory: DataPlace, commits: Sequence[Commit], owners: Sequence[Commit | None]
) -> Iterator[str]:
    """Commits and ticks that the ledger should have and has not."""
    place = directory / LEDGER
    there = {commit.sequence for commit in commits}
    missing = sorted(set(range(max(there) + 1)) - there)
    if missing:
        yield f"the ledger {place} has lost {_listed('row', missing)}"
    unknown = [tick for tick, commit in enumerate(owners) if commit is None]
    if unknown and not missing:
        yield f"the ledger {place} has no commit of {_listed('tick', unknown)}"


class _Table:
    """One table of a pipeline, as its log and its files are."""

    def __init__(
        self,
        directory: DataPlace,
        name: str,
        commit: Commit,
        measure: Measure | None,
        *,
        by_log: bool = False,
    ) -> None:
        self.path, self._name = directory / name, name
        self._record, self._last = commit.tables.get(name, {}), commit.last
        self._version = commit.versions[name]
        self._spec = recorded_table(name, self._record) if self._record else None
        self._tick = OUTPUT_TICK if self._spec is None else self._spec.tick
        known = commit.checks.get("tables", {}).get(name)
        self._has_facts = known is not None
        self._measure = measure if known and self._record else None
        self._by_log = by_log and (self._spec is None or self._spec.role == "output")
        self._known, self._keys = int(known["keys"]) if known else 0, 0
        self.counted: Counter[str] = Counter()
        self.notes: list[str] = []

    def check(self, commits: Iterable[Commit]) -> Iterator[str]:
        """What is wrong with the table at its version, whose rows these commits added."""
        version = self._version
        if not is_table(self.path):
            yield f"the table {self.path} is missing; the ledger has it at version {version}"
            return
        try:
            newest = opened_table(self.path).version()
            if newest < version:
                yield f"the table {self.path} ends at version {newest}, the ledger at {version}"
                return
            table = opened_table(self.path, version)
            least, most = f"min.{self._tick}", f"max.{self._tick}"
            files = data_files(table, "path", "size_bytes", "num_records", least, most)
            firsts = (file[least] for file in files)
            summed = summed_to(table, firsts) if self._forgets else -1
        except DeltaError as error:
            raise_outage(error, str(self.path))
            yield f"the table {self.path} cannot be read at version {version}: {_first_line(error)}"
            return
        if newest > version:
            self.notes.append(
                f"the table {self.path} is ahead of the ledger, at version {newest}: something "
                "is being written, or was cut off and is set back by the next tick"
            )
        ticks: Counter[int] = Counter()
        whole = True
        for file in files:
            problem = self._file(file, ticks)
            if problem is not None:
                whole = False
                yield problem
        if whole:
            wrong = list(self._rows(ticks, commits, summed))
            yield from wrong
            if self._measure is not None and self._keys % 2**64 != self._known and not wrong:
                yield f"the table {self.path} has other values than those that were committed"

    @property
    def _forgets(self) -> bool:
        """Whether rows of its first ticks may be gone: those of an output lie at their ticks, and
        of state that leaves by its time the checks keep nothing.
        """
        if self._spec is None:
            return True
        return self._spec.role == "state" and (self._spec.is_log or not self._has_facts)

    def _file(self, file: Mapping[str, Any], ticks: Counter[int]) -> str | None:
        """What is wrong with a file; where nothing is, its rows are added to those of the ticks."""
        path = self.path / file["path"]
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return f"the table {self.path} has lost its file {path.name}"
        if size != file["size_bytes"]:
            return f"the file {path} has {size:,} bytes, its table says {file['size_bytes']:,}"
        try:
            found = self._ticks(path, file)
        except (OSError, pa.ArrowException, KeyError) as error:
            raise_outage(error, str(path))
            return f"the file {path} cannot be read: {_first_line(error)}"
        rows, known = found.total(), file["num_records"]
        if known is not None and rows != known:
            return f"the file {path} has {rows:,} rows, its table says {known:,}"
        ticks.update(found)
        self.counted.update(files=1, rows=rows, bytes=size)
        return None

    def _ticks(self, path: DataPlace, file: Mapping[str, Any]) -> Counter[int]:
        """How many rows of each tick a file has; all its columns are read, unless the log is asked
        and says that there is one tick.
        """
        import numpy as np

        least, rows = file[f"min.{self._tick}"], file["num_records"]
        if self._by_log and None not in (least, rows) and least == file[f"max.{self._tick}"]:
            return Counter({least: rows})
        spec = self._spec if self._measure else None
        schema = None if spec is None else spec.arrow_schema
        data = files_as_dataset([path], schema)
        found: Counter[int] = Counter()
        for batch in data.to_batches(columns=[self._tick] if self._by_log else None):
            ticks = batch.column(self._tick).fill_null(-1).to_numpy(zero_copy_only=False)
            numbers, counts = np.unique(ticks, return_counts=True)
            found.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
            if self._measure is not None and spec is not None:
                self._keys += self._measure(pa.Table.from_batches([batch]), spec)[1]
        return found

    def _rows(self, ticks: Counter[int], commits: Iterable[Commit], summed: int) -> Iterator[str]:
        """Where the table has not the rows that commits have added."""
        for commit in commits:
            known = commit.rows.get(self._name)
            rows = sum(ticks[tick] for tick in commit.ticks)
            if known is not None and self._counts(commit, summed) and rows != known:
                which = _listed("tick", commit.ticks)
                yield f"the table {self.path} has {rows:,} rows of {which}, the ledger {known:,}"
        later = sum(rows for tick, rows in ticks.items() if tick > self._last)
        if later:
            yield f"the table {self.path} has {later:,} rows of ticks that are not committed"

    def _counts(self, commit: Commit, summed: int) -> bool:
        """Whether the table still has the rows that the commit added, and those of its ticks."""
        if commit.replaces(self._name):
            return commit.last == self._last
        # Of a log that was summed up, only what came later can be told apart.
        return commit.first > summed


def _listed(what: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    return f"{what}s {numbers[0]} to {numbers[-1]}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


# A pipeline is files that are only added, and a ledger that names what counts. So the ledger is
# copied first, then the logs of the tables, then all else, while ticks run: the copy is at most
# ahead of its ledger, as after a kill. What `compact` or `forget` removes meanwhile is missed when
# the copy is read as a whole, and the copy is made again.


_NOT_COPIED = (LOCK_FILE, STAGING, COMPARED, PUBLISHED)
"""What belongs to a process that runs, and tables that the next tick derives again."""
_LOG, _CHECKPOINT = "_delta_log", "_last_checkpoint"

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

    The ledger goes first and comes last, with all its rows at once. A process that ends in between
    leaves a pipeline without a ledger, of which no tick runs, until it is restored again.

    Raises:
        DataError: another writer is at work, or what was restored is damaged (code `state`).
    """
    to.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(to)
    with ledger.lock.at_work("a restoration"):
        ledger.lock.refuse_lost()
        if isinstance(to, Path) and (to / LEDGER).exists():
            # In one step: half of a ledger would be a broken one.
            (to / LEDGER).rename(to / f".{LEDGER}")
        remove_tree(to / LEDGER, ignore_errors=isinstance(to, Path))
        for place in _all_but(to, LOCK_FILE):
            remove_tree(place) if place.is_dir() else place.unlink()
        for place in _all_but(copy, LEDGER):
            for file in files_in(place) if place.is_dir() else [place]:
                _carry_below(file, copy, to)
        known = {name: one for name, one in hashes.items() if not name.startswith(f"{LEDGER}/")}
        if isinstance(to, Path) and (damaged := damaged_files(to, known)):
            raise state_error(f"{damaged[0]} is not what was copied", "look at the disk; try again")
        ledger.lock.refuse_lost()
        # The log of a ledger in a store has the number of its writer, which is this store's.
        ledger.create(Ledger(copy).commits(since=-1))


def _ledger_first(directory: DataPlace) -> Iterator[DataPlace]:
    """The files of a pipeline, each after those that may name it; a list of files is made when the
    files before it have been taken.
    """
    for of_ledger, of_log in product((True, False), repeat=2):
        rest = [p for p in _all_but(directory, LEDGER, *_NOT_COPIED) if p.name[0] != "."]
        for place in [directory / LEDGER] if of_ledger else rest:
            for file in sorted(files_in(place)) if place.is_dir() else [place]:
                is_of_log = _LOG in PurePath(_name(file, directory)).parts
                # The hint at the last checkpoint may be of a later one; Delta does without it.
                if is_of_log == of_log and file.name != _CHECKPOINT:
                    yield file


def _all_but(folder: DataPlace, *names: str) -> list[DataPlace]:
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
