"""Row-wise operators, and the sources and sinks of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.classes import (
    EmptyStream,
    ExternalItems,
    ItemEffect,
    Output,
    PerItem,
    Projection,
)
from hydro_core.catalog.spec import (
    COMPUTED,
    LINEAR,
    Arg,
    Example,
    FailureMode,
    HeldByAll,
    OpSpec,
    option,
)
from hydro_core.functions.tree import Fn

# Beginnings and ends of streams.


_end = partial(OpSpec, family="io")

SOURCE = _end(
    name="source",
    cls=ExternalItems(),
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
    cls=ExternalItems(),
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
    cls=ExternalItems(),
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
    cls=EmptyStream(),
    summary="discards what flows in; or a stream without items",
    inputs=LINEAR,
    optional_input=True,
    example=Example.of("null() -> out; a -> null()", "long", [1], []),
)


# Row-wise operators.


_FUNCTION = (Arg("f", "function", "the function of an item", required=True),)


_per_item = partial(
    OpSpec, family="itemwise", inputs=LINEAR, keeps_single=True, fails=FailureMode.NEVER
)
"""A row-wise operator; most never fail on an item, and none gives several items for one."""


def _numbers(program: str, gives: list[object], items: tuple[int, ...] = (1, 2, 3)) -> Example:
    return Example.of(program, "long", list(items), gives)


def _rows(program: str, *gives: dict[str, object]) -> Example:
    rows = [{"k": "x", "v": 1}, {"k": "y", "v": 2}]
    return Example.of(program, "k string, v long", rows, list(gives))


def _selected(args: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, str | Fn]:
    return {name: name for name in args["columns"]} | dict(args["computed"])


def _with_columns(args: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, str | Fn]:
    return {name: name for name in names} | dict(args["computed"])


def _renamed(args: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, str | Fn]:
    new = {old: name for name, old in args["renames"]}
    return {new.get(name, name): name for name in names}


def _dropped(args: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, str | Fn]:
    return {name: name for name in names if name not in args["columns"]}


IDENTITY = _per_item(
    name="identity",
    cls=PerItem(ItemEffect.SAME),
    summary="the item itself",
    example=_numbers("a -> identity() -> out", [1, 2, 3]),
)
MAP = _per_item(
    name="map",
    cls=PerItem(ItemEffect.ONE),
    summary="`f(x)` of each item",
    result=type_rules.mapped,
    example=_numbers("a -> map(lambda x: x * 10) -> out", [10, 20, 30]),
    args=_FUNCTION,
    lineage=lineage_rules.by_function(),
)
FILTER = _per_item(
    name="filter",
    cls=PerItem(ItemEffect.SOME),
    summary="the items for which `f(x)` is true",
    result=type_rules.tested,
    example=_numbers("a -> filter(lambda x: x > 1) -> out", [2, 3]),
    args=_FUNCTION,
)
FILTER_MAP = _per_item(
    name="filter_map",
    cls=PerItem(ItemEffect.UP_TO_ONE),
    summary="`f(x)` of each item, where it is not None",
    result=type_rules.mapped,
    example=_numbers("a -> filter_map(lambda x: x * 10 if x > 1 else None) -> out", [20, 30]),
    args=_FUNCTION,
    lineage=lineage_rules.by_function("optional"),
)
INSPECT = _per_item(
    name="inspect",
    cls=PerItem(ItemEffect.SAME),
    summary="the item itself; `f` may look at it",
    result=type_rules.tested,
    example=_numbers("a -> inspect(lambda x: x) -> out", [1, 2, 3]),
    args=_FUNCTION,
)
SELECT = _per_item(
    name="select",
    cls=Projection(_selected, only=True),
    summary="the named columns, then the computed ones, nothing else",
    result=column_rules.selected,
    example=_rows(
        'a -> select("k", w=lambda r: r.v + 1) -> out', {"k": "x", "w": 2}, {"k": "y", "w": 3}
    ),
    args=(
        Arg("columns", "named_columns", "columns that stay, in this order", default=()),
        COMPUTED,
    ),
    lineage=lineage_rules.projected(_selected),
)
WITH_COLUMNS = _per_item(
    name="with_columns",
    cls=Projection(_with_columns),
    summary="adds or replaces the computed columns",
    result=column_rules.with_columns,
    example=_rows(
        "a -> with_columns(v=lambda r: r.v * 2, w=lambda r: r.v) -> out",
        {"k": "x", "v": 2, "w": 1},
        {"k": "y", "v": 4, "w": 2},
    ),
    args=(replace(COMPUTED, required=True, default=None),),
    lineage=lineage_rules.projected(_with_columns),
)
RENAME = _per_item(
    name="rename",
    cls=Projection(_renamed),
    summary='new names for columns, in their places: `rename(new="old")`',
    result=column_rules.renamed,
    example=_rows('a -> rename(key="k") -> out', {"key": "x", "v": 1}, {"key": "y", "v": 2}),
    args=(Arg("renames", "renames", "the new name of a column, and its old", required=True),),
    lineage=lineage_rules.projected(_renamed),
)
DROP = _per_item(
    name="drop",
    cls=Projection(_dropped),
    summary="the row without the named columns",
    result=column_rules.dropped,
    example=_rows('a -> drop("k") -> out', {"v": 1}, {"v": 2}),
    args=(Arg("columns", "named_columns", "the columns that go", required=True),),
)
FLAT_MAP = _per_item(
    name="flat_map",
    cls=PerItem(ItemEffect.SEVERAL),
    summary="the elements of `f(x)`, an array or a tuple",
    result=type_rules.spread_mapped,
    example=_numbers("a -> flat_map(lambda x: [x] * x) -> out", [1, 2, 2, 3, 3, 3]),
    args=_FUNCTION,
    keeps_single=False,
    fails=FailureMode.ON_RESULTS,
    lineage=lineage_rules.by_function("elements"),
)
FLATTEN = _per_item(
    name="flatten",
    cls=PerItem(ItemEffect.SEVERAL),
    summary="the elements of the item, an array or a tuple",
    result=type_rules.flattened,
    example=Example.of("a -> flatten() -> out", "array<long>", [[1, 2], [], [3]], [1, 2, 3]),
    keeps_single=False,
    fails=FailureMode.ON_ITEMS,
    lineage=lineage_rules.computed_from_all,
)
TEE = OpSpec(
    name="tee",
    family="itemwise",
    cls=PerItem(ItemEffect.SAME),
    summary="copies of the stream; implicit wherever a name is used twice",
    inputs=LINEAR,
    outputs="copies",
    keeps_single=True,
    example=Example(
        "t = a -> tee(); t[0] -> out; t[1] -> map(lambda x: x + 1) -> more",
        ({"a": [1, 2]},),
        ({"out": [1, 2], "more": [2, 3]},),
        {"a": "long"},
    ),
)
PARTITION = OpSpec(
    name="partition",
    family="itemwise",
    cls=PerItem(ItemEffect.ROUTED),
    summary="each item goes to the port that `f` names; an undeclared one fails the tick",
    inputs=LINEAR,
    outputs="ports",
    args=(
        *_FUNCTION,
        Arg("ports", "ports", "the ports that there are: words or numbers", required=True),
    ),
    result=type_rules.routed,
    keeps_single=True,
    aliases=("demux",),
    example=Example(
        'p = a -> partition(lambda x: "even" if x % 2 == 0 else "odd", ["even", "odd"])\n'
        "p[even] -> evens\n"
        "p[odd] -> odds",
        ({"a": [1, 2, 3]},),
        ({"evens": [2], "odds": [1, 3]},),
        {"a": "long"},
    ),
)
