"""Operators that only plans have: a program cannot name them.

Most are the optimizer's. Running operators store their own result: `running_fold(a)` is
`fold(persist(a))` at the price of the batch. Sorted ones are folds and scans of a key's rows in an
order that is an argument. They give what the fold or scan gives over a sorted stream, but a key's
result depends only on that key's rows, while a sort reads all items in each tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from hydro_core.catalog import lineage_rules, ordered, type_rules
from hydro_core.catalog.classes import (
    ByKey,
    ItemEffect,
    OrderedByKey,
    PerItem,
    Places,
    RunningResult,
    Summary,
)
from hydro_core.catalog.group import (
    AGGREGATE,
    FOLD,
    FOLD_KEYED,
    LATEST,
    REDUCE,
    REDUCE_KEYED,
    over_items,
)
from hydro_core.catalog.itemwise import FILTER_MAP, IDENTITY
from hydro_core.catalog.ordered import DESCENDING, ORDER, OVER, SCAN_KEYED, TOP
from hydro_core.catalog.registry import lookup
from hydro_core.catalog.spec import (
    WHOLE,
    Arg,
    Args,
    Barrier,
    FailureMode,
    OpSpec,
    OrderRule,
    Port,
    State,
)
from hydro_core.functions.call import Use


def _standing_for(op: OpSpec, name: str, **columns: Any) -> OpSpec:
    """An operator of plans, with the columns of the one that a program has in its place."""
    return replace(op, name=name, stands_for=op.name, aliases=(), **{"refine": None, **columns})


def _running(op: OpSpec, **columns: Any) -> OpSpec:
    """The operator over all items so far, which reads the new items of each tick."""
    cls = over_items(op.cls)
    assert cls is not None
    given = {
        "cls": RunningResult(cls),
        "summary": f"`{op.name}` of all items of the ticks up to this one",
        "inputs": (Port("new", barrier=Barrier.STRATUM, aliases=("0",)),),
        "state": State.RESULT,
    }
    return _standing_for(op, f"running_{op.name}", **{**given, **columns})


def _as_given(op: OpSpec, args: Args, *, changes: bool = False) -> Mapping[str, Any]:
    """The columns of a running operator that are those of `op` under its arguments."""
    columns = op.at(args)
    cls = over_items(columns.cls)
    assert cls is not None
    kept = {name: getattr(columns, name) for name in ("zero", "single", "partition")}
    return {"cls": RunningResult(cls, changes), **kept}


RUNNING_FOLD = _running(FOLD)
RUNNING_REDUCE = _running(REDUCE)
RUNNING_FOLD_KEYED = _running(FOLD_KEYED)
RUNNING_REDUCE_KEYED = _running(REDUCE_KEYED)
RUNNING_LATEST = _running(LATEST)
RUNNING_AGGREGATE = _running(AGGREGATE, refine=partial(_as_given, AGGREGATE))
RUNNING_TOP = _running(TOP, refine=partial(_as_given, TOP))
RUNNING_OVER = _running(
    OVER,
    summary="`over` of all rows of the ticks up to this one, with what it goes on from",
    args=(
        *OVER.args,
        Arg("parts", "aggregates", default=()),
        Arg("made", "aggregates", default=()),
        Arg("number", "name", required=True),
        Arg("tail", "name", required=True),
        Arg("keep", "integer", required=True),
    ),
    result=ordered.kept,
    refine=partial(_as_given, OVER),
)

MOVING_AGGREGATE = replace(
    RUNNING_AGGREGATE,
    name="moving_aggregate",
    cls=RunningResult(ByKey(Summary.AGGREGATES), changes=True),
    refine=partial(_as_given, AGGREGATE, changes=True),
    summary="counts and totals, made anew by what comes and what goes; a key without rows is gone",
    inputs=WHOLE,
)


def _sorted(op: OpSpec, **columns: Any) -> OpSpec:
    """The operator over a stream without an order, for each key in the order `order`."""
    return _standing_for(
        op,
        f"sorted_{op.name}",
        summary=f"`{op.name}` of the items in the order of `order`; ties by the item, ascending",
        inputs=WHOLE,
        args=(*op.args, ORDER, DESCENDING),
        order=OrderRule.LOSES,
        lineage=lineage_rules.keyed_in_order,
        **columns,
    )


SORTED = (
    _sorted(FOLD_KEYED),
    _sorted(REDUCE_KEYED),
    _sorted(SCAN_KEYED, cls=OrderedByKey(Places.EACH), family="group"),
)
"""Folds and scans of a key's rows in an order of their own."""

AGGREGATE_RESULT = replace(
    IDENTITY,
    name="aggregate_result",
    cls=PerItem(ItemEffect.RESULT),
    summary="the aggregates that are made of the parts of a row, `avg` of a total and a count",
    args=(*AGGREGATE.args, Arg("schema", "schema", required=True)),
    result=type_rules.declared_rows,
    fails=FailureMode.ON_RESULTS,
    lineage=lineage_rules.aggregated,
    stands_for="aggregate",
)

OF_SHARD = _standing_for(
    IDENTITY,
    "of_shard",
    cls=PerItem(ItemEffect.ROUTED),
    summary="the items of one of several shards, by the fields `by` or the value of `f`; where `f` "
    "fails, or nothing is named, of the first",
    args=(
        Arg("by", "value", required=True),
        Arg("f", "function"),
        Arg("shards", "integer", required=True, least=1),
        Arg("shard", "integer", required=True),
    ),
    fails=FailureMode.ON_RESULTS,
)

_CALLS = (
    Arg("calls", "computed", required=True),
    Arg("use", "choice", required=True, choices=tuple(Use)),
    Arg("ports", "ports", default=()),
)

FITTING = _standing_for(
    IDENTITY,
    "fitting",
    cls=PerItem(ItemEffect.ROUTED),
    summary="the items for which the functions `calls` of the operator behind it have a result",
    args=_CALLS,
)

FAILING = _standing_for(
    FILTER_MAP,
    "failing",
    summary="of the other items what they are, and which function fails on them and why",
    args=(
        *_CALLS,
        Arg("source", "name", required=True),
        Arg("schema", "schema", required=True),
        # Functions of equal text are one to the optimizer, so the span of each is an argument.
        Arg("place", "name", required=True),
    ),
    result=type_rules.declared_rows,
    lineage=lineage_rules.computed_from_all,
)

INTERNAL: Mapping[str, OpSpec] = MappingProxyType(
    {
        op.name: op
        for op in (*globals().values(), *SORTED)
        if isinstance(op, OpSpec) and op.stands_for
    }
)
"""The internal operators by their names."""


def running(op: OpSpec) -> OpSpec | None:
    """The operator that is `op` over all items so far; None if there is none."""
    cls = over_items(op.cls)
    if cls is None:
        return None
    return next((o for o in INTERNAL.values() if o.cls == RunningResult(cls)), None)


def operator(name: str) -> OpSpec:
    """The operator `name`, an internal one too; raises `ValueError` if there is none."""
    found = INTERNAL.get(name) or lookup(name)
    if found is None:
        raise ValueError(f"there is no operator {name!r}")
    return found
