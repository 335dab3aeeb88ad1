"""Runs a program on files with Spark: in ranges of ticks, with outputs to files or counted.

What a range leaves for the next one stays with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.files.cut import TickCut, cut
from hydro_core.files.inputs import InputFile
from hydro_core.files.outputs import OutputFolders
from hydro_core.plan.planner import longest_range
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.executor.executor import Job, RangeResult
from hydro_core.spark.executor.fixpoint import NoPast, Overlay
from hydro_core.spark.executor.shell import attempt, failures_as_errors, run_ticks
from hydro_core.spark.files.frames import InputRows, rows_of, scans_on
from hydro_core.spark.files.outputs import RowCounts, counts_of, counts_of_files, written
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.materialize import checkpointed, released
from hydro_core.spark.frames.relation import TICK, Relation
from hydro_core.spark.session.session import files_session, for_few_rows, shared_session
from hydro_core.ticks.every import TickLength
from hydro_core.types.item import ItemType

_PARTITION = 16 * MEBIBYTE
"""Of input files to a partition after a shuffle: what a task sorts or groups fits its memory."""

_SMALL = 2 * MEBIBYTE
"""Of so little, the time goes into thinking about it: as for ticks in memory."""

_LARGE_DATA = {
    # Partitions are many for the sake of memory; those that turn out small are put together.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
}


Report = Callable[[int, int, RowCounts], None]
"""Is told of each range that is done: its ticks, and the rows of its outputs."""


class RunInputs:
    """The inputs of a run: first their types, then, when the program is compiled, their rows."""

    def __init__(
        self,
        files: Sequence[InputFile],
        declared: Mapping[str, ItemType],
        settings: Settings,
        spark: SparkSession | None = None,
    ) -> None:
        with failures_as_errors():
            self.spark = files_session(spark or shared_session(settings.spark))
            self._scans = scans_on(self.spark, files, declared)
        self.settings = settings

    @property
    def types(self) -> Mapping[str, ItemType]:
        return {scan.file.name: scan.item for scan in self._scans}

    def rows(self, types: Mapping[str, ItemType], stack: ExitStack) -> list[InputRows]:
        """The rows of all inputs, released when the stack is left."""
        size = sum(scan.fileset.bytes for scan in self._scans)
        if size < _SMALL:
            for_few_rows(self.spark)
        else:
            cores = self.spark.sparkContext.defaultParallelism
            partitions = min(max(cores, size // _PARTITION), 2000)
            options = {**_LARGE_DATA, "spark.sql.shuffle.partitions": str(partitions)}
            for key, value in options.items():
                self.spark.conf.set(key, value)
        found = []
        for scan in self._scans:
            found.append(rows_of(self.spark, replace(scan, item=types[scan.file.name])))
            stack.callback(found[-1].release)
        return found


def prepared(
    plan: TickPlan, inputs: RunInputs, ticks: tuple[TickLength, datetime | None], stack: ExitStack
) -> FileRun:
    """Reads all inputs once and cuts them into ticks; what fails until `stack` is left is told."""
    types = {name: stream.item for name, stream in plan.typed.inputs.items()}
    # First of all: when the JVM has ended, giving up what is kept fails, too.
    stack.enter_context(failures_as_errors(plan.typed))
    stack.enter_context(released(inputs.spark))
    rows = inputs.rows(types, stack)
    return FileRun(plan, inputs.spark, rows, cut(rows, *ticks), inputs.settings)


@dataclass(slots=True)
class FileRun:
    """The files of a run, as what its ranges read and write."""

    plan: TickPlan
    spark: SparkSession
    inputs: Sequence[InputRows]
    cut: TickCut
    settings: Settings
    out: OutputFolders | None = None
    past: Overlay = field(default_factory=lambda: Overlay(NoPast(), checkpointed))

    @property
    def directory(self) -> None:
        """What is kept between ranges stays with Spark."""

    def job(self, first: int, last: int) -> Job:
        """The rows of the files that are of these ticks, and what the ticks before have left."""
        within = F.col(TICK).between(first, last)
        return Job(
            self.plan,
            first,
            last,
            self.spark,
            {r.scan.file.name: together(r.items(self.cut).where(within)) for r in self.inputs},
            past=self.past,
            settings=self.settings,
            times=self.cut.calendar.times(first, last) if self.cut.calendar else {},
            materialize=checkpointed,
        )

    def take(self, job: Job, found: RangeResult) -> tuple[range, RowCounts]:
        """Adds to the files of all outputs, or to none; gives the ticks and the rows of each."""
        first, last = job.first, job.last
        if self.out is None:
            counts = counts_of(found.outputs, first, last)
            self._keep(job, found)
        else:
            with written(self._of_ticks(found), self.out, first, last) as folders:
                counts = counts_of_files(job.spark, folders)
                self._keep(job, found)
        return range(first, last + 1), counts

    def _of_ticks(self, found: RangeResult) -> Mapping[str, Relation]:
        """The outputs; of a run without a tick they are empty."""
        if self.cut.count:
            return found.outputs
        return {n: r.with_(frame=r.frame.where(F.lit(False))) for n, r in found.outputs.items()}

    def _keep(self, job: Job, found: RangeResult) -> None:
        if job.last + 1 < self.cut.count:
            self.past = self.past.after({s: found.state[s.id] for s in job.plan.slots})


def run(
    work: FileRun, out: OutputFolders | None, at_once: int | None, report: Report
) -> Mapping[str, Mapping[int, int]]:
    """Runs all ticks, `at_once` of them to a range (None: all); gives the rows of the outputs."""
    counts: dict[str, dict[int, int]] = {name: {} for name in work.plan.graph.sinks}
    work.out = out
    longest = at_once or longest_range(work.plan, work.settings)
    for ticks, found in run_ticks(work, 0, work.cut.count - 1, longest):
        for name, of_ticks in found.items():
            counts[name].update(of_ticks)
        report(ticks[0], ticks[-1], found)
    if out is not None and not work.cut.count:
        attempt(work, 0, 0)
    return counts
