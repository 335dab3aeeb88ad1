"""Programs as pipelines in a directory: ticks in ranges, each by settings of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from hydro_core.catalog.itemwise import SINK
from hydro_core.compile import CompiledProgram, best_plan, compile_graph, planned
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.lang.resolve import parse
from hydro_core.settings import Settings
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rows import output_items
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import ItemType, Row

FEW = Settings().with_(max_iterations=60)
MANY = FEW.with_(few_rows=0, small_write_rows=0)
"""Whatever comes is much: Spark computes and writes all of it."""


class Part(NamedTuple):
    """So many ticks as one range, by these settings."""

    ticks: int
    settings: Settings


def single(settings: Settings, ticks: int) -> Iterator[Part]:
    """Tick by tick."""
    return (Part(1, settings) for _ in range(ticks))


def switched(ticks: int) -> Iterator[Part]:
    """A tick of few rows, one of many, two as a range of many, a tick of few, and again."""
    parts = (Part(1, FEW), Part(1, MANY), Part(2, MANY))
    for part in cycle(parts):
        if not ticks:
            return
        length = min(part.ticks, ticks)
        yield Part(length, part.settings)
        ticks -= length


Mode = Callable[[int], Iterator[Part]]
"""How so many ticks are cut into ranges, each with its settings."""
MODES: Mapping[str, Mode] = {
    "few": lambda ticks: single(FEW, ticks),
    "many": lambda ticks: single(MANY, ticks),
    "switched": switched,
}


def stored_outputs(
    directory: Path,
    program: CompiledProgram,
    ticks: Sequence[TickInput],
    mode: str | Mode,
    spark: SparkSession,
    *,
    optimize: bool = True,
    reopen: bool = True,
) -> list[Outputs]:
    """The outputs as of each tick, read when it is committed and, once more, when all are.

    Without `reopen` the parts of the same settings are of one pipeline, which keeps its plans.
    """
    parts = MODES[mode] if isinstance(mode, str) else mode
    plan = planned(program, best_plan(program) if optimize else None)
    items = {name: stream.item for name, stream in program.typed.inputs.items()}
    found: list[Outputs] = []
    opened: dict[Settings, Pipeline] = {}
    first = 0
    for length, settings in parts(len(ticks)):
        pipeline = opened.get(settings) or Pipeline(directory, plan, settings, spark)
        opened |= {} if reopen else {settings: pipeline}
        last = first + length - 1
        batches = {name: batch(name, of, ticks, first, last) for name, of in items.items()}
        times = {t: (ticks[t].start, ticks[t].end) for t in range(first, last + 1)}
        timed = {t: ends for t, ends in times.items() if None not in ends}
        pipeline.run_range(first, last, batches, times=timed)
        found += outputs_at(pipeline, range(first, last + 1))
        first = last + 1
    again = outputs_at(pipeline, range(len(ticks)))
    assert repr(again) == repr(found), "committed ticks have changed"
    return found


_TAKEN = {"tick": "kept_tick", "position": "kept_position"}
"""Columns whose names a table has for itself, and others for them."""


def storable(program: CompiledProgram) -> CompiledProgram:
    """The program, with columns renamed at its outputs that a table could not have."""
    nodes: list[Node] = []
    for node in program.graph:
        item = program.typed.types[node.inputs[0]].item if node.op is SINK else None
        taken = [n for n in _TAKEN if isinstance(item, Row) and n in item.names]
        reads = node.inputs
        for name in taken:
            graph = parse(f'x = source("{name} long") -> rename({_TAKEN[name]}="{name}") -> o')
            [rename] = (n for n in graph if n.op.name == "rename")
            nodes.append(rename.with_(id=f"{node.id} without {name}", inputs=reads))
            reads = (Endpoint(f"{node.id} without {name}"),)
        nodes.append(node.with_(inputs=reads))
    types = {name: stream.item for name, stream in program.typed.inputs.items()}
    return compile_graph(Graph.of(nodes, program.graph.name, program.graph.warnings), types)


def as_named(value: Any) -> Any:
    """An item of JSON with its own names again."""
    if not isinstance(value, dict):
        return value
    own = {new: old for old, new in _TAKEN.items()}
    return {own.get(name, name): part for name, part in value.items()}


def outputs_at(pipeline: Pipeline, ticks: range) -> list[Outputs]:
    tables = pipeline.output_tables
    return [
        {name: output_items(pipeline.output(name, tick), spec) for name, spec in tables.items()}
        for tick in ticks
    ]


def batch(name: str, of: ItemType, ticks: Sequence[TickInput], first: int, last: int) -> Batch:
    """The items of an input in a range."""
    pairs = [(t, x) for t in range(first, last + 1) for x in ticks[t].batches.get(name, ())]
    values: Any = to_arrow([item for _, item in pairs], of)
    schema = pa.schema([(ITEM, arrow_type(of)), (TICK, pa.int64())])
    columns: Mapping[str, Any] = {ITEM: values.cast(arrow_type(of)), TICK: [t for t, _ in pairs]}
    return Batch(pa.table(columns, schema=schema), of, InputRead(name, len(pairs)))
