"""Where streams begin and end."""

from __future__ import annotations

from functools import partial

from hydro_core.catalog import type_rules
from hydro_core.catalog.classes import Empty, Given, Output
from hydro_core.catalog.inputs import LINEAR
from hydro_core.catalog.spec import Arg, Example, HeldByAll, OpSpec, option

_end = partial(OpSpec, family="io")

SOURCE = _end(
    name="source",
    cls=Given(),
    summary="the tick's input batch",
    inputs=(),
    args=(
        Arg("schema", "schema", "the type of the items, in Spark's DDL", required=True),
        option("name", "name", "the input's name, where it is not that of the statement"),
        option(
            "fds",
            "fds",
            'fields that determine others, believed: `{"city": "country"}`',
            default=(),
        ),
    ),
    result=type_rules.declared,
    example=Example(
        program='words = source("string"); words -> out',
        ticks=({"words": ["a", "b"]}, {"words": []}),
        gives=({"out": ["a", "b"]}, {"out": []}),
    ),
)

SOURCE_ITER = _end(
    name="source_iter",
    cls=Given(),
    summary="the items at tick 0, empty after",
    inputs=(),
    args=(
        Arg("items", "items", "a list of items, written out", required=True),
        option("schema", "schema", "their type, where they do not tell"),
    ),
    result=type_rules.listed,
    time_invariant=False,
    partition=HeldByAll(),
    example=Example(
        program="source_iter([1, 2]) -> out",
        ticks=({}, {}),
        gives=({"out": [1, 2]}, {"out": []}),
    ),
)

TICK = _end(
    name="tick",
    cls=Given(),
    summary="one row each tick: its number, and its times where the ticks have them",
    inputs=(),
    result=type_rules.tick_row,
    zero=False,
    time_invariant=False,
    partition=HeldByAll(),
    single=True,
    example=Example(
        program='tick() -> select("tick") -> out',
        ticks=({}, {}),
        gives=({"out": [{"tick": 0}]}, {"out": [{"tick": 1}]}),
    ),
)

SINK = _end(
    name="sink",
    cls=Output(),
    summary="the output of that name; several sinks of one name add up",
    inputs=LINEAR,
    args=(Arg("name", "name", "the name of the output", required=True),),
    outputs="none",
    example=Example(
        program='a -> sink("out"); b -> sink("out")',
        ticks=({"a": [1], "b": [1, 2]},),
        gives=({"out": [1, 1, 2]},),
        schemas={"a": "long", "b": "long"},
    ),
)

NULL = _end(
    name="null",
    cls=Empty(),
    summary="discards what flows in; or a stream without items",
    inputs=LINEAR,
    optional_input=True,
    example=Example.of("null() -> out; a -> null()", "long", [1], []),
)
