"""Runs a program on files with Spark: in ranges of ticks, with outputs to files or counted.

What a range leaves for the next one stays with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.plan.parts import longest_range
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.executor import run_range
from hydro_core.spark.failures import data_error, is_spark_error
from hydro_core.spark.few_rows import for_few_rows, together
from hydro_core.spark.files.arrived import Arrived
from hydro_core.spark.files.frames import FrameCut, Rows, arrive, cut, rows_of
from hydro_core.spark.files.outputs import Counts, counts_of, counts_of_files, write
from hydro_core.spark.past import NoPast, Overlay
from hydro_core.spark.relation import TICK
from hydro_core.spark.session import shared_session
from hydro_core.spark.settle import checkpointed, released
from hydro_core.ticks.batches import InputFile
from hydro_core.ticks.every import Every
from hydro_core.ticks.outputs import OutputFolders
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


class Program(Protocol):
    """A compiled program."""

    @property
    def typed(self) -> Typed:
        """The program and its types."""

    @property
    def strata(self) -> Strata:
        """Its strata."""


Report = Callable[[int, int, Counts], None]
"""Is told of each range that is done: its ticks, and the rows of its outputs."""


@dataclass(frozen=True, slots=True)
class FileRun:
    """What is the same for every range of a run."""

    plan: TickPlan
    spark: SparkSession
    inputs: Sequence[Rows]
    cut: FrameCut
    settings: Settings


class Inputs:
    """The inputs of a run: first their types, then, when the program is compiled, their rows."""

    def __init__(
        self,
        files: Sequence[InputFile],
        declared: Mapping[str, ItemType],
        settings: Settings,
        spark: SparkSession | None = None,
    ) -> None:
        with told():
            self.spark = _session(spark or shared_session(settings.spark))
            self._arrived = arrive(self.spark, files, declared)
        self.settings = settings

    @property
    def types(self) -> Mapping[str, ItemType]:
        """The types of the items, by the inputs' names."""
        return {arrived.file.name: arrived.item for arrived in self._arrived}

    def rows(self, types: Mapping[str, ItemType], stack: ExitStack) -> list[Rows]:
        """The rows of all inputs, released when the stack is left."""
        size = sum(arrived.found.bytes for arrived in self._arrived)
        if size < _SMALL:
            for_few_rows(self.spark)
        else:
            self._for_many_rows(size)
        found = []
        with told():
            for arrived in self._arrived:
                item = types[arrived.file.name]
                rows = rows_of(self.spark, Arrived(arrived.file, arrived.found, item))
                stack.callback(rows.release)
                found.append(rows)
        return found

    def _for_many_rows(self, size: int) -> None:
        cores = self.spark.sparkContext.defaultParallelism
        partitions = min(max(cores, size // _PARTITION), 2000)
        options = {**_LARGE_DATA, "spark.sql.shuffle.partitions": str(partitions)}
        for key, value in options.items():
            self.spark.conf.set(key, value)


def _session(spark: SparkSession) -> SparkSession:
    """A session beside the given one, in the same process, with settings of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # What folders are called is text, and cast where it is wanted.
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    return session


@contextmanager
def told(typed: Typed | None = None) -> Iterator[None]:
    """Failures of Spark become errors that a user can read."""
    try:
        yield
    except Exception as error:
        if is_spark_error(error):
            raise data_error(error, typed) from error
        raise


def prepared(
    program: Program, inputs: Inputs, ticks: tuple[Every, datetime | None], stack: ExitStack
) -> FileRun:
    """Reads all inputs once and cuts them into ticks."""
    types = {name: stream.item for name, stream in program.typed.inputs.items()}
    stack.enter_context(released(inputs.spark))
    rows = inputs.rows(types, stack)
    with told():
        found = cut(rows, *ticks)
    made = plan(program.typed, program.strata)
    return FileRun(made, inputs.spark, rows, found, inputs.settings)


def run(
    work: FileRun, out: OutputFolders | None, at_once: int | None, report: Report
) -> Mapping[str, Mapping[int, int]]:
    """Runs all ticks, `at_once` of them to a range (None: all); gives the rows of the outputs."""
    counts: dict[str, dict[int, int]] = {name: {} for name in work.plan.graph.sinks}
    past = Overlay(NoPast(), checkpointed)
    count = work.cut.count
    step = at_once or longest_range(work.plan, work.settings) or max(count, 1)
    with told(work.plan.typed):
        for first in range(0, count, step):
            last = min(first + step, count) - 1
            found, past = _range(work, out, (first, last), past)
            for name, of_ticks in found.items():
                counts[name].update(of_ticks)
            report(first, last, found)
        if out is not None and not count:
            _range(work, out, (0, 0), past, nothing=True)
    return counts


def _range(
    work: FileRun,
    out: OutputFolders | None,
    ticks: tuple[int, int],
    past: Overlay,
    *,
    nothing: bool = False,
) -> tuple[Counts, Overlay]:
    first, last = ticks
    within = F.col(TICK).between(first, last)
    result = run_range(
        work.plan,
        first,
        last,
        spark=work.spark,
        sources={
            r.arrived.file.name: together(r.items(work.cut).where(within)) for r in work.inputs
        },
        past=past,
        settings=work.settings,
        times=work.cut.times(first, last),
        settle=checkpointed,
    )
    if out is None:
        counts = counts_of(result.outputs, first, last)
    else:
        folders: dict[str, Path] = {}
        for name, relation in result.outputs.items():
            frame = relation.with_(frame=relation.frame.where(F.lit(not nothing)))
            folders[name] = out.folder(name).absolute()
            write(frame, folders[name], first, last)
        counts = counts_of_files(work.spark, folders, first)
    if last + 1 < work.cut.count:
        past = past.after({slot: result.state[slot.id] for slot in work.plan.slots})
    return counts, past
