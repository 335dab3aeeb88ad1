"""Functions as text."""

from __future__ import annotations

import pytest

from hydro_core import Flow
from hydro_core.functions.read import read_callable
from hydro_core.functions.tree import Fn
from hydro_core.lang.print import function_text, left_names

N = 5
MARK = "a\nwhere N = 6"


def _mapped(text: str) -> Fn:
    (fn,) = (
        Flow.parse(f'a = source("long")\na -> map({text}) -> out').graph()["map_1"].args.values()
    )
    return fn


@pytest.mark.parametrize("words", ["\nwhere x = 1", "\nwhere N = 7", "where", "\nof x"])
def test_words_in_a_text_are_its_own(words: str) -> None:
    fn = _mapped(f'lambda x: f"""{{x}}{words}"""')
    assert left_names(fn) == ()
    assert eval(function_text(fn))(3) == f"3{words}"


def test_what_a_function_closes_over_stands_in_its_text() -> None:
    fn = read_callable(lambda x: f"{x}\nwhere N = 8{N}{MARK}")
    assert eval(function_text(fn))(3) == f"3\nwhere N = 8{N}{MARK}"
