"""A pipeline: a program, its past in a directory, and the next tick.

A range of ticks is prepared, looked at and committed. While it is prepared nothing of the past is
touched; what it gives is at hand for checks; the commit makes it part of the past as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hydro_core.errors import DataError, TransientError
from hydro_core.ir.graph import Endpoint
from hydro_core.machine.faults import faults_as_errors
from hydro_core.plan.planner import in_parts, longest_range
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.functions.guards import recall
from hydro_core.spark.inputs.batches import Batch, batch_of, refuse_miscounted, ticks_within
from hydro_core.spark.lower.registry import Times
from hydro_core.spark.pipeline.jobs import RangeJobs
from hydro_core.spark.pipeline.prepared import PreparedRange, RangeRequest
from hydro_core.spark.pipeline.publishing import (
    LargerTables,
    PublishedOutputs,
    PublishPolicy,
    keys_of_outputs,
)
from hydro_core.spark.pipeline.tables import (
    Tables,
    drop_retired,
    fingerprint,
    refuse_another_program,
)
from hydro_core.spark.session.session import shared_session
from hydro_core.spark.store.ledger.ledger import RESTORE, Ledger, state_error
from hydro_core.spark.store.ledger.records import Commit, InputRead
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import snapshot_frame
from hydro_core.spark.store.store import OnStep, Store
from hydro_core.storage.remote import DataPlace

Batches = Mapping[str, Batch | pa.Table | DataFrame]
"""The batch of each input that has one: as it is, or by its columns."""


class Pipeline:
    """The pipeline of a plan in a directory; it is made there when its first tick is prepared.

    Opening it and asking for what is committed needs no Spark. `spark` is the session for the rest;
    without one the shared session of the process is used, when first needed. `tables` are where
    the plan's tables stand, if not where a new pipeline would put them; `published` says which
    outputs are tables of their own, and without it they stay as they are.
    """

    def __init__(
        self,
        directory: DataPlace,
        plan: TickPlan,
        settings: Settings | None = None,
        spark: SparkSession | None = None,
        *,
        tables: Tables | None = None,
        published: PublishPolicy | None = None,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.settings = settings or Settings()
        self.step: OnStep = lambda _: None
        self._spark = spark
        named = tables or Tables.of(plan)
        self.state_tables = named.state
        """The tables of the state slots, by the slots' ids."""
        self.output_tables = named.outputs
        """The tables of the outputs, by their names."""
        self.tables = named.all
        self.fingerprint = named.identity or fingerprint(self.tables)
        self.store = Store(
            directory,
            self.tables,
            checkpoint_interval=self.settings.spark.checkpoint_interval,
            compact_every=self.settings.spark.compact_every,
            lookup_bytes=self.settings.spark.lookup_bytes,
            held_rows=self.settings.spark.held_rows,
        )
        self.ledger = Ledger(directory, self.store.forget, self._follow)
        self.lock = self.ledger.lock
        self._jobs = RangeJobs(plan, named, self.store, self.settings)
        known = self.fingerprint, partial(keys_of_outputs, plan, self.output_tables)
        step: OnStep = lambda done: self.step(done)  # noqa: E731, PLW0108 - it may be set later
        larger = LargerTables(self.settings.spark.held_rows, lambda: self.spark)
        self.published = PublishedOutputs(directory, self.ledger, known, step, larger, published)

    def _follow(self, commit: Commit) -> None:
        self.published.follow(commit)

    @property
    def spark(self) -> SparkSession:
        """The session that runs the jobs."""
        return self._spark or shared_session(self.settings.spark)

    @property
    def last_committed(self) -> int | None:
        """The last tick that is done; None before the first."""
        self.ledger.refresh()
        return self.ledger.last_tick

    @property
    def next_tick(self) -> int:
        """The tick that may run now."""
        last = self.last_committed
        return 0 if last is None else last + 1

    def refuse_unless_next(self, tick: int) -> None:
        """Raises unless `tick` is the one that may run now.

        Raises:
            TransientError: its predecessor is not committed, or it is itself (code `state`).
        """
        expected = self.next_tick
        if tick > expected:
            raise TransientError.of(
                "state",
                f"tick {tick} cannot run: tick {tick - 1} is not committed",
                help=f"run {_ticks(expected, tick - 1)} first",
            )
        if tick < expected:
            raise TransientError.of(
                "state",
                f"tick {tick} is committed already; the last one is {expected - 1}",
                help=f"run tick {expected} next; "
                "`hydrotick correct` computes committed ticks again",
            )

    def refuse_another_program(self, commit: Commit) -> None:
        """Raises unless a commit, the last one, is of the same program.

        Raises:
            DataError: what differs, and what to do (code `state`).
        """
        refuse_another_program(self.directory, self.fingerprint, self.tables, commit)

    def run_tick(
        self,
        tick: int,
        batches: Batches,
        *,
        window: tuple[datetime, datetime] | None = None,
    ) -> Commit:
        times = {} if window is None else {tick: window}
        return self.prepare(tick, tick, batches, times=times).commit()

    def run_range(
        self, first: int, last: int, batches: Mapping[str, Batch], *, times: Times | None = None
    ) -> Commit:
        """Runs and commits the ticks `first` to `last` as one job, or as few as may be.

        Gives the last commit.

        Raises:
            DataError: as `prepare`; if a tick fails, those before it are committed.
        """
        if last < first:
            raise ValueError(f"there are no ticks from {first} to {last}")
        ticks_within(batches, first, last)

        def run(start: int, end: int) -> Commit:
            whole = (start, end) == (first, last)
            part = {n: b if whole else b.within(start, end) for n, b in batches.items()}
            within = {t: window for t, window in (times or {}).items() if start <= t <= end}
            return self.prepare(start, end, part, times=within).commit()

        *_, commit = in_parts(first, last, longest_range(self.plan, self.settings), run)
        return commit

    def prepare(
        self, first: int, last: int, batches: Batches, *, times: Times | None = None
    ) -> PreparedRange:
        """Computes a range of ticks without committing it; other writers wait until it is decided.

        Raises:
            DataError: the range may not run now, another writer is at work, the stored state is
                broken (code `state`), a batch does not fit (`input`), or a function fails.
        """
        if last < first:
            raise ValueError(f"there are no ticks from {first} to {last}")
        with faults_as_errors(self._name):
            self.lock.acquire()
            try:
                return self._prepare(first, last, batches, times or {})
            except BaseException:
                self.lock.release()
                raise

    def rewind(self, last: int) -> Commit:
        """Makes `last` the last committed tick again, as if later ones had never run; -1: none.

        Raises:
            DataError: it is not committed, or another writer is at work (code `state`).
        """
        with faults_as_errors(self._name), self.lock:
            now = self.ledger.refresh()
            if now is None or last >= now.last:
                raise state_error(
                    f"there is nothing to take back: tick {last + 1} is not committed",
                    "see the last committed tick with `hydrotick status`",
                )
            target = self._commit_ending_at(last)
            if target is not None and target.plan != now.plan:
                raise state_error(
                    f"tick {last} is of another deployment than the one that serves",
                    "go back to that deployment first: `hydrotick rollback`",
                )
            versions = self.store.restore(target.versions if target else {})
            self.step("restored")
            return self.note(now, last, versions)

    def compact(self, keep_hours: int = 7 * 24) -> Commit | None:
        """Joins the small files of all tables, and removes those that were replaced long ago.

        Tables of earlier deployments go, too.

        Args:
            keep_hours: going back is possible within these hours.

        Raises:
            DataError: another writer is at work, or a table is broken (code `state`); the hours are
                negative (`config`).
        """
        if keep_hours < 0:
            raise DataError.of(
                "config",
                f"files cannot be kept for {keep_hours} hours",
                help="give a number of hours, 0 or more: what was replaced within them is kept",
            )
        with faults_as_errors(self._name), self.lock.at_work("a compaction"):
            now = self.ledger.refresh()
            if now is None:
                return None
            self.refuse_another_program(now)
            self.store.recover(now)
            end = run.end if (run := self.ledger.last_run) else None
            recorded = self.note(now, now.last, self.store.compact(now.last, self.step, end))
            self.step("noted")
            # No file goes before the ledger says that nothing needs it.
            self.lock.refuse_lost()
            keep, kept = timedelta(hours=keep_hours), self.lock.kept_after(self.step)
            drop_retired(self.directory, self.ledger.commits(), datetime.now(UTC), keep)
            self.step("dropped what is retired")
            self.published.compact(keep_hours)
            versions = self.store.vacuum(keep_hours, kept, self.lock.refuse_lost)
            return self.note(recorded, now.last, versions)

    def decide(self, reads: Sequence[InputRead]) -> Commit:
        """Notes in the ledger what somebody has decided on the inputs; it adds no tick.

        Raises:
            DataError: nothing is committed, or another writer is at work (code `state`).
        """
        with faults_as_errors(self._name), self.lock:
            now = self.ledger.refresh()
            if now is None:
                raise state_error("no tick is committed", "run tick 0 first")
            return self.note(now, now.last, now.versions, tuple(reads))

    @property
    def _name(self) -> str:
        return f"the pipeline in {self.directory}"

    def note(
        self,
        now: Commit,
        last: int,
        versions: Mapping[str, int],
        inputs: tuple[InputRead, ...] = (),
        started: datetime | None = None,
    ) -> Commit:
        """Adds a line to the ledger that adds no tick: the tables are at other versions."""
        moment = datetime.now(UTC)
        commit = Commit(
            sequence=now.sequence + 1,
            first=last + 1,
            last=last,
            plan=now.plan,
            versions=versions,
            rows={},
            started=started or moment,
            committed=moment,
            inputs=inputs,
            tables=now.tables,
            reruns=now.reruns,
        )
        self.ledger.append(commit)
        return commit

    def output(self, name: str, as_of: int | None = None, *, every: bool = False) -> pa.Table:
        """An output as of a tick, unless told the last one; `every`: all ticks up to it."""
        spec = self._output(name)
        first, last = self._readable(spec, as_of, every=every)
        return self.store.rows(spec.name, first, last)

    def output_pieces(self, name: str, as_of: int) -> Iterator[pa.Table]:
        """An output as of a tick a piece at a time, at least one."""
        spec = self._output(name)
        first, last = self._readable(spec, as_of, every=False)
        if spec.is_log:
            yield self.store.rows(spec.name, first, last)
        else:
            yield from self.store.pieces(spec.name, first, last)

    def output_frame(
        self, name: str, as_of: int | None = None, *, every: bool = False
    ) -> DataFrame:
        spec = self._output(name)
        first, last = self._readable(spec, as_of, every=every)
        frame = self.store.frame(self.spark, spec.name, 0 if spec.is_log else first, last)
        if frame is None:
            frame = self.spark.createDataFrame([], spec.spark_schema)
        return snapshot_frame(frame, spec, first, last) if spec.is_log else frame

    def _output(self, name: str) -> TableSpec:
        if name not in self.output_tables:
            raise DataError.of(
                "name",
                f"there is no output `{name}`",
                help=f"the outputs are {', '.join(f'`{n}`' for n in self.output_tables)}",
            )
        return self.output_tables[name]

    def _readable(self, spec: TableSpec, as_of: int | None, *, every: bool) -> tuple[int, int]:
        """The ticks whose rows an output has as of a tick."""
        commit = self.ledger.refresh()
        last = -1 if commit is None else commit.last
        if commit is None or (as_of is not None and not 0 <= as_of <= last):
            raise state_error(
                f"tick {as_of or 0} is not committed",
                f"the committed ticks are 0 to {last}" if last >= 0 else "run tick 0 first",
            )
        self.store.check(commit)
        last = last if as_of is None else as_of
        return (0 if every or spec.kind is Kind.H else last), last

    def _prepare(self, first: int, last: int, batches: Batches, times: Times) -> PreparedRange:
        self.refuse_unless_next(first)
        commit = self.ledger.last
        if commit is not None:
            self.refuse_another_program(commit)
        inputs = self._inputs(batches, first, last)
        self._make_directory()
        self.store.check(commit)
        self.store.recover(commit)
        self.published.follow(commit)
        read = tuple(batch.read for batch in inputs.values())
        run = RangeRequest(first, last, times, self.fingerprint, read)
        recall(commit.reruns if commit else (), self.settings)
        found = self._jobs.compute(run, inputs, self.spark, self.ledger.last_run)
        return PreparedRange(run, self.store, self.ledger, found, self.lock.release, self.step)

    def _make_directory(self) -> None:
        """The ledger is made before all else: tables without one are a loss, not a beginning."""
        if self.ledger.exists:
            return
        if any(table.exists for table in self.store.tables.values()):
            raise state_error(f"{self._name} has tables but no ledger", RESTORE)
        self.ledger.create()

    def _inputs(self, batches: Batches, first: int, last: int) -> Mapping[str, Batch]:
        sources = self.plan.graph.sources
        found = {}
        for name, data in batches.items():
            if name not in sources:
                listed = ", ".join(f"`{source}`" for source in sources)
                raise DataError.of(
                    "input",
                    f"there is data for `{name}`, which is no input of the program",
                    help=f"its inputs are {listed}" if listed else "it has no inputs",
                )
            item = self.plan.typed.types[Endpoint(sources[name].id)].item
            found[name] = data if isinstance(data, Batch) else batch_of(name, data, item, first)
        ticks_within(found, first, last)
        for name, batch in found.items():
            if isinstance(batch.rows, pa.Table):
                read = refuse_miscounted(batch.read, batch.rows, (first, last))
                found[name] = replace(batch, read=read)
        return found

    def _commit_ending_at(self, last: int) -> Commit | None:
        if last < 0:
            return None
        found = self.ledger.commit_of(last)
        if found is None or found.last != last:
            ends = "" if found is None else f": it is within {_ticks(found.first, found.last)}"
            raise state_error(
                f"tick {last} does not end a commit{ends}",
                "go back to the end of a committed range, or to the tick before it",
            )
        return found


def _ticks(first: int, last: int) -> str:
    return f"tick {first}" if first >= last else f"ticks {first} to {last}"


_AS_NEW: Mapping[str, str] = MappingProxyType({})


def places_in(commit: Commit | None, name: str) -> Mapping[str, str]:
    """The tables of the state slots of a deployment, if a commit was made by it."""
    if commit is None or commit.plan != name:
        return _AS_NEW
    return {r["of"]: table for table, r in commit.tables.items() if r["role"] == "state"}


def pipeline_of(
    directory: DataPlace,
    plan: TickPlan,
    name: str,
    settings: Settings,
    places: Mapping[str, str] = _AS_NEW,
    published: PublishPolicy | None = None,
) -> Pipeline:
    """The pipeline in a directory by one of its deployments.

    Args:
        directory: the pipeline's.
        plan: the deployment's.
        name: the deployment's, by which the ledger knows it.
        settings: of the core.
        places: the tables of state slots that a new pipeline would put elsewhere, by the slots'
            ids; `places_in` tells those of a commit.
        published: the outputs that are tables of their own; None: they stay as they are.
    """
    new = Tables.of(plan)
    state = {n: replace(spec, name=places.get(n, spec.name)) for n, spec in new.state.items()}
    tables = Tables(state, new.outputs, name)
    return Pipeline(directory, plan, settings, tables=tables, published=published)
