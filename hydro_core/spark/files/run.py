"""Runs a program on files with Spark: in ranges of ticks, with outputs to files or counted.

What a range leaves for the next one stays with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.plan.parts import longest_range
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE, Settings
from hydro_core.spark.executor import RangeResult, run_range
from hydro_core.spark.failures import data_error, is_spark_error
from hydro_core.spark.few_rows import for_few_rows, together
from hydro_core.spark.files.frames import Arrived, FrameCut, Rows, arrive, cut, rows_of
from hydro_core.spark.files.outputs import Counts, counts_of, counts_of_files, write
from hydro_core.spark.past import NoPast, Overlay
from hydro_core.spark.relation import TICK, Relation
from hydro_core.spark.session import shared_session
from hydro_core.spark.settle import checkpointed, exactly, released
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


@dataclass(frozen=True, slots=True)
class Programs:
    """What runs: one program, or one for each shard, and maybe one on what they give."""

    shards: Sequence[Program]
    """Each takes its own part of the inputs."""
    last: Program | None = None
    gathered: Collection[str] = ()
    """The outputs of the shards that the last program reads."""
    outputs: Collection[str] = ()
    """The outputs that are wanted, in their order."""


@dataclass(frozen=True, slots=True)
class Plans:
    """The same, planned."""

    shards: Sequence[TickPlan]
    last: TickPlan | None
    gathered: Collection[str]
    outputs: Collection[str]

    @staticmethod
    def of(programs: Programs) -> Plans:
        """The plans of programs."""
        last = programs.last
        return Plans(
            [plan(program.typed, program.strata) for program in programs.shards],
            None if last is None else plan(last.typed, last.strata),
            programs.gathered,
            programs.outputs,
        )

    @property
    def all(self) -> list[TickPlan]:
        """Every plan, in the order in which they run."""
        return [*self.shards, *([self.last] if self.last else [])]


Report = Callable[[int, int, Counts], None]
"""Is told of each range that is done: its ticks, and the rows of its outputs."""


@dataclass(frozen=True, slots=True)
class FileRun:
    """What is the same for every range of a run."""

    plans: Plans
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
    programs: Programs, inputs: Inputs, ticks: tuple[Every, datetime | None], stack: ExitStack
) -> FileRun:
    """Reads all inputs once and cuts them into ticks."""
    first = programs.shards[0]
    types = {name: stream.item for name, stream in first.typed.inputs.items()}
    stack.enter_context(released(inputs.spark))
    rows = inputs.rows(types, stack)
    with told():
        found = cut(rows, *ticks)
    return FileRun(Plans.of(programs), inputs.spark, rows, found, inputs.settings)


def run(
    work: FileRun, out: OutputFolders | None, at_once: int | None, report: Report
) -> Mapping[str, Mapping[int, int]]:
    """Runs all ticks, `at_once` of them to a range (None: all); gives the rows of the outputs."""
    counts: dict[str, dict[int, int]] = {name: {} for name in work.plans.outputs}
    pasts = [Overlay(NoPast(), checkpointed) for _ in work.plans.all]
    count = work.cut.count
    longest = [n for p in work.plans.all if (n := longest_range(p, work.settings)) is not None]
    step = at_once or min(longest, default=None) or max(count, 1)
    with told(work.plans.shards[0].typed):
        for first in range(0, count, step):
            last = min(first + step, count) - 1
            found, pasts = _range(work, out, (first, last), pasts)
            for name, of_ticks in found.items():
                counts[name].update(of_ticks)
            report(first, last, found)
        if out is not None and not count:
            _range(work, out, (0, 0), pasts, nothing=True)
    return counts


def _range(
    work: FileRun,
    out: OutputFolders | None,
    ticks: tuple[int, int],
    pasts: list[Overlay],
    *,
    nothing: bool = False,
) -> tuple[Counts, list[Overlay]]:
    first, last = ticks
    results = list(_results(work, ticks, pasts))
    outputs = {
        name: _one([r.outputs[name] for r in results if name in r.outputs], ticks)
        for name in work.plans.outputs
    }
    if out is None:
        counts = counts_of(outputs, first, last)
    else:
        folders: dict[str, Path] = {}
        for name, relation in outputs.items():
            frame = relation.with_(frame=relation.frame.where(F.lit(not nothing)))
            folders[name] = out.folder(name).absolute()
            write(frame, folders[name], first, last)
        counts = counts_of_files(work.spark, folders, first)
    if last + 1 < work.cut.count:
        kept = zip(work.plans.all, pasts, results, strict=True)
        pasts = [
            past.after({slot: result.state[slot.id] for slot in made.slots})
            for made, past, result in kept
        ]
    return counts, pasts


def _results(
    work: FileRun, ticks: tuple[int, int], pasts: Sequence[Overlay]
) -> Iterator[RangeResult]:
    """What every program gives for a range; the last one reads what those before it gave."""
    within = F.col(TICK).between(*ticks)
    sources = {
        rows.arrived.file.name: together(rows.items(work.cut).where(within)) for rows in work.inputs
    }
    found: list[RangeResult] = []
    for made, past in zip(work.plans.all, pasts, strict=True):
        if made is work.plans.last:
            for name in work.plans.gathered:
                sources[name] = _one([r.outputs[name].unordered() for r in found], ticks).frame
        result = run_range(
            made,
            *ticks,
            spark=work.spark,
            sources=sources,
            past=past,
            settings=work.settings,
            times=work.cut.times(*ticks),
            settle=checkpointed,
        )
        found.append(result)
        yield result


def _one(parts: Sequence[Relation], ticks: tuple[int, int]) -> Relation:
    """The relation of which each shard gives a part; what has an order comes from one alone."""
    if len(parts) == 1 or parts[0].ordered:
        return parts[0]
    events = [part.events(*ticks) for part in parts]
    frames = (exactly(part.frame, part.item) for part in events)
    return events[0].with_(frame=reduce(DataFrame.unionByName, frames))
