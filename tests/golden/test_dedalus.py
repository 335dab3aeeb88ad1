"""Rules over time: the examples of the documents, and every form of a rule, as stories."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.engines import Options
from hydro_core.errors import ProgramError
from hydro_core.lang.load import load_text
from hydro_core.lang.print import to_text
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.golden.cases import Case, all_cases, check_message

FOLDER = Path(__file__).parent / "dedalus"
CASES = all_cases(FOLDER)
RIGHT = [case for case in CASES if not case.error]
ERRORS = Path(__file__).parent / "dedalus_errors"
WRONG = sorted(ERRORS.glob("*.dl"))
_LONG_ON_SPARK = ("counting until agreement", "loops through negation")
_ON_SPARK = [
    pytest.param(one, marks=pytest.mark.slow if any(t in one.name for t in _LONG_ON_SPARK) else ())
    for one in RIGHT
]


@pytest.mark.parametrize("optimized", [False, True], ids=["as written", "optimized"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, optimized: bool) -> None:
    if case.error is not None:
        code, words = case.error
        with pytest.raises(ProgramError) as caught:
            load_text(case.program, "case.dl")
        assert (caught.value.code, words in str(caught.value)) == (code, True)
        return
    graph = load_text(case.program, "case.dl")
    found = run_json(graph, case.schemas, case.ticks, Options(optimized=optimized))
    assert found == case.outputs


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_the_operators_that_are_printed_mean_the_same(case: Case) -> None:
    graph = load_text(case.program, "case.dl")
    again = parse(to_text(graph))
    assert run_json(again, case.schemas, case.ticks, Options()) == case.outputs


@pytest.mark.spark
@pytest.mark.parametrize("case", _ON_SPARK, ids=lambda case: case.name)
def test_case_on_spark(case: Case) -> None:
    """As one range; the documents' examples tick by tick, too."""
    graph = load_text(case.program, "case.dl")
    for as_range in (True, False) if case.name.startswith("documents") else (True,):
        options = Options("spark", as_range=as_range)
        assert run_json(graph, case.schemas, case.ticks, options) == case.outputs


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_message(path: Path, update_golden: bool) -> None:
    check_message(path, update_golden)
