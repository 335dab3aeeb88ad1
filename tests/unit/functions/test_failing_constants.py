"""A constant part of a function that always fails is an error when the program is read."""

from __future__ import annotations

import pytest

from hydro_core.compile import compile_text
from hydro_core.errors import ProgramError
from tests.support.refused import Refused

FAILS = {
    "timedelta(months=3)": "TypeError: ",
    "r.day + timedelta(months=3)": "TypeError: ",
    "1 // 0": "ZeroDivisionError: ",
    "(r.v or 0) + 1 % 0": "ZeroDivisionError: ",
    'int("x")': "ValueError: ",
    "date(2024, 13, 1)": "ValueError: month must be in 1..12",
    "r.day > date(2023, 2, 29)": "ValueError: day is out of range",
    "r.day == date(2023, 2, 29) and r.v == 1": "ValueError: ",
    "[1][3]": "IndexError: ",
    '"a"[5]': "IndexError: ",
    '{"a": 1 // 0, "b": r.v}': "ZeroDivisionError: ",
    "1 if 6 // 0 > 1 else r.v": "ZeroDivisionError: ",
    "[x for x in [1 // 0]]": "ZeroDivisionError: ",
    'date.fromisoformat("x")': "ValueError: ",
    '"abc".index("z")': "ValueError: substring not found",
    'f"{1 // 0}"': "ZeroDivisionError: ",
}
MAY_NEVER_BE = (
    "1 // 0 if r.v == 5 else r.v",
    "r.v if r.v else 1 // 0",
    "r.v == 1 and 1 // 0 == 1",
    "r.v == 1 or 1 // 0 == 1",
    "0 < (r.v or 0) < 1 // 0",
    "[1 // 0 for x in [r.v] if x]",
    "max([r.v or 0], key=lambda x: 1 // 0)",
    "2 ** 10 + (r.v or 0)",
)


@pytest.mark.parametrize("text", FAILS)
def test_it_is_told_where_it_stands(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        compile_text(f'a = source("v long, day date")\na -> map(lambda r: ({text})) -> out')
    (found,) = caught.value.diagnostics
    assert found.code == "type"
    assert found.operator == "map"
    assert f"fails for every item: {FAILS[text]}" in found.message
    assert found.span is not None
    assert found.span.line == 2
    assert "write a constant that has a value" in (found.help or "")


@pytest.mark.parametrize("text", MAY_NEVER_BE)
def test_what_may_never_be_evaluated_may_fail(text: str) -> None:
    compile_text(f'a = source("v long")\na -> map(lambda r: ({text})) -> out')


@pytest.mark.parametrize(
    "text",
    [
        "filter(lambda r: r.v == 1 // 0)",
        "select(x=lambda r: 1 // 0)",
        "aggregate(n=sum(lambda r: 1 // 0))",
        "fold(0, lambda s, r: s + 1 // 0, commutative=True)",
        'latest(by="v", order=lambda r: 1 // 0)',
    ],
)
def test_every_operator_tells_it(text: str, refused: Refused) -> None:
    with refused(ProgramError, "type"):
        compile_text(f'a = source("v long")\na -> {text} -> out')
