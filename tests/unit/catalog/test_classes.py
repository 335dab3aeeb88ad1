"""The class of an operator agrees with its other columns, and every operator has one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import get_args

import pytest

from hydro_core.catalog.classes import (
    ByKey,
    Commands,
    DistinctItems,
    ExternalItems,
    History,
    KeyMatch,
    OpClass,
    PairedItems,
    PerItem,
    PositionalOrder,
    PreviousTick,
    Product,
    Projection,
    RunningResult,
    Sum,
    TickDifference,
    Window,
    passes_on,
)
from hydro_core.catalog.combine import JOIN
from hydro_core.catalog.internal import INTERNAL, running
from hydro_core.catalog.ordered import OVER, TOP
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import (
    Args,
    Barrier,
    FailureMode,
    OpSpec,
    OrderRule,
    State,
    functions_of,
)
from hydro_core.lang.resolve import parse
from hydro_core.types.item import Order

OPERATORS = (*CATALOG.values(), *INTERNAL.values())
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
KEPT = {"left": {0}, "right": {1}, "outer": {0, 1}}


def _used() -> Iterator[tuple[OpSpec, Args]]:
    """Every operator of programs with the arguments of its example; joins of every sort."""
    for op in CATALOG.values():
        yield from ((n.op, n.args) for n in parse(op.example.program).named(op.name))
    for how in HOWS:
        yield JOIN, Args((("how", how), ("on", None), ("suffix", None), ("where", None)))


USED = [pytest.param(op, args, id=f"{op.name} {i}") for i, (op, args) in enumerate(_used())]


def test_there_is_no_class_by_default() -> None:
    [column] = [field for field in fields(OpSpec) if field.name == "cls"]
    assert column.default is MISSING
    assert column.default_factory is MISSING


def test_every_class_has_an_operator() -> None:
    found = {type(op.class_of(args)) for op, args in _used()}
    found |= {type(op.cls) for op in INTERNAL.values()}
    assert found == set(get_args(OpClass))


@pytest.mark.parametrize(("op", "args"), USED)
def test_a_class_agrees_with_the_columns(op: OpSpec, args: Args) -> None:
    spec, linear = op.at(args), tuple(port.linear for port in op.at(args).inputs)
    match spec.class_of(args):
        case PerItem() | Projection():
            assert linear == (True,)
            assert spec.zero
            assert spec.state is State.NONE
        case Sum():
            assert all(linear)
            assert spec.state is State.NONE
        case Product(meets=PairedItems.KEY | PairedItems.ALL, keeps=keeps):
            # an input is linear where the other one's items do not stay alone for want of it
            assert linear == tuple(not keeps - {side} for side in (0, 1))
            assert spec.monotone == (not keeps)
        case Product(meets=PairedItems.SINGLE):
            assert linear == (True, False)
        case KeyMatch(wanted):
            assert linear == (True, False)
            assert spec.monotone == wanted
        case DistinctItems():
            assert spec.idempotent
            assert not any(linear)
        case ByKey(keyed=keyed):
            assert not any(linear)
            assert not spec.monotone
            assert keyed or spec.single
        case PositionalOrder():
            # it goes by the stream's order, or by that of the items, which the result then has not
            needs = all(port.needs is Order.TOTAL for port in spec.inputs)
            assert needs == (spec.order is not OrderRule.LOSES)
        case ExternalItems():
            assert not spec.inputs


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_what_is_over_time_has_a_state(op: OpSpec) -> None:
    states = {
        History: {State.HISTORY},
        Window: {State.WINDOW},
        PreviousTick: {State.LAST},
        TickDifference: {State.LAST},
        Commands: {State.RESULT},
        RunningResult: {State.RESULT},
    }
    assert op.state in states.get(type(op.cls), {State.NONE})


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.name)
def test_what_reads_the_past_alone_waits_for_the_tick(op: OpSpec) -> None:
    reads = isinstance(op.cls, PreviousTick) or op.cls == History(before=True)
    assert reads == any(port.barrier is Barrier.TICK for port in op.inputs)


def test_what_runs_is_an_operator_over_all_that_came() -> None:
    over_all = [op for op in INTERNAL.values() if isinstance(op.cls, RunningResult)]
    for op in over_all:
        assert isinstance(op.cls, RunningResult)
        assert CATALOG[op.stands_for].cls == op.cls.of
        assert len(op.inputs) == 1
        if not op.cls.changes:
            assert running(CATALOG[op.stands_for]) is op
    assert {op.stands_for for op in over_all} == {
        op.name for op in CATALOG.values() if isinstance(op.cls, ByKey) or op in (TOP, OVER)
    }


@pytest.mark.parametrize("how", HOWS)
def test_a_join_is_a_product_or_a_selection(how: str) -> None:
    cls = JOIN.class_of(Args((("how", how), ("on", None), ("suffix", None), ("where", None))))
    if how in {"semi", "anti"}:
        assert isinstance(cls, KeyMatch)
        assert cls.wanted == (how == "semi")
    else:
        assert cls == Product(PairedItems.KEY, frozenset(KEPT.get(how, ())))


@pytest.mark.parametrize(("op", "args"), USED)
def test_what_passes_its_input_on_never_fails_by_itself(op: OpSpec, args: Args) -> None:
    if passes_on(op.class_of(args)):
        assert op.fails is FailureMode.NEVER or not list(functions_of(args))
