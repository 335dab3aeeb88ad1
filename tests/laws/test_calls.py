"""A plan never fails a tick that the program completes: functions are not asked earlier."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.reference.interpreter import TickInput, run_ticks
from hydro_core.types.values import RowItem, Struct

PAIRS = 'a = source("(long, long)"); b = source("(long, long)")\n'
BAD = Struct((None, None))
EARLY = {
    "map": "a -> prev() -> map(lambda x: x[0] + 1) -> delta() -> out",
    "filter": "a -> prev() -> filter(lambda x: x[0] > 1) -> unique() -> delta() -> out",
    "old": "a -> old() -> map(lambda x: x[0] + 1) -> out",
    "reduce": (
        "a -> prev() -> reduce(lambda x, y: (x[0] + y[0], 1), commutative=True) -> delta() -> out"
    ),
    "fold_keyed": (
        "a -> old() -> fold_keyed(0, lambda s, v: s + v, commutative=True) -> delta() -> out"
    ),
    "partition": (
        'p = a -> prev() -> partition(lambda x: "yes" if x[0] > 0 else "no", ["yes", "no"])\n'
        'p["yes"] -> delta() -> out; p["no"] -> more'
    ),
    "loop": (
        "x = union() -> unique(); a -> prev() -> x; x -> map(lambda x: (x[0] % 2, x[1] % 2)) -> x\n"
        "x -> delta() -> out"
    ),
}


def _completed(program: CompiledProgram, batches: list[list[object]]) -> int:
    """How many ticks are completed before one fails."""
    done = 0
    ticks = [TickInput({"a": batch}) for batch in batches]
    try:
        for _ in run_ticks(program.typed, program.strata, ticks):
            done += 1
    except Exception:  # noqa: BLE001 - any failure ends the run
        return done
    return done


@pytest.mark.parametrize("name", EARLY)
def test_a_function_is_not_asked_a_tick_earlier(name: str) -> None:
    text = EARLY[name].replace('p["yes"]', "p[yes]").replace('p["no"]', "p[no]")
    program = compile_text(PAIRS + text)
    plan = compile_graph(optimize(program.typed).graph)
    for batches in ([[BAD, BAD]], [[Struct((1, 1))], [BAD, BAD]], [[BAD, BAD], [], []]):
        assert _completed(plan, batches) >= _completed(program, batches)
    assert _completed(program, [[BAD, BAD]]) == 1
    assert _completed(program, [[BAD, BAD], []]) == 1


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_result_beyond_its_type_fails_no_earlier_tick(function: str) -> None:
    program = compile_text(
        'a = source("k long, v decimal(38,0)")\n'
        f'a -> prev() -> aggregate(by="k", x={function}("v")) -> delta() -> out'
    )
    plan = compile_graph(optimize(program.typed).graph)
    most = Decimal(10**38 - 1)
    batches: list[list[object]] = [[RowItem(k=1, v=most), RowItem(k=1, v=most)], []]
    assert _completed(program, batches) == 1
    assert _completed(plan, batches) == 1


def test_a_partial_sum_may_be_beyond_64_bits() -> None:
    program = compile_text(
        'a = source("k long, v long")\n'
        'a -> persist() -> aggregate(by="k", total=sum("v"), n=count("v")) -> out'
    )
    plan = compile_graph(optimize(program.typed).graph)
    assert any(n.op.name == "running_aggregate" for n in plan.graph)
    least, most = -(2**63), 2**63 - 1
    batches = [[RowItem(k=1, v=least)], [RowItem(k=1, v=v) for v in (most, 1, None)]]
    ticks = [TickInput({"a": batch}) for batch in batches]
    wanted = list(run_ticks(program.typed, program.strata, ticks))
    assert list(run_ticks(plan.typed, plan.strata, ticks)) == wanted
    assert wanted[1]["out"] == [{"k": 1, "total": 0, "n": 3}]
