"""Operators that look at one item at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.classes import OpClass, PerItem, Projection
from hydro_core.catalog.inputs import COMPUTED, LINEAR
from hydro_core.catalog.spec import Arg, Example, Fails, LineageRule, OpSpec, TypeRule
from hydro_core.catalog.variants import Gives
from hydro_core.functions.fn import Fn

_FUNCTION = (Arg("f", "function", required=True, summary="the function of an item"),)


def _per_item(  # noqa: PLR0913 - the columns that differ among these
    name: str,
    cls: OpClass,
    summary: str,
    result: TypeRule,
    example: Example,
    *,
    args: tuple[Arg, ...] = (),
    at_most_one: bool = True,
    fails: Fails = Fails.NEVER,
    lineage: LineageRule | None = None,
) -> OpSpec:
    return OpSpec(
        name=name,
        family="itemwise",
        cls=cls,
        summary=summary,
        inputs=LINEAR,
        args=args,
        result=result,
        keeps_single=at_most_one,
        fails=fails,
        lineage=lineage,
        example=example,
    )


def _numbers(program: str, gives: list[object], items: tuple[int, ...] = (1, 2, 3)) -> Example:
    return Example(program, ({"a": list(items)},), ({"out": gives},), {"a": "long"})


def _rows(program: str, *gives: dict[str, object]) -> Example:
    rows = [{"k": "x", "v": 1}, {"k": "y", "v": 2}]
    return Example(program, ({"a": rows},), ({"out": list(gives)},), {"a": "k string, v long"})


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
    "identity",
    PerItem(Gives.SAME),
    "the item itself",
    type_rules.first,
    _numbers("a -> identity() -> out", [1, 2, 3]),
)
MAP = _per_item(
    "map",
    PerItem(Gives.ONE),
    "`f(x)` of each item",
    type_rules.mapped,
    _numbers("a -> map(lambda x: x * 10) -> out", [10, 20, 30]),
    args=_FUNCTION,
    lineage=lineage_rules.by_function(),
)
FILTER = _per_item(
    "filter",
    PerItem(Gives.SOME),
    "the items for which `f(x)` is true",
    type_rules.tested,
    _numbers("a -> filter(lambda x: x > 1) -> out", [2, 3]),
    args=_FUNCTION,
)
FILTER_MAP = _per_item(
    "filter_map",
    PerItem(Gives.UP_TO_ONE),
    "`f(x)` of each item, where it is not None",
    type_rules.mapped,
    _numbers("a -> filter_map(lambda x: x * 10 if x > 1 else None) -> out", [20, 30]),
    args=_FUNCTION,
    lineage=lineage_rules.by_function("optional"),
)
INSPECT = _per_item(
    "inspect",
    PerItem(Gives.SAME),
    "the item itself; `f` may look at it",
    type_rules.tested,
    _numbers("a -> inspect(lambda x: x) -> out", [1, 2, 3]),
    args=_FUNCTION,
)
SELECT = _per_item(
    "select",
    Projection(_selected, only=True),
    "the named columns, then the computed ones, nothing else",
    column_rules.selected,
    _rows('a -> select("k", w=lambda r: r.v + 1) -> out', {"k": "x", "w": 2}, {"k": "y", "w": 3}),
    args=(
        Arg("columns", "named_columns", default=(), summary="columns that stay, in this order"),
        COMPUTED,
    ),
    lineage=lineage_rules.projected(_selected),
)
WITH_COLUMNS = _per_item(
    "with_columns",
    Projection(_with_columns),
    "adds or replaces the computed columns",
    column_rules.with_columns,
    _rows(
        "a -> with_columns(v=lambda r: r.v * 2, w=lambda r: r.v) -> out",
        {"k": "x", "v": 2, "w": 1},
        {"k": "y", "v": 4, "w": 2},
    ),
    args=(replace(COMPUTED, required=True, default=None),),
    lineage=lineage_rules.projected(_with_columns),
)
RENAME = _per_item(
    "rename",
    Projection(_renamed),
    'new names for columns, in their places: `rename(new="old")`',
    column_rules.renamed,
    _rows('a -> rename(key="k") -> out', {"key": "x", "v": 1}, {"key": "y", "v": 2}),
    args=(
        Arg("renames", "renames", required=True, summary="the new name of a column, and its old"),
    ),
    lineage=lineage_rules.projected(_renamed),
)
DROP = _per_item(
    "drop",
    Projection(_dropped),
    "the row without the named columns",
    column_rules.dropped,
    _rows('a -> drop("k") -> out', {"v": 1}, {"v": 2}),
    args=(Arg("columns", "named_columns", required=True, summary="the columns that go"),),
)
FLAT_MAP = _per_item(
    "flat_map",
    PerItem(Gives.SEVERAL),
    "the elements of `f(x)`, an array or a tuple",
    type_rules.spread_mapped,
    _numbers("a -> flat_map(lambda x: [x] * x) -> out", [1, 2, 2, 3, 3, 3]),
    args=_FUNCTION,
    at_most_one=False,
    fails=Fails.ON_RESULTS,
    lineage=lineage_rules.by_function("elements"),
)
FLATTEN = _per_item(
    "flatten",
    PerItem(Gives.SEVERAL),
    "the elements of the item, an array or a tuple",
    type_rules.flattened,
    Example(
        "a -> flatten() -> out",
        ({"a": [[1, 2], [], [3]]},),
        ({"out": [1, 2, 3]},),
        {"a": "array<long>"},
    ),
    at_most_one=False,
    fails=Fails.ON_ITEMS,
    lineage=lineage_rules.computed_from_all,
)
TEE = OpSpec(
    name="tee",
    family="itemwise",
    cls=PerItem(Gives.SAME),
    summary="copies of the stream; implicit wherever a name is used twice",
    inputs=LINEAR,
    outputs="copies",
    result=type_rules.first,
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
    cls=PerItem(Gives.ROUTED),
    summary="each item goes to the port that `f` names; an undeclared one fails the tick",
    inputs=LINEAR,
    outputs="ports",
    args=(
        *_FUNCTION,
        Arg("ports", "ports", required=True, summary="the ports that there are: words or numbers"),
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

ENTRIES = (
    IDENTITY,
    MAP,
    FILTER,
    FILTER_MAP,
    INSPECT,
    SELECT,
    WITH_COLUMNS,
    RENAME,
    DROP,
    FLAT_MAP,
    FLATTEN,
    TEE,
    PARTITION,
)
