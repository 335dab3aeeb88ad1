"""A plan against its program: what counts as the same."""

from __future__ import annotations

from hydro_core.compile import compile_graph, compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.ticks.tick import TickInput
from hydro_core.types.values import RowItem
from hydro_core.validation.random_ticks import validate, validate_randomly

TENTHS = """
rows = source("k long, v double")
rows -> persist() -> aggregate(by="k", total=sum("v"), mean=avg("v")) -> out
"""


def test_rounded_sums_may_differ_in_the_last_bits() -> None:
    program = compile_text(TENTHS)
    plan = compile_graph(optimize(program.typed).graph)
    ticks = [TickInput({"rows": [RowItem({"k": 1, "v": v})]}) for v in (0.1, 0.7, 0.2, 1e9, 0.3)]
    assert validate(plan, program, ticks) is None


def test_other_numbers_differ() -> None:
    program = compile_text('a = source("double"); a -> map(lambda x: x) -> out')
    other = compile_text('a = source("double"); a -> map(lambda x: x + 0.001 if x else x) -> out')
    found = validate_randomly(other, program, 5)
    assert found is not None
    assert "the plan gives" in str(found)


def test_an_item_more_is_a_difference() -> None:
    program = compile_text('a = source("double"); a -> persist() -> out')
    other = compile_text('a = source("double"); a -> persist() -> unique() -> out')
    assert validate_randomly(other, program, 10) is not None
