"""Ticks computed again beside the tables that serve, then put in their place by one commit."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hydro_core.machine.locks import lock_at
from hydro_core.plan.planner import Bootstrap, WantedTables
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.functions.reruns import RerunCount, added_up
from hydro_core.spark.inputs.batches import refuse_gain, refuse_unlike, total
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.publishing import rows_now
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.store.delta.table import rows_since
from hydro_core.spark.store.earlier_tables import (
    Base,
    base_before,
    begin,
    join_at,
    left_by,
    moved,
    undone_from,
)
from hydro_core.spark.store.ledger.ledger import Ledger, state_error
from hydro_core.spark.store.ledger.records import (
    SEAMS,
    Commit,
    Counts,
    InputRead,
    last_read_of,
    standing_counts,
)
from hydro_core.spark.store.outputs.changes import BagDifference, differing
from hydro_core.spark.store.snapshots import frame_as_of
from hydro_core.storage.places import empty, entries_in, remove_tree
from hydro_core.storage.remote import DataPlace

# A past that is not the one that serves grows in a pipeline of its own, below the directory of the
# one that serves, from the tables as they were before the first of those ticks. Files are shared,
# not copied. At the end each table takes its files over with one commit of its log, and a row of
# the ledger makes all of them count. What ends a process before that row leaves the past as it was.


@dataclass(frozen=True, slots=True)
class KeptReads:
    """What ticks are computed again from as they had read it, where a program changes."""

    reads: Mapping[str, InputRead]
    """The inputs that the last tick has read."""
    dormant: Mapping[str, tuple[InputRead, int]]
    """Those that earlier ticks alone have read, with the first tick that has not."""
    base: Mapping[str, Counts] = field(default_factory=dict)
    """How many rows the ticks had that are not computed again, when the tables stood so."""
    unreported: set[str] = field(default_factory=set)
    """Inputs of which nobody can tell any more with which ticks their late rows arrived."""

    def recorded(self, read: Mapping[str, InputRead]) -> Mapping[str, InputRead]:
        """What the ledger is to keep of the inputs once the ticks have been computed again.

        How many rows they have of all its ticks, and of which, the ticks' own commits say.

        Args:
            read: what the ticks that were computed again have read.
        """
        kept = (replace(one, late={}, rows=None, counts=None) for one in self.reads.values())
        return {**read, **{one.name: one for one in kept}}

    def refuse_unlike(self, made: Mapping[str, Counts], serves: Mapping[str, Counts]) -> None:
        """Raises where the ticks have other rows than they have in the tables that serve."""
        for name in sorted({*self.reads, *self.dormant} - self.unreported):
            for counts in (self.base.get(name, {}), made.get(name, {})):
                refuse_unlike(name, serves.get(name, {}), counts)


def kept_since(
    ledger: Ledger, sources: Collection[str], left: tuple[Commit, int] | None = None
) -> KeptReads:
    """What is kept of what the ledger says was read, where a program with these inputs takes over.

    `left` is the commit that left the tables that it goes on from, and the last of their ticks that
    stand; None: it has none.
    """
    commits = ledger.commits()
    reads = {read.name: read for read in ledger.last_reads()}
    dormant = {
        name: found
        for name in (() if left is None else sources)
        if name not in reads and (found := last_read_of(commits, name)) is not None
    }
    base: dict[str, Counts] = {}
    if left is not None:
        # How many rows the ticks up to the last one had when the commit left the tables.
        counts = standing_counts([one for one in commits if one.sequence <= left[0].sequence])
        for name, of in counts.items():
            base[name] = {tick: rows for tick, rows in of.items() if tick <= left[1]}
    return KeptReads({n: read for n, read in reads.items() if n in sources}, dormant, base)


STAGING = "_staged"
"""The directory, within a pipeline's, in which ticks are computed again."""


@dataclass(frozen=True, slots=True)
class RecomputedTicks:
    """The ticks that are computed again."""

    first: int
    """The one that runs first."""
    last: int
    """The one that has to be reached."""
    changed: int
    """The first of which somebody has seen another result; after `last`: none is."""
    kept: KeptReads | None = None
    """What is read as it had been; None: the ticks read what is landed now."""
    back: bool = False
    """Whether a program that has served before serves again."""


class StagedPast:
    """A past that is computed beside the tables that serve, until it takes their place.

    It holds the pipeline's lock until `replace` or `abandon`, which it is on leaving the context.
    """

    def __init__(
        self,
        serving: Pipeline,
        target: Pipeline,
        staging: Pipeline,
        past: RecomputedTicks,
        taken: Collection[str],
        *,
        since: Mapping[str, int] | None = None,
    ) -> None:
        self.serving = serving
        self.target = target
        """The pipeline that is to serve: the same one, or one of another program."""
        self.staging = staging
        """The pipeline that runs the ticks."""
        self.first, self.last = past.first, past.last
        """The tick that runs first, and the one that has to be reached."""
        self._first_changed, self._back = past.changed, past.back
        self._taken = taken
        self._since = since
        """Of a deployment, the first tick of each of its outputs that is another than before."""
        self.kept = past.kept
        """What is read as it had been; None: the ticks read what is landed now."""
        self._now = serving.ledger.last
        self._made: list[str] = []
        self._started = datetime.now(UTC)
        self._decided = self._asked = False

    def __enter__(self) -> StagedPast:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    @property
    def is_complete(self) -> bool:
        """Whether all ticks have run beside."""
        made = self.staging.ledger.refresh()
        return not self._taken or (made is not None and made.last >= self.last)

    def replace(
        self,
        checks: Mapping[str, Any] | None = None,
        gains: Mapping[str, int | None] = MappingProxyType({}),
    ) -> Commit:
        """Puts the tables beside in the place of those that serve, by one row of the ledger.

        Args:
            checks: what the ledger keeps for the checks of the next tick; without it, what the last
                commit beside has kept.
            gains: how many rows more the ticks have of inputs that they read as landed now.

        Raises:
            DataError: another writer was faster, or rows got lost or came twice (code `state`);
                then nothing of this counts.
        """
        if self._decided or not self.is_complete:
            raise RuntimeError("what is taken over is complete, and taken over once")
        self._refuse_miscounted(gains)
        self._take_over()
        commit = self._commit(checks)
        self._asked = True
        self.serving.ledger.append(commit)
        self.target.step("ledger")
        self._end()
        return commit

    def abandon(self) -> None:
        """Gives the results up; the pipeline is as it was.

        Of a commit that was asked for and not answered nobody knows: whoever comes next sets right
        what there is to set right.
        """
        if self._decided:
            return
        if not self._asked and self.serving.lock.is_kept:
            self.serving.store.recover(self._now)
            for name in self._made:
                self.target.store.tables[name].drop()
        self._end()

    def _refuse_miscounted(self, gains: Mapping[str, int | None]) -> None:
        """Raises where the ticks beside have not read what the ledger says that they have."""
        staging = self.staging.ledger.commits(since=self.first) if self._taken else ()
        made, serves = map(standing_counts, (staging, self.serving.ledger.commits()))
        if self.kept is not None:
            self.kept.refuse_unlike(made, serves)
            return
        for name, gain in gains.items():
            ticks = range(self.first, self.last + 1)
            before, after = (total(of.get(name, {}), ticks) for of in (serves, made))
            if gain is not None and before is not None and after is not None:
                refuse_gain(name, before, after, gain)

    def _take_over(self) -> None:
        for name, table in self.target.store.tables.items():
            if not table.exists:
                table.create()
                self._made.append(name)
        for name in self._taken:
            made, table = self.staging.store.tables[name], self.target.store.tables[name]
            tick = (self._since or {}).get(table.spec.of, 0) if table.spec.role == "output" else 0
            if tick:
                served, spark = self.serving.store, lambda: self.target.spark
                join_at(tick, served, self.staging.store, name, spark)
            files = [replace(f, path=moved(f.path, made.path, table.path)) for f in made.files()]
            table.hold(files, summed_to=made.summed_to() if made.spec.forgets else -1)
            self.target.step(name)

    def _commit(self, checks: Mapping[str, Any] | None) -> Commit:
        now, made = self._now, self.staging.ledger.last
        if now is None:
            raise AssertionError("only what is committed is computed again")
        commits = self.staging.ledger.commits(since=self.first) if self._taken else ()
        tables = self.target.store.tables
        return replace(
            now,
            sequence=now.sequence + 1,
            first=self._first_changed,
            last=self.last,
            plan=self.target.fingerprint,
            back=self._back,
            versions={name: table.version for name, table in tables.items()},
            rows=self._rows(commits),
            inputs=tuple(self._reads(commits)),
            start=commits[0].start if commits else None,
            started=self._started,
            committed=datetime.now(UTC),
            checks=self._checks(now, checks or (made.checks if made else {})),
            tables={name: table.spec.record() for name, table in tables.items()},
            reruns=self._reruns(now, made),
        )

    def _rows(self, commits: Sequence[Commit]) -> Mapping[str, int]:
        """How many rows the tables have of the commit's ticks, which may not be those that ran."""
        if self._first_changed == self.first or self._first_changed > self.last:
            seams = (self._since or {}).items()
            joined = [self.target.output_tables[name].name for name, tick in seams if tick]
            of_both = [name for name in joined if name in self._taken]
            return {**added_up_rows(commits), **self._rows_since(self.first, of_both)}
        return self._rows_since(self._first_changed, self._taken)

    def _rows_since(self, tick: int, names: Iterable[str]) -> Mapping[str, int]:
        return {name: rows_since(self.staging.store.tables[name], tick) for name in names}

    def _reruns(self, now: Commit, made: Commit | None) -> tuple[RerunCount, ...]:
        """Those known before and those beside; another program has other functions."""
        known = now.reruns if self.target is self.serving else ()
        staging = made.reruns if made else ()
        return added_up(known, (replace(one, commit=now.sequence + 1) for one in staging))

    def _checks(self, now: Commit, made: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the ledger keeps for the checks: of tables, what is known of all ticks at once.

        The next tick measures the others.
        """
        whole = self._first_changed == self.first
        facts = made.get("tables", {}) if whole else {}
        tables = {n: facts[n] for n in self.target.store.tables if n in facts}
        restated = {self.target.output_tables[n].name: t for n, t in (self._since or {}).items()}
        return {**now.checks, **made, "tables": tables, SEAMS: restated}

    def _reads(self, commits: Sequence[Commit]) -> Iterator[InputRead]:
        """What has been read of the inputs: what ticks have read stands where a program changes."""
        read = {one.name: one for one in read_in_all(commits)}
        if self.kept is None:
            known = {one.name: one for one in self.serving.ledger.last_reads()}
        else:
            known = {name: one for name, (one, _) in self.kept.dormant.items()}
            read |= self.kept.recorded(read)
        for name in self.target.plan.graph.sources:
            if name in read or name in known:
                yield read.get(name) or known[name]

    def _end(self) -> None:
        self._decided = True
        try:
            # Who has taken over may have begun something there.
            if self.serving.lock.is_kept:
                remove_tree(self.staging.directory, ignore_errors=True)
        finally:
            self.serving.lock.release()


def added_up_rows(commits: Iterable[Commit]) -> Mapping[str, int]:
    """How many rows the tables got; one that every commit replaces has those of the last."""
    found: Counter[str] = Counter()
    for commit in commits:
        for name, rows in commit.rows.items():
            found[name] = rows if commit.replaces(name) else found[name] + rows
    return dict(found)


def read_in_all(commits: Iterable[Commit]) -> tuple[InputRead, ...]:
    """What was read of each input: as it was read last, all rows, and all ticks without one.

    Late rows came with the first tick of all, and with no other.
    """
    found: dict[str, InputRead] = {}
    for read in (read for commit in commits for read in commit.inputs):
        before = found.get(read.name)
        rows = (read.rows or 0) + ((before.rows or 0) if before else 0)
        empty = (*(before.empty if before else ()), *read.empty)
        late = read.late if before is None else before.late
        counts = read.counts
        if before is not None and counts is not None:
            counts = None if before.counts is None else {**before.counts, **counts}
        found[read.name] = replace(read, rows=rows, empty=empty, late=late, counts=counts)
    return tuple(found.values())


def correction(pipeline: Pipeline, first: int) -> StagedPast:
    """The ticks of a pipeline from `first` on, to be computed again.

    Where the past before that tick is not to be had any more, an earlier tick is the first.

    Args:
        pipeline: the one that serves.
        first: the first tick to compute again.

    Raises:
        DataError: the tick is not committed, or another writer is at work (code `state`).
    """
    with _locked(pipeline, "a correction"):
        now = _committed(pipeline, first)
        base = base_before(pipeline.store, pipeline.ledger, first)
        staging = _begun(pipeline, base)
        first = base.tick + 1
        past = RecomputedTicks(first, now.last, first)
        return StagedPast(pipeline, pipeline, staging, past, tuple(pipeline.store.tables))


def first_again(pipeline: Pipeline, first: int) -> int:
    """The tick with which a correction from a committed tick on begins; nothing is changed."""
    pipeline.store.check(pipeline.ledger.refresh())
    return base_before(pipeline.store, pipeline.ledger, first).tick + 1


def deployment(
    serving: Pipeline,
    target: Pipeline,
    made_by: Bootstrap,
    wanted: WantedTables,
    since: Mapping[str, int] | None = None,
) -> StagedPast:
    """The tables that another program wants, to be made from the past.

    Its other tables are those that serve, as they stand, or empty where there are none.

    Args:
        serving: the pipeline of the program that serves.
        target: that of the other program, in the same directory.
        made_by: what makes the tables, run from tick 0 on.
        wanted: which tables are taken over.
        since: the outputs among them that keep their rows of the ticks before one, with that tick.

    Raises:
        DataError: nothing is committed, or another writer is at work (code `state`).
    """
    with _locked(serving, "a deployment"):
        now = _committed(serving, 0)
        return staging_for(serving, target, (made_by, wanted, since or {}), now, _emptied(serving))


def staging_for(
    serving: Pipeline,
    target: Pipeline,
    work: tuple[Bootstrap, WantedTables, Mapping[str, int]],
    now: Commit,
    directory: DataPlace,
) -> StagedPast:
    """The tables that another program wants, to be made in a directory, as of a commit.

    `work` has what `deployment` takes: what makes the tables, which they are, and since when
    outputs are others.
    """
    made_by, wanted, since = work
    slots = {slot: target.state_tables[slot] for slot in wanted.slots}
    outputs = {name: target.output_tables[name] for name in wanted.outputs}
    own = Tables.of(made_by.plan)
    named = Tables({**own.state, **slots}, {**own.outputs, **outputs})
    staging = Pipeline(directory, made_by.plan, serving.settings, serving.spark, tables=named)
    taken = tuple(spec.name for spec in (*slots.values(), *outputs.values()))
    changed = {name: since.get(name, 0) for name in outputs}
    # A new state is of no tick that anybody has seen.
    kept = kept_since(serving.ledger, target.plan.graph.sources)
    past = RecomputedTicks(0, now.last, min(changed.values(), default=now.last + 1), kept)
    return StagedPast(serving, target, staging, past, taken, since=changed)


def rollback(serving: Pipeline, target: Pipeline) -> StagedPast:
    """The tables of an earlier program as it left them, and the ticks since then by that program.

    Where ticks were read anew since, they are computed again, too: what they have read by now is
    not in the tables that the program left.

    Raises:
        DataError: its tables are not there any more, or another writer is at work (code `state`).
    """
    with _locked(serving, "a rollback"):
        now = _committed(serving, 0)
        commits = serving.ledger.commits()
        base, left = left_by(target.store, target.fingerprint, commits, now)
        staging = _begun(target, base)
        first = base.tick + 1
        kept = kept_since(serving.ledger, target.plan.graph.sources, (left, base.tick))
        past = RecomputedTicks(
            first, now.last, min(first, undone_from(commits, left)), kept, back=True
        )
        return StagedPast(serving, target, staging, past, tuple(target.store.tables))


def first_undone(serving: Pipeline, target: Pipeline) -> int:
    """The first tick that a rollback computes again; nothing is changed.

    Raises:
        DataError: the tables of the earlier program are not there any more (code `state`).
    """
    now = serving.ledger.refresh()
    if now is None:
        raise AssertionError("what nobody has committed has nothing before it")
    base, _ = left_by(target.store, target.fingerprint, serving.ledger.commits(), now)
    return base.tick + 1


@contextmanager
def _locked(pipeline: Pipeline, work: str) -> Iterator[None]:
    """The pipeline's lock, which a rework that comes of it keeps; `work` says what that is."""
    pipeline.lock.acquire(work)
    try:
        yield
    except BaseException:
        pipeline.lock.release()
        raise


def _emptied(pipeline: Pipeline) -> DataPlace:
    directory = pipeline.directory / STAGING
    empty(directory)
    return directory


def _begun(target: Pipeline, base: Base) -> Pipeline:
    """A pipeline of the target's program beside it, as its tables were after the base's tick."""
    tables = Tables(target.state_tables, target.output_tables)
    staging = Pipeline(_emptied(target), target.plan, target.settings, target.spark, tables=tables)
    begin(staging.store, staging.ledger, base, staging.fingerprint)
    return staging


def _committed(pipeline: Pipeline, first: int) -> Commit:
    now = pipeline.ledger.refresh()
    if now is None or not 0 <= first <= now.last:
        there = "no tick is" if now is None or now.last < 0 else f"ticks 0 to {now.last} are"
        raise state_error(
            f"tick {first} cannot be computed again: {there} committed",
            "name a committed tick; `hydrotick status` tells which there are",
        )
    pipeline.refuse_another_program(now)
    pipeline.store.recover(now)
    return now


# A comparison reads the tables as one commit left them, whose files stay for a while, and writes to
# a directory of its own: it neither needs the right to write nor takes it from anybody.


COMPARED = "_compared"
"""The directory, within a pipeline's, in which programs are compared, each in one of its own."""

_RUNNING = "_running"


@contextmanager
def comparison(
    serving: Pipeline, target: Pipeline, made_by: Bootstrap, wanted: WantedTables, now: Commit
) -> Iterator[StagedPast]:
    """The outputs that another program wants, to be made beside; they are gone in the end.

    Args:
        serving: the pipeline of the program that serves; it is only read.
        target: that of the other program, in the same directory.
        made_by: what makes the tables, run from tick 0 on.
        wanted: which tables are made.
        now: the commit as of which the past is read.

    Raises:
        DataError: the tables are not there any more (code `state`).
    """
    serving.refuse_another_program(now)
    serving.store.check(now)
    with _scratch(serving.directory / COMPARED) as directory:
        yield staging_for(serving, target, (made_by, wanted, {}), now, directory)


def rows_at(pipeline: Pipeline, output: str, tick: int) -> pa.Table:
    """An output as of a tick, by the tables as they were looked at last."""
    return rows_now(pipeline.store, pipeline.output_tables[output], tick)


def differing_at(
    before: Pipeline, after: Pipeline, output: str, tick: int, columns: Sequence[str]
) -> BagDifference | None:
    """By how many rows an output of two pipelines differs as of a tick, told by executors.

    None where the rows are so few that this process holds them.

    Args:
        before: the one, whose tables are as they were looked at last.
        after: the other.
        output: the name in both.
        tick: a committed one of both.
        columns: those that are compared.
    """
    specs = [pipeline.output_tables[output] for pipeline in (before, after)]
    each = list(zip((before, after), specs, strict=True))
    most = max(
        p.store.rows_within(spec.name, tick if spec.kind is Kind.E else 0, tick) for p, spec in each
    )
    if most <= after.store.held_rows or any(spec.has_unknown for spec in specs):
        return None
    first, second = (frame_as_of(p.store, after.spark, spec, tick) for p, spec in each)
    return differing((first, second), columns)


@contextmanager
def _scratch(place: DataPlace) -> Iterator[DataPlace]:
    """A directory for this process; those of processes that were killed are removed."""
    for left in entries_in(place):
        if not lock_at(left / _RUNNING).is_held:
            remove_tree(left, ignore_errors=True)
    directory = place / uuid.uuid4().hex[:8]
    lock = lock_at(directory / _RUNNING)
    lock.take()
    try:
        yield directory / "tables"
    finally:
        lock.release()
        remove_tree(directory, ignore_errors=True)
