"""What differs is found, whichever way it is, and made as small as it can be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import DataError, Diagnostic
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick import Outputs
from hydro_core.validation.simulation import simulate
from hydro_core.validation.simulation.simulate import (
    Case,
    FailedSimulation,
    Simulation,
    SimulationResult,
    Subject,
)

WINDOWS = Calendar(datetime(2024, 1, 1, tzinfo=UTC), "1d").window
TOTALS = (
    'a = source("k string, n long")\na -> persist() -> aggregate(by="k", t=sum("n")) -> totals\n'
)
DIGITS = """
a = source("long")
a -> filter(lambda x: x is not None) -> fold(0, lambda acc, x: acc * 3 + x, commutative=True) -> out
"""


def run(text: str, **given: object) -> SimulationResult:
    subject = Subject(compile_text(text), WINDOWS)
    return Simulation(subject, **given).run(60, 0, 30, lambda _: None)  # type: ignore[arg-type]


def failed(text: str, **given: object) -> FailedSimulation:
    found = run(text, **given).failed
    assert found is not None
    assert found.is_least
    return found


def by_reference(program: CompiledProgram, case: Case) -> list[Outputs]:
    return list(run_ticks(program.typed, program.strata, case.inputs(WINDOWS)))


def test_a_program_that_is_the_same_in_all_ways() -> None:
    program = compile_text(TOTALS)
    found = run(TOTALS, on_spark=lambda case: by_reference(program, case))
    assert (found.runs, found.failed, found.refused) == (60, None, 0)
    assert found.ticks >= found.ranges > found.crashes > 0


def test_a_fold_that_is_not_commutative_as_it_says() -> None:
    found = failed(DIGITS)
    assert found.difference.way == "order"
    assert len(found.case.ticks) == 1
    assert found.case.rows == 2
    assert found.difference.expected != found.difference.found


def test_a_plan_that_is_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = compile_text(TOTALS.replace("sum", "max"))
    monkeypatch.setattr(simulate, "optimized", lambda _: wrong)
    found = failed(TOTALS)
    assert found.difference.way == "plan"
    # Two payments of one key, none of them 0 (and null for no payment at all).
    assert found.case.rows == 2
    keys = {item["k"] for tick in found.case.ticks for _, item in tick["a"]}
    assert len(keys) == 1


def test_a_crash_that_loses_a_tick() -> None:
    program = compile_text(TOTALS)

    def loses(case: Case) -> Sequence[Outputs]:
        found = by_reference(program, case)
        if case.crash is not None and case.crash.step > 2:
            found[-1] = {"totals": []}
        return found

    found = failed(TOTALS, on_spark=loses)
    assert found.difference.way == "pipeline"
    assert found.case.crash is not None
    assert (len(found.case.ticks), found.case.rows) == (1, 1)


def test_an_error_that_the_program_does_not_raise() -> None:
    def raises(case: Case) -> Sequence[Outputs]:
        raise DataError(Diagnostic("state", "the table is gone", help="restore it"))

    found = failed(TOTALS, on_spark=raises)
    assert str(found.difference.error).startswith("error[state]: the table is gone")
    assert (len(found.case.ticks), found.case.rows) == (1, 0)


def test_errors_of_the_program_itself_are_no_difference() -> None:
    text = 'a = source("long")\na -> map(lambda x: 6 // x) -> out\n'
    program = compile_text(text)
    found = run(text, on_spark=lambda case: by_reference(program, case))
    assert found.failed is None
    assert 0 < found.refused < found.runs
    assert "fails on" in str(found.refusal)
