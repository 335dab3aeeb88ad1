"""Whatever is written, the answer is a graph or a diagnostic with a place."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hydro_core.analysis.infer import infer
from hydro_core.analysis.strata import stratify
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.lang.resolve import parse
from tests.unit.shared import or_skipped, vectors

PIECES = [
    *("a", "b", "x", "join", "->", "=", ";", "\n", "[0]", "[pos]", "[", "]", "(", ")", "{", " "),
    *("map(lambda x: x)", "union()", "cross()", "difference(neg=a)", "sort()", "source('long')"),
    *("partition(lambda x: 'p', ['p'])", "[p]", "#", "//", "'", '"', "\\", "prev()", "::", "é"),
    *(
        "aggregate(n=count())",
        "fold(0, lambda s, x: s)",
        "null()",
        "sink('out')",
        "tee()",
        "lambda",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=60))
@example("a -> map(f'{x!r:>{y}}')")
@example("a -> map((yield))")
@example("a -> map(lambda *x, **y: 0)")
@example("a -> select(**{'a': 1})")
@example("x = source_iter([1] * 10**10)")
@example("x = source_iter(9 ** 9 ** 9)")
def test_a_graph_or_a_diagnostic(text: str) -> None:
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        stratify(infer(parse(text), partial=True))
    except ProgramError as error:
        diagnostics = error.diagnostics
    assert all(d.span is not None and d.help for d in diagnostics)


CASES = vectors("dfir", "fuzz", "ordered")


@pytest.mark.parametrize("vector", or_skipped(CASES[::7]), ids=lambda v: v["name"])
def test_a_vector_that_lost_a_piece(vector: dict[str, str]) -> None:
    program = vector["program"]
    for cut in range(0, len(program), max(1, len(program) // 12)):
        for text in (program[:cut], program[cut:], program[:cut] + program[cut + 1 :]):
            test_a_graph_or_a_diagnostic.hypothesis.inner_test(text)  # type: ignore[attr-defined]
