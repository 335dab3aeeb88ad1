"""Operators that only plans have: a program cannot name them.

Most are the optimizer's. Running ones store their own result: `running_fold(a)` is
`fold(persist(a))` at the price of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from hydro_core.catalog import in_order, lineage_rules, type_rules
from hydro_core.catalog.classes import ByKey, OrderedByKey, PerItem, Running
from hydro_core.catalog.group import AGGREGATE, FOLD, FOLD_KEYED, LATEST, REDUCE, REDUCE_KEYED
from hydro_core.catalog.inputs import LINEAR, WHOLE
from hydro_core.catalog.ordered import TOP
from hydro_core.catalog.registry import lookup
from hydro_core.catalog.results import over_items
from hydro_core.catalog.spec import (
    Arg,
    Args,
    Barrier,
    Example,
    Fails,
    OpSpec,
    Port,
    State,
)
from hydro_core.catalog.tails import RUNNING_OVER
from hydro_core.catalog.variants import Gives, Summary
from hydro_core.functions.attempt import Use

_PAIRS = {"a": "(string, long)"}


def _running_columns(args: Args, *, changes: bool = False) -> Mapping[str, Any]:
    columns = AGGREGATE.at(args)
    assert isinstance(columns.cls, ByKey)
    cls = Running(columns.cls, changes)
    return {
        "cls": cls,
        "zero": columns.zero,
        "single": columns.single,
        "partition": columns.partition,
    }


def _running_first_columns(args: Args) -> Mapping[str, Any]:
    columns = TOP.at(args)
    assert isinstance(columns.cls, OrderedByKey)
    return {"cls": Running(columns.cls), "partition": columns.partition}


_COLUMNS: Mapping[str, Callable[[Args], Mapping[str, Any]]] = {
    AGGREGATE.name: _running_columns,
    TOP.name: _running_first_columns,
}


def _running(op: OpSpec, example: Example) -> OpSpec:
    """The operator over all that came so far, of which it gets what is new in each tick."""
    cls = over_items(op.cls)
    assert cls is not None
    return replace(
        op,
        name=f"running_{op.name}",
        cls=Running(cls),
        summary=f"`{op.name}` of all items of the ticks up to this one",
        inputs=(Port("new", barrier=Barrier.STRATUM, aliases=("0",)),),
        refine=_COLUMNS.get(op.name),
        state=State.RESULT,
        stands_for=op.name,
        aliases=(),
        example=example,
    )


RUNNING_FOLD = _running(
    FOLD,
    Example(
        "a -> persist() -> fold(0, lambda acc, x: acc + x, commutative=True) -> out",
        ({"a": [1, 2]}, {"a": []}, {"a": [4]}),
        ({"out": [3]}, {"out": [3]}, {"out": [7]}),
        {"a": "long"},
    ),
)

RUNNING_REDUCE = _running(
    REDUCE,
    Example(
        "a -> persist() -> reduce(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": []}, {"a": [1, 2]}, {"a": [1]}),
        ({"out": []}, {"out": [2]}, {"out": [2]}),
        {"a": "long"},
    ),
)

RUNNING_FOLD_KEYED = _running(
    FOLD_KEYED,
    Example(
        "a -> persist() -> fold_keyed(0, lambda acc, v: acc + v, commutative=True) -> out",
        ({"a": [["x", 1], ["y", 2]]}, {"a": [["x", 3]]}),
        ({"out": [["x", 1], ["y", 2]]}, {"out": [["x", 4], ["y", 2]]}),
        _PAIRS,
    ),
)

RUNNING_REDUCE_KEYED = _running(
    REDUCE_KEYED,
    Example(
        "a -> persist() -> reduce_keyed(lambda x, y: max(x, y), commutative=True) -> out",
        ({"a": [["x", 1], ["y", 2]]}, {"a": [["x", 3]]}),
        ({"out": [["x", 1], ["y", 2]]}, {"out": [["x", 3], ["y", 2]]}),
        _PAIRS,
    ),
)

RUNNING_LATEST = _running(
    LATEST,
    Example(
        'a -> persist() -> latest(by="k", order="at") -> out',
        ({"a": [{"k": "x", "at": 1}, {"k": "y", "at": 2}]}, {"a": [{"k": "x", "at": 3}]}),
        (
            {"out": [{"k": "x", "at": 1}, {"k": "y", "at": 2}]},
            {"out": [{"k": "x", "at": 3}, {"k": "y", "at": 2}]},
        ),
        {"a": "k string, at long"},
    ),
)

RUNNING_AGGREGATE = _running(
    AGGREGATE,
    Example(
        'a -> persist() -> aggregate(by="k", n=count(), total=sum("v")) -> out',
        ({"a": [{"k": "x", "v": 1}]}, {"a": [{"k": "x", "v": 2}, {"k": "y", "v": None}]}),
        (
            {"out": [{"k": "x", "n": 1, "total": 1}]},
            {"out": [{"k": "x", "n": 2, "total": 3}, {"k": "y", "n": 1, "total": None}]},
        ),
        {"a": "k string, v long"},
    ),
)

RUNNING_TOP = _running(
    TOP,
    Example(
        'a -> persist() -> top(1, by="k", order="v", descending=True) -> out',
        ({"a": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}, {"a": [{"k": "x", "v": 3}]}),
        (
            {"out": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]},
            {"out": [{"k": "x", "v": 3}, {"k": "y", "v": 2}]},
        ),
        {"a": "k string, v long"},
    ),
)

MOVING_AGGREGATE = replace(
    RUNNING_AGGREGATE,
    name="moving_aggregate",
    cls=Running(ByKey(Summary.AGGREGATES), changes=True),
    refine=partial(_running_columns, changes=True),
    summary="counts and totals, made anew by what comes and what goes; a key without rows is gone",
    inputs=WHOLE,
    example=Example(
        'a -> window(2) -> aggregate(by="k", total=sum("v")) -> out',
        ({"a": [{"k": "x", "v": 1}]}, {"a": [{"k": "x", "v": 2}]}, {"a": []}, {"a": []}),
        (
            {"out": [{"k": "x", "total": 1}]},
            {"out": [{"k": "x", "total": 3}]},
            {"out": [{"k": "x", "total": 2}]},
            {"out": []},
        ),
        {"a": "k string, v long"},
    ),
)

AGGREGATE_RESULT = OpSpec(
    name="aggregate_result",
    family="itemwise",
    cls=PerItem(Gives.RESULT),
    summary="the aggregates that are made of the parts of a row, `avg` of a total and a count",
    inputs=LINEAR,
    args=(*AGGREGATE.args, Arg("schema", "schema", required=True)),
    result=type_rules.declared_rows,
    keeps_single=True,
    lineage=lineage_rules.aggregated,
    stands_for="aggregate",
    example=Example(
        'a -> persist() -> aggregate(by="k", mean=avg("v")) -> out',
        ({"a": [{"k": "x", "v": 1}]}, {"a": [{"k": "x", "v": 2}]}),
        ({"out": [{"k": "x", "mean": 1.0}]}, {"out": [{"k": "x", "mean": 1.5}]}),
        {"a": "k string, v long"},
    ),
)

OF_SHARD = OpSpec(
    name="of_shard",
    family="itemwise",
    cls=PerItem(Gives.ROUTED),
    summary="the items of one of several shards, by the fields `by` or the value of `f`; where `f` "
    "fails, or nothing is named, of the first",
    inputs=LINEAR,
    args=(
        Arg("by", "value", required=True),
        Arg("f", "function"),
        Arg("shards", "integer", required=True, least=1),
        Arg("shard", "integer", required=True),
    ),
    result=type_rules.first,
    keeps_single=True,
    stands_for="identity",
    example=Example("a -> identity() -> out", ({"a": [1, 2]},), ({"out": [1, 2]},), {"a": "long"}),
)

_CALLS = (
    Arg("calls", "computed", required=True),
    Arg("use", "choice", required=True, choices=tuple(Use)),
    Arg("ports", "ports", default=()),
)

FITTING = OpSpec(
    name="fitting",
    family="itemwise",
    cls=PerItem(Gives.ROUTED),
    summary="the items for which the functions `calls` of the operator behind it have a result",
    inputs=LINEAR,
    args=_CALLS,
    result=type_rules.first,
    keeps_single=True,
    fails=Fails.NEVER,
    stands_for="identity",
    example=Example("a -> identity() -> out", ({"a": [1, 2]},), ({"out": [1, 2]},), {"a": "long"}),
)

FAILING = OpSpec(
    name="failing",
    family="itemwise",
    cls=PerItem(Gives.UP_TO_ONE),
    summary="of the other items what they are, and which function fails on them and why",
    inputs=LINEAR,
    args=(
        *_CALLS,
        Arg("source", "name", required=True),
        Arg("schema", "schema", required=True),
        # Functions of equal text are one to the optimizer; where each stands is no part of them.
        Arg("place", "name", required=True),
    ),
    result=type_rules.declared_rows,
    keeps_single=True,
    fails=Fails.NEVER,
    lineage=lineage_rules.computed_from_all,
    stands_for="filter_map",
    example=Example("a -> null(); null() -> out", ({"a": [1]},), ({"out": []},), {"a": "long"}),
)

INTERNAL: Mapping[str, OpSpec] = MappingProxyType(
    {
        op.name: op
        for op in (
            RUNNING_FOLD,
            RUNNING_REDUCE,
            RUNNING_FOLD_KEYED,
            RUNNING_REDUCE_KEYED,
            RUNNING_LATEST,
            RUNNING_AGGREGATE,
            RUNNING_TOP,
            RUNNING_OVER,
            MOVING_AGGREGATE,
            AGGREGATE_RESULT,
            *in_order.ENTRIES,
            OF_SHARD,
            FITTING,
            FAILING,
        )
    }
)
"""The internal operators by their names."""


def running(op: OpSpec) -> OpSpec | None:
    """The operator that does as `op` over all that came so far; None where there is none."""
    cls = over_items(op.cls)
    if cls is None:
        return None
    return next((o for o in INTERNAL.values() if o.cls == Running(cls)), None)


def operator(name: str) -> OpSpec:
    """The operator called `name`, an internal one too; raises `ValueError` where there is none."""
    found = INTERNAL.get(name) or lookup(name)
    if found is None:
        raise ValueError(f"there is no operator {name!r}")
    return found
