"""Ticks that come and go in memory: what `run --engine spark` and tests use.

State stays in the driver, as Arrow tables.

A tick is one Spark job: all outputs and all new state are collected together, as the columns of
one wide table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.parts import in_parts, longest_range
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import Mode, StateSlot, TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.arrow import from_arrow
from hydro_core.spark.executor import RangeResult, run_range
from hydro_core.spark.failures import data_error, is_spark_error
from hydro_core.spark.items import frame_of
from hydro_core.spark.lower.algebra import positioned
from hydro_core.spark.relation import COUNT, ITEM, ORD, TICK
from hydro_core.spark.session import shared_session
from hydro_core.spark.settle import collected, exactly
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import ItemType
from hydro_core.types.values import sort_key

Outputs = Mapping[str, list[Any]]

SMALL_DATA = {
    # Everything is a few rows: one task a stage, and no time for thinking about it.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What differs in a session for little data."""


def run_in_memory(
    typed: Typed,
    strata: Strata,
    ticks: Iterable[TickInput],
    settings: Settings | None = None,
    *,
    as_range: bool = False,
    spark: SparkSession | None = None,
) -> Iterator[Outputs]:
    """The outputs of every tick, in their order where they have one, else sorted; `as_range`.

    Of all ticks in one pass.
    """
    settings = settings or Settings()
    session = small_data_session(spark or shared_session(settings.spark))
    memory = Memory(plan(typed, strata), session, settings)
    given = iter(ticks)
    if as_range:
        yield from memory.run(list(given))
        return
    while batch := list(islice(given, 1)):
        yield from memory.run(batch)


@lru_cache(maxsize=4)
def small_data_session(spark: SparkSession) -> SparkSession:
    """A session beside the given one, in the same process, that is quick with few rows."""
    session = spark.newSession()
    for key, value in SMALL_DATA.items():
        session.conf.set(key, value)
    return session


@dataclass(slots=True)
class Memory:
    """A program between two ranges of ticks: what it keeps, and which tick comes next."""

    plan: TickPlan
    spark: SparkSession
    settings: Settings
    next: int = 0
    kept: dict[str, pa.Table] = field(default_factory=dict)

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The kept rows of a slot: this is the `Past` of the next range."""
        table = self.kept.get(slot.id)
        if table is None or not table.num_rows:
            return None
        return self.spark.createDataFrame(table)

    def run(self, ticks: Sequence[TickInput]) -> Iterator[Outputs]:
        """The outputs of the next ticks, as one range or as few as may be.

        If a tick fails, those before it are kept.
        """
        start, last = self.next, self.next + len(ticks) - 1
        longest = longest_range(self.plan, self.settings)
        parts = in_parts(
            start, last, longest, lambda a, b: self._run(ticks[a - start : b - start + 1])
        )
        for part in parts:
            yield from part

    def _run(self, ticks: Sequence[TickInput]) -> list[Outputs]:
        first, last = self.next, self.next + len(ticks) - 1
        try:
            result = run_range(
                self.plan,
                first,
                last,
                spark=self.spark,
                sources=self._sources(ticks),
                past=self,
                settings=self.settings,
                times={first + i: (t.start, t.end) for i, t in enumerate(ticks) if t.start},
                settle=collected,
            )
            tables = self._collect(result, first, last)
        except Exception as error:
            if is_spark_error(error):
                raise data_error(error, self.plan.typed) from error
            raise
        self._keep(tables)
        self.next = last + 1
        return self._outputs(tables, first, last)

    def _sources(self, ticks: Sequence[TickInput]) -> Mapping[str, DataFrame]:
        """The batches of each input that has any item."""
        found = {}
        for name, node in self.plan.graph.sources.items():
            item = self.plan.typed.types[Endpoint(node.id)].item
            pairs = [
                (self.next + i, x) for i, t in enumerate(ticks) for x in t.batches.get(name, ())
            ]
            if pairs:
                found[name] = frame_of(self.spark, pairs, item)
        return found

    def _collect(self, result: RangeResult, first: int, last: int) -> dict[str, pa.Table]:
        """All outputs and slots, each a table (item, t[, ord]), by one job."""
        frames = {}
        for name, relation in result.outputs.items():
            events = relation.events(first, last)
            frame = positioned(events) if events.ordered else events.frame.select(ITEM, TICK)
            frames[_output(name)] = exactly(frame, relation.item)
        frames |= {_slot(slot): frame for slot, frame in result.state.items()}
        return collect(frames)

    def _keep(self, tables: Mapping[str, pa.Table]) -> None:
        for slot in self.plan.slots:
            new, old = tables[_slot(slot.id)], self.kept.get(slot.id)
            if slot.mode is not Mode.LAST and old is not None:
                new = pa.concat_tables([old, new])
            self.kept[slot.id] = new.combine_chunks()

    def _outputs(self, tables: Mapping[str, pa.Table], first: int, last: int) -> list[Outputs]:
        types = self.plan.typed.outputs
        found = {name: _by_tick(tables[_output(name)], t.item) for name, t in types.items()}
        return [
            {name: ticks.get(t, []) for name, ticks in found.items()}
            for t in range(first, last + 1)
        ]


def _output(name: str) -> str:
    return f"output {name}"


def _slot(slot: str) -> str:
    return f"slot {slot}"


def collect(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of several frames (item, t[, ord] or [, n]), by one job.

    Each brings a column of its own to a wide table.
    """
    wide = None
    for i, frame in enumerate(frames.values()):
        more = _beside(frame)
        beside = F.lit(None).cast("long") if more is None else F.col(more)
        one = frame.select(
            F.lit(i).alias("of"), TICK, beside.alias(ORD), F.col(ITEM).alias(f"i{i}")
        )
        wide = one if wide is None else wide.unionByName(one, allowMissingColumns=True)
    if wide is None:
        return {}
    table = wide.toArrow()
    return {name: _part(table, i, _beside(frame)) for i, (name, frame) in enumerate(frames.items())}


def _beside(frame: DataFrame) -> str | None:
    """The column beside item and tick: a position, or a number of copies."""
    return next((name for name in (ORD, COUNT) if name in frame.columns), None)


def _part(table: pa.Table, number: int, beside: str | None) -> pa.Table:
    """The rows of one frame out of the wide table."""
    names = [f"i{number}", TICK, *([ORD] if beside else [])]
    rows = table.filter(pc.field("of") == number).select(names)
    # Made anew, so that every column may hold nulls whatever Spark knows of it.
    return pa.Table.from_arrays(rows.columns, names=[ITEM, TICK, *([beside] if beside else [])])


def _by_tick(table: pa.Table, item: ItemType) -> dict[int, list[Any]]:
    """The items of each tick: in their order if the table has one, else sorted."""
    ordered = ORD in table.column_names
    if ordered:
        table = table.sort_by(ORD)
    found: dict[int, list[Any]] = {}
    ticks: list[Any] = table[TICK].to_pylist()
    for t, x in zip(ticks, from_arrow(table[ITEM], item), strict=True):
        found.setdefault(t, []).append(x)
    return found if ordered else {t: sorted(items, key=sort_key) for t, items in found.items()}
