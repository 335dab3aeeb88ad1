"""What the plans of TPC-H's queries go through in a tick, as far as plans tell: no Spark is needed.

All but two are maintained by key: a tick costs what it brings and what that meets. In 11 and 22
every row is compared with a number that changes, and the plan says which number that is.
"""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.tpch.programs import NAMES, program
from hydro_core.compile import best_plan, compile_text
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.optimize.optimizer import OptimizedProgram

SCALARS = {"q11": "whole", "q22": "usual"}
"""Statements whose one row all others are compared with."""
BY_KEY = [name for name in NAMES if name not in SCALARS]
TICKS = 100
LONGER = 10
"""A plan is asked for its cost at a history that is so many times as long."""
DEARER = 1.3
"""What a tick may cost there, over what it costs now: lookups take longer."""

ROWS_OF_A_KEY = {"lineitem": 4.0}
"""An order has four lines, and of a dimension nearly all keys have one version, however much has
come: in a longer history there are more keys, not longer ones.
"""


@cache
def plan(name: str, ticks: float = TICKS) -> OptimizedProgram:
    return best_plan(compile_text(program(name), file=f"{name}.hydro"), Statistics(ticks=ticks))


@pytest.mark.parametrize("name", BY_KEY)
def test_a_query_by_key_is_incremental(name: str) -> None:
    assert [note.message for note in plan(name).notes] == []


def of_history(name: str, ticks: float) -> float:
    """What a tick costs after so many of 1,000 rows of each input."""
    compiled = compile_text(program(name), file=f"{name}.hydro")
    rows = 1000 * ticks
    inputs = {
        source: InputStatistics(1000, rows, rows / ROWS_OF_A_KEY.get(source, 1.0))
        for source in compiled.typed.graph.sources
    }
    return best_plan(compiled, Statistics(ticks=ticks, inputs=inputs)).cost_after


@pytest.mark.parametrize("name", BY_KEY)
def test_a_tick_costs_what_it_did_when_history_was_shorter(name: str) -> None:
    now, later = of_history(name, TICKS), of_history(name, LONGER * TICKS)
    assert later <= DEARER * now, f"{later / now:.1f} times as much"


@pytest.mark.parametrize("name", SCALARS)
def test_a_tick_that_compares_all_rows_costs_more_when_there_are_more(name: str) -> None:
    assert of_history(name, LONGER * TICKS) > LONGER / 2 * of_history(name, TICKS)


@pytest.mark.parametrize("name", SCALARS)
def test_a_number_that_all_rows_are_compared_with_is_told(name: str) -> None:
    [note] = plan(name).notes
    assert SCALARS[name] in note.message


def test_what_all_suppliers_are_read_for_is_not_told_while_these_are_as_many() -> None:
    there = InputStatistics(rows=1000, history=1000)
    # the rows with the greatest value of a function are not looked up
    text = program("q15").replace('max("total_revenue")', "max(lambda r: r.total_revenue)")
    q15 = compile_text(text, file="q15.hydro")
    notes = best_plan(q15, Statistics(streams={"revenue": there})).notes
    assert ["`join_1` reads all rows" in note.message for note in notes] == [True], "new suppliers"
    every = Statistics(streams={"revenue": there, "suppliers": there})
    assert [note.message for note in best_plan(q15, every).notes] == []


def test_plans_are_what_they_would_be_without_a_limit() -> None:
    assert {limit for name in NAMES for limit in plan(name).limits} == set()
