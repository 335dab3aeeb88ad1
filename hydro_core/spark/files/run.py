"""Runs a program on files with Spark: in ranges of ticks, with outputs to files or counted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.inputs import InputFile
from hydro_core.files.outputs import POSITION, OutputFolders, columns_of
from hydro_core.files.outputs import TICK as OUTPUT_TICK
from hydro_core.files.scan import TickCut, cut
from hydro_core.plan.planner import longest_range
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.executor.executor import Job, RangeResult
from hydro_core.spark.executor.fixpoint import NoPast, Overlay
from hydro_core.spark.executor.shell import attempt, failures_as_errors, run_ticks
from hydro_core.spark.files.frames import InputRows, rows_of, scans_on
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.materialize import checkpointed, released
from hydro_core.spark.frames.parquet import spark_name, write_parquet
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import item_type, spark_type
from hydro_core.spark.lower.relations import positioned
from hydro_core.spark.session.session import files_session, for_few_rows, shared_session
from hydro_core.spark.store.schema import stored
from hydro_core.ticks.every import TickLength
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import ItemType, Row, Tuple

RowCounts = Mapping[str, Mapping[int, int]]
"""By the outputs' names and the ticks, where there are any rows."""


@contextmanager
def written(
    outputs: Mapping[str, Relation], out: OutputFolders, first: int, last: int
) -> Iterator[Mapping[str, Path]]:
    """What the ticks first … last put out, as files that are added to those of the ticks before.

    They are at hand within, in a folder for each output; if that fails, none of them stays.
    """
    folders = {name: out.folder(name).absolute() for name in outputs}
    staged = {name: folder.with_name(f"{folder.name}.staged") for name, folder in folders.items()}
    try:
        for name, output in outputs.items():
            frame = _written(output, first, last)
            write_parquet(frame, staged[name], _declared(frame))
        yield staged
        for name, folder in folders.items():
            folder.mkdir(exist_ok=True)
            # What Spark writes beside the data is of no use here.
            for file in staged[name].glob("*.parquet"):
                file.rename(folder / file.name)
    finally:
        for folder in staged.values():
            shutil.rmtree(folder, ignore_errors=True)


def _declared(frame: DataFrame) -> pa.Schema:
    """The columns of a frame as files have them."""
    return pa.schema([(f.name, arrow_type(item_type(f.dataType))) for f in frame.schema.fields])


def _written(output: Relation, first: int, last: int) -> DataFrame:
    """The rows as files have them: `tick`, the item's columns, and maybe `position`."""
    events = output.events(first, last)
    # The mark by which a later run knows the files as ours.
    columns = [F.col(TICK).alias(OUTPUT_TICK, metadata={"hydrotick": "output"})]
    whole = isinstance(output.item, Row | Tuple)
    for name, of in columns_of(output.item).items():
        column = F.col(ITEM).getField(name) if whole else F.col(ITEM)
        # A column of nulls alone has no type, and Parquet asks for one.
        columns.append(column.cast(spark_type(stored(of))).alias(name))
    if events.ordered:
        columns.append(F.col(ORD).alias(POSITION))
    frame = positioned(events) if events.ordered else events.frame
    return frame.select(*columns)


def counts_of_files(spark: SparkSession, folders: Mapping[str, Path]) -> RowCounts:
    """The rows of each tick, from the files."""
    read = spark.read.schema(f"{OUTPUT_TICK} long")
    return _counted(
        {name: read.parquet(spark_name(spark, folder)) for name, folder in folders.items()}
    )


def counts_of(outputs: Mapping[str, Relation], first: int, last: int) -> RowCounts:
    return _counted(
        {
            name: output.events(first, last).frame.select(F.col(TICK).alias(OUTPUT_TICK))
            for name, output in outputs.items()
        }
    )


def _counted(frames: Mapping[str, DataFrame]) -> RowCounts:
    counts: dict[str, dict[int, int]] = {name: {} for name in frames}
    if not frames:
        return counts
    parts = [
        frame.groupBy(OUTPUT_TICK).count().select(F.lit(name).alias("name"), OUTPUT_TICK, "count")
        for name, frame in frames.items()
    ]
    for name, tick, count in reduce(DataFrame.unionByName, parts).collect():
        counts[name][tick] = count
    return counts


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
