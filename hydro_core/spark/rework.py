"""Ticks computed again beside the tables that serve, then put in their place by one commit.

A correction, a restated output and a state that a new program needs have this in common: a past
that is not the one that serves has to be computed, however long that takes, and nobody may see half
of it. So it grows in a pipeline of its own, below the directory of the one that serves, which
starts with the tables as they were before the first of those ticks. Files are shared, not copied.
At the end each table takes its files over with one commit of its log, and a row of the ledger
makes all of them count. What ends a process before that row leaves the past as it was: the tables
are set back like those of any tick, and the directory is removed by whoever comes next.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from hydro_core.errors import DataError
from hydro_core.plan.tick_plan import Mode
from hydro_core.spark.ledger import Commit, InputRead, Ledger, state_error
from hydro_core.spark.pipeline import Pipeline
from hydro_core.spark.pipeline_tables import refuse_another_program
from hydro_core.spark.store import Step, Store
from hydro_core.spark.store_table import DataFile, StoredTable

BESIDE = "_beside"
"""The directory, within a pipeline's, in which ticks are computed again."""

Facts = Callable[[Store, int], Mapping[str, Any]]
"""What the ledger keeps of tables that end with a tick, for the checks of the next one."""


def _no_facts(_store: Store, _tick: int) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Base:
    """Where the tables of a pipeline can be had as they were after a tick; -1: before the first."""

    tick: int
    files: Mapping[str, tuple[DataFile, ...]]
    """Of each table the files that hold its rows, and maybe rows of later ticks."""
    commit: Commit | None
    """The commit that ended with the tick, where one did."""
    summed_to: Mapping[str, int] = field(default_factory=dict)
    """Of each log the tick up to which its rows may be one."""


NOTHING = Base(-1, {}, None)


def base_before(store: Store, ledger: Ledger, first: int) -> Base:
    """The latest tick before `first` as of which all tables can still be had.

    Rows carry their ticks, so mostly it is the tick before. A table that holds its last tick only,
    or a log that was summed up since, is had from an earlier version, as far as its files are
    there; else there is nothing to go on from.
    """
    now = ledger.last
    if now is None or first == 0:
        return NOTHING
    tables = store.tables
    summed_to = {name: table.summed_to() for name, table in tables.items() if table.spec.is_log}
    if all(_tells(table, first - 1, now.last, summed_to) for table in tables.values()):
        files = {name: tuple(table.files()) for name, table in tables.items()}
        return Base(first - 1, files, _ending_with(ledger, first - 1), summed_to)
    for commit in _standing(ledger.commits()):
        if commit.last < first and commit.plan == now.plan:
            held = _held_at(store, commit)
            if held is not None:
                return Base(commit.last, held, commit, summed_to)
    return NOTHING


def _standing(commits: Sequence[Commit]) -> Iterator[Commit]:
    """The commits whose ticks were not made again or taken back since, the latest first."""
    since = math.inf
    for commit in reversed(commits):
        if commit.ticks and commit.last < since:
            yield commit
        since = min(since, commit.first)


def _tells(table: StoredTable, tick: int, last: int, summed_to: Mapping[str, int]) -> bool:
    """Whether the table's rows tell what it held after the tick."""
    if table.spec.mode is Mode.LAST:
        return tick == last
    return summed_to.get(table.spec.name, -1) <= tick


def _ending_with(ledger: Ledger, tick: int) -> Commit | None:
    commit = ledger.commit_of(tick)
    return commit if commit is not None and commit.last == tick else None


def _held_at(store: Store, commit: Commit) -> Mapping[str, tuple[DataFile, ...]] | None:
    """The files of the tables at a commit; None where some are not there any more."""
    held = {}
    for name, table in store.tables.items():
        if name not in commit.versions:
            return None
        try:
            files = table.files_at(commit.versions[name])
        except DataError:
            return None
        if not all(file.path.exists() for file in files):
            return None
        held[name] = tuple(files)
    return held


class Rework:
    """The ticks from `first` on of a pipeline, computed again beside its tables.

    It holds the pipeline's lock until `replace` or `abandon`; as a context manager it is abandoned
    unless it was taken over.

    Args:
        pipeline: the one that serves; it goes on serving readers.
        first: the first tick to compute again.
        facts: gives what the ledger keeps of the tables after a tick that ended no commit.

    Raises:
        DataError: the tick is not committed, or another writer is at work (code `state`).
    """

    def __init__(self, pipeline: Pipeline, first: int, facts: Facts = _no_facts) -> None:
        self.pipeline = pipeline
        pipeline.lock.acquire()
        try:
            self._now = _committed(pipeline, first)
            pipeline.store.recover(self._now)
            base = base_before(pipeline.store, pipeline.ledger, first)
            self.first = base.tick + 1
            """The tick that runs first: `first`, or an earlier one where its past is not there."""
            self.last = self._now.last
            """The tick that has to be reached."""
            directory = pipeline.directory / BESIDE
            shutil.rmtree(directory, ignore_errors=True)
            self.beside = Pipeline(directory, pipeline.plan, pipeline.settings, pipeline.spark)
            """The pipeline that runs the ticks."""
            begin(self.beside.store, self.beside.ledger, base, pipeline.fingerprint, facts)
        except BaseException:
            pipeline.lock.release()
            raise
        self._started = datetime.now(UTC)
        self._decided = False

    def __enter__(self) -> Rework:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abandon()

    def replace(self) -> Commit:
        """Puts the tables beside in the place of those that serve, by one row of the ledger.

        Raises:
            DataError: another writer was faster (code `state`); then nothing of this counts.
        """
        made = self.beside.ledger.refresh()
        if self._decided or made is None or made.last < self.last:
            raise RuntimeError("what is taken over is complete, and taken over once")
        pipeline, now = self.pipeline, self._now
        versions = take_over(pipeline.store, self.beside.store, pipeline.step)
        commits = self.beside.ledger.commits(since=self.first)
        commit = replace(
            made,
            sequence=now.sequence + 1,
            first=self.first,
            versions=versions,
            rows=_added_up(commits),
            inputs=_read_in_all(commits),
            start=commits[0].start,
            started=self._started,
            committed=datetime.now(UTC),
            tables={name: t.spec.record() for name, t in pipeline.store.tables.items()},
        )
        pipeline.ledger.append(commit)
        pipeline.step("ledger")
        self._end()
        return commit

    def abandon(self) -> None:
        """Gives the results up; the pipeline is as it was."""
        if not self._decided:
            self.pipeline.store.recover(self._now)
            self._end()

    def _end(self) -> None:
        self._decided = True
        shutil.rmtree(self.beside.directory, ignore_errors=True)
        self.pipeline.lock.release()


def _committed(pipeline: Pipeline, first: int) -> Commit:
    now = pipeline.ledger.refresh()
    if now is None or not 0 <= first <= now.last:
        there = "no tick is" if now is None or now.last < 0 else f"ticks 0 to {now.last} are"
        raise state_error(
            f"tick {first} cannot be computed again: {there} committed",
            "name a committed tick; `hydrotick status` tells which there are",
        )
    refuse_another_program(pipeline.directory, pipeline.fingerprint, pipeline.tables, now)
    return now


def _added_up(commits: Iterable[Commit]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for commit in commits:
        found.update(commit.rows)
    return dict(found)


def _read_in_all(commits: Iterable[Commit]) -> tuple[InputRead, ...]:
    """What was read of each input: as it was read last, and all rows."""
    found: dict[str, InputRead] = {}
    for read in (read for commit in commits for read in commit.inputs):
        before = found.get(read.name)
        rows = (read.rows or 0) + ((before.rows or 0) if before else 0)
        found[read.name] = replace(read, rows=rows)
    return tuple(found.values())


def begin(beside: Store, ledger: Ledger, base: Base, plan: str, facts: Facts) -> None:
    """Makes the tables and the ledger beside: as they were after the tick of the base."""
    ledger.create()
    if base.tick < 0:
        return
    for name, table in beside.tables.items():
        table.create()
        serving = beside.directory.parent / name
        linked = (_up_to(base.tick, file, table, serving) for file in base.files[name])
        summed_to = min(base.summed_to.get(name, -1), base.tick)
        table.hold((file for file in linked if file is not None), summed_to=summed_to)
    moment = datetime.now(UTC)
    ledger.append(
        Commit(
            sequence=0,
            first=0,
            last=base.tick,
            plan=plan,
            versions={name: table.version for name, table in beside.tables.items()},
            rows={},
            started=moment,
            committed=moment,
            checks=base.commit.checks if base.commit else facts(beside, base.tick),
            tables={name: table.spec.record() for name, table in beside.tables.items()},
        )
    )


def _up_to(tick: int, file: DataFile, table: StoredTable, serving: Path) -> DataFile | None:
    """The rows of a file up to a tick, below the table: the very file, if it has no others."""
    if not file.may_hold(0, tick):
        return None
    here = table.path / file.path.relative_to(serving)
    here.parent.mkdir(parents=True, exist_ok=True)
    if file.last is not None and file.last <= tick:
        _link(file.path, here)
        return replace(file, path=here)
    here = here.with_name(f"{uuid.uuid4()}.parquet")
    column = table.spec.tick
    rows = ds.dataset(file.path, table.spec.arrow_schema).to_table(filter=ds.field(column) <= tick)
    if rows.num_rows == 0:
        return None
    pq.write_table(rows, here)
    ends: Any = pc.min_max(rows[column]).as_py()
    return DataFile(here, here.stat().st_size, rows.num_rows, ends["min"], ends["max"])


def take_over(serving: Store, beside: Store, step: Step) -> Mapping[str, int]:
    """Makes the tables that serve hold what those beside hold; gives their versions after it."""
    for name, made in beside.tables.items():
        table = serving.tables[name]
        if not table.exists:
            table.create()
        files = [replace(f, path=_moved(f.path, made.path, table.path)) for f in made.files()]
        table.hold(files, summed_to=made.summed_to() if made.spec.is_log else -1)
        step(name)
    return {name: serving.tables[name].version for name in serving.tables}


def _moved(file: Path, here: Path, there: Path) -> Path:
    """The file below the directory `there`; one that is linked there already stays."""
    target = there / file.relative_to(here)
    if not target.exists() or not target.samefile(file):
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(file, target)
    return target


def _link(file: Path, to: Path) -> None:
    """A second name for a file; where the file system has none, a copy."""
    try:
        os.link(file, to)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK):
            raise
        shutil.copyfile(file, to)
