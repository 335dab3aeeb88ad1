"""Where streams begin and end."""

from __future__ import annotations

from hydro_core.catalog import type_rules
from hydro_core.catalog.classes import Empty, Given, Output
from hydro_core.catalog.inputs import LINEAR
from hydro_core.catalog.spec import Arg, Example, HeldByAll, OpSpec

SOURCE = OpSpec(
    name="source",
    family="io",
    cls=Given(),
    summary="the tick's input batch",
    inputs=(),
    args=(
        Arg("schema", "schema", required=True, summary="the type of the items, in Spark's DDL"),
        Arg(
            "name",
            "name",
            positional=False,
            summary="the input's name, where it is not that of the statement",
        ),
        Arg(
            "fds",
            "fds",
            positional=False,
            default=(),
            summary='fields that determine others, believed: `{"city": "country"}`',
        ),
    ),
    result=type_rules.declared,
    example=Example(
        program='words = source("string"); words -> out',
        ticks=({"words": ["a", "b"]}, {"words": []}),
        gives=({"out": ["a", "b"]}, {"out": []}),
    ),
)

SOURCE_ITER = OpSpec(
    name="source_iter",
    family="io",
    cls=Given(),
    summary="the items at tick 0, empty after",
    inputs=(),
    args=(
        Arg("items", "items", required=True, summary="a list of items, written out"),
        Arg("schema", "schema", positional=False, summary="their type, where they do not tell"),
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

TICK = OpSpec(
    name="tick",
    family="io",
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

SINK = OpSpec(
    name="sink",
    family="io",
    cls=Output(),
    summary="the output of that name; several sinks of one name add up",
    inputs=LINEAR,
    args=(Arg("name", "name", required=True, summary="the name of the output"),),
    outputs="none",
    result=type_rules.first,
    example=Example(
        program='a -> sink("out"); b -> sink("out")',
        ticks=({"a": [1], "b": [1, 2]},),
        gives=({"out": [1, 1, 2]},),
        schemas={"a": "long", "b": "long"},
    ),
)

NULL = OpSpec(
    name="null",
    family="io",
    cls=Empty(),
    summary="discards what flows in; or a stream without items",
    inputs=LINEAR,
    optional_input=True,
    result=type_rules.first,
    example=Example(
        program="null() -> out; a -> null()",
        ticks=({"a": [1]},),
        gives=({"out": []},),
        schemas={"a": "long"},
    ),
)

ENTRIES = (SOURCE, SOURCE_ITER, TICK, SINK, NULL)
