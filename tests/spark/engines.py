"""Runs programs on Spark in every way of cutting their ticks into ranges, and on the reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import given_types, read_ticks
from hydro_core.settings import Settings
from hydro_core.spark.executor.memory import Memory
from hydro_core.spark.session.session import few_rows_session
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.json import to_json

Tick = Mapping[str, Sequence[Any]]
Json = list[dict[str, list[Any]]]

# A small limit, so that a cycle that never ends is soon found out.
SETTINGS = Settings().with_(max_iterations=60)


def program(text: str, schemas: Mapping[str, str], ticks: Sequence[Tick]) -> CompiledProgram:
    graph = parse(text)
    return compile_graph(graph, given_types(graph, schemas, ticks))


def on_reference(of: CompiledProgram, ticks: Sequence[Tick]) -> Json:
    return as_json(of, run_ticks(of.typed, of.strata, read_ticks(of.typed, ticks), SETTINGS))


def on_spark(
    of: CompiledProgram,
    ticks: Sequence[Tick],
    ranges: Iterable[int],
    spark: SparkSession,
    calendar: Calendar | None = None,
) -> Json:
    """The ticks cut into ranges of these lengths."""
    memory = Memory(plan(of.typed), few_rows_session(spark), SETTINGS)
    given = iter(list(read_ticks(of.typed, ticks, calendar)))
    found = []
    for length in ranges:
        found += memory.run([next(given) for _ in range(length)])
    return as_json(of, found)


def assert_same(
    of: CompiledProgram, ticks: Sequence[Tick], ways: Iterable[Sequence[int]], spark: SparkSession
) -> None:
    """Each of these ways of cutting the ticks into ranges gives what the reference gives."""
    wanted = repr(on_reference(of, ticks))
    for ranges in ways:
        assert repr(on_spark(of, ticks, ranges, spark)) == wanted, ranges


def as_json(of: CompiledProgram, ticks: Iterable[Mapping[str, list[Any]]]) -> Json:
    outputs = of.typed.outputs
    return [
        {name: [to_json(x, outputs[name].item) for x in items] for name, items in tick.items()}
        for tick in ticks
    ]


def cuts(ticks: int) -> Iterator[tuple[int, ...]]:
    """Single ticks, all ticks at once, and every cut in two."""
    yield (1,) * ticks
    if ticks > 1:
        yield (ticks,)
    for first in range(1, ticks):
        yield first, ticks - first
