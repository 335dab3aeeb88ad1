"""Each class that a deployment is made of is read as it was written, with a value in every field.

The values are made of the annotations, so a field that is new is tested by being there.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.artifact.codecs import PLAN, DecodedTables, EncodedTables
from hydro_core.artifact.deployment import Costs, Sharding, Table, Validation
from hydro_core.catalog.forms import Form
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Aggregate, Args, OpSpec, OverFunction
from hydro_core.errors import Diagnostic, Span
from hydro_core.functions.from_tree import TreeCall
from hydro_core.functions.tree import (
    Algebra,
    Bind,
    Const,
    Expr,
    Fn,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    Spread,
)
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.plan.tick_plan import Component, StateSlot, TickPlan, TimeBound
from hydro_core.types.item import UNKNOWN, Array, Field, ItemType, Row, Scalar, StreamType
from hydro_core.types.records import hints_of

CLASSES = (
    *(TickPlan, StateSlot, Component, TimeBound, Typed, Graph, Node, Endpoint, StreamType, Strata),
    *(Fn, Algebra, Diagnostic, Span, Table, Costs, Validation, Sharding),
)
NODES = (*get_args(Expr), Spread)
ITEM = Row((Field("k", Scalar("long"), False), Field("v", Array(UNKNOWN))))
TREE = IfElse(
    Op("==", (Part(Param("x", (1, 2)), "k", True, (1, 3)), Const(b"1", (2, 4))), (), (5, 6)),
    Make("row", (Spread(Param("x")), Const((1, [2.5], None))), (None, "a"), (7, 8)),
    Bind("list", ("y",), Param("x"), Op("len", (), (("k", Param("y")),)), (Const(True),), (9, 1)),
    (3, 3),
)
CALLED = Fn("held", "lambda x: x.k", ("x",), TreeCall(TREE, ("x",)), TREE)
ARGUMENTS = (
    *(ITEM, CALLED, Aggregate("sum", ("v", CALLED)), OverFunction("lag", ("v", 1))),
    *(Decimal("1.50"), 2**70, float("inf"), (1, [2]), {"a": b"x"}),
)
KNOWN: dict[Any, Any] = {
    str: "text",
    int: 7,
    float: 1.5,
    Any: "any",
    Callable[..., Any]: TreeCall(TREE, ("text",)),
    OpSpec: CATALOG["map"],
    Form: Form.CHANGES,
    Args: Args(
        (*((f"a{i}", a) for i, a in enumerate(ARGUMENTS)), ("f", CALLED), ("returns", ITEM))
    ),
    **dict.fromkeys(get_args(ItemType), ITEM),
    **dict.fromkeys(get_args(Expr), TREE),
}
"""What no annotation says how to make."""


def sample(kind: Any, default: Any = MISSING, within: tuple[Any, ...] = ()) -> Any:
    """A value of a type that is not the default, and in which every field has one that is not."""
    origin, of = get_origin(kind), get_args(kind)
    if kind in KNOWN or kind is bool:
        return KNOWN.get(kind, default is not True)
    if origin is Literal:
        return next(one for one in reversed(of) if one != default)
    if isinstance(kind, type) and is_dataclass(kind):
        return _with_all_fields(kind, within)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(one for one in reversed(kind) if one is not default)
    if origin in (Union, types.UnionType):
        return sample(of[0], default, within)
    if issubclass(origin, Mapping):
        value = sample(of[1], within=within)
        return {value.id if isinstance(value, Node) else sample(of[0], within=within): value}
    parts = of[:1] if origin is frozenset or of[1:] == (...,) else of
    if within.count(parts[0]) > 1:
        return ()  # one of its own kind holds none
    return origin(sample(part, within=within) for part in parts)


def _with_all_fields(kind: Any, within: tuple[Any, ...] = ()) -> Any:
    made, inside = {}, (*within, kind)
    for each in fields(kind):
        if each.init:
            made[each.name] = sample(hints_of(kind)[each.name], each.default, inside)
            assert kind in within or made[each.name] != each.default
    return kind(**made)


def _again(kind: Any, value: Any) -> Any:
    written = EncodedTables()
    record = PLAN.of(kind).write(written, value)
    tables, record = json.loads(json.dumps([written.tables(), record]))
    return PLAN.of(kind).read(DecodedTables(tables), record)


def _parts(value: Any) -> Any:
    """What a value holds, also what does not take part in `==`."""
    match value:
        case TreeCall():
            return ["call", _parts(value.tree), value.params]
        case Args():
            return [(name, _parts(one)) for name, one in value.entries]
        case OpSpec() | str() | Enum():
            return value
        case Mapping():
            return {key: _parts(one) for key, one in value.items()}
        case tuple() | list():
            return [_parts(one) for one in value]
        case _ if is_dataclass(value):
            return [type(value), {f.name: _parts(getattr(value, f.name)) for f in fields(value)}]
        case _:
            return value


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_field_comes_back(kind: Any) -> None:
    value = _with_all_fields(kind)
    assert _parts(_again(kind, value)) == _parts(value)


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_every_field_of_a_node_comes_back(kind: Any) -> None:
    """But for its type: a function is bound to what it is applied to wherever it is asked."""
    made = {
        each.name: sample(hints_of(kind)[each.name], each.default)
        for each in fields(kind)
        if each.name != "type"
    }
    tree = Make("list", (kind(**made),))
    assert _parts(_again(Expr, tree)) == _parts(tree)


def test_the_samples_are_of_all_that_a_deployment_has() -> None:
    """Every dataclass that fields of these name is one of these, or written as a whole."""
    named = {
        one
        for kind in CLASSES
        for of in hints_of(kind).values()
        for one in _named(of)
        if is_dataclass(one)
    }
    assert named <= {*CLASSES, *NODES, *get_args(ItemType), OpSpec, Args}


def _named(kind: Any) -> set[Any]:
    return {kind}.union(*map(_named, get_args(kind)))


def test_what_was_written_before_a_field_was_there_is_read_with_its_default() -> None:
    written = EncodedTables()
    slot = _with_all_fields(StateSlot)
    record = PLAN.of(StateSlot).write(written, slot)
    del record["keep"], record["bound"]
    found = PLAN.of(StateSlot).read(DecodedTables(written.tables()), record)
    assert found == replace(slot, keep=None, bound=None)


def test_what_no_field_is_for_is_refused() -> None:
    written = EncodedTables()
    record = PLAN.of(Endpoint).write(written, Endpoint("n", "0"))
    assert record == ["n", "0"]
    record = {**PLAN.of(StateSlot).write(written, _with_all_fields(StateSlot)), "other": 1}
    with pytest.raises(TypeError, match="StateSlot has no 'other'"):
        PLAN.of(StateSlot).read(DecodedTables(written.tables()), record)
