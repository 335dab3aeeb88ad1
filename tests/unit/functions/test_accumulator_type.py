"""Types of accumulators."""

from __future__ import annotations

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.functions.result_type import accumulator_type
from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.item import LONG
from tests.support.functions import text


class TestAccumulators:
    @pytest.mark.parametrize(
        ("source", "init", "item", "ddl"),
        [
            ("lambda a, x: a + x", "long", "long", "long"),
            ("lambda a, x: a + x", "long", "double", "double"),
            ("lambda a, x: a + x", "long", "decimal(5,2)", "decimal(38,2)"),
            ("lambda a, x: a + [x]", "array<void>", "string", "array<string>"),
            ("lambda a, x: x if a is None else max(a, x)", "void", "long", "long"),
            ("lambda a, x: (a[0] + 1, a[1] + x / 2)", "(long, long)", "long", "(long, double)"),
            (
                "lambda a, k, v: {'n': a.n + 1, 's': a.s + v}",
                "n long, s long",
                "(string, double)",
                "n long, s double",
            ),
            ("lambda a, r: {**a, 'last': r.k}", "last void", "k string", "last string"),
            ("lambda a, x: a", "void", "long", "void"),
        ],
    )
    def test_widen(self, source: str, init: str, item: str, ddl: str) -> None:
        assert to_ddl(accumulator_type(text(source), parse_ddl(init), parse_ddl(item))) == ddl

    @pytest.mark.parametrize(
        ("source", "init", "said"),
        [
            ("lambda a, x: str(x)", "long", "starts as long and becomes string"),
            ("lambda a, x: (a, x)", "long", "starts as long and becomes \\(long, long\\)"),
            ("lambda a, x: [a]", "array<void>", "grows with every item"),
            ("lambda a, x: {**a, 'z': x}", "n long", "starts as row<n long> and becomes row"),
            ("lambda a, x: a + x", "string", "no `string \\+ long`"),
        ],
    )
    def test_problems(self, source: str, init: str, said: str) -> None:
        with pytest.raises(TypeProblem, match=said):
            accumulator_type(text(source), parse_ddl(init), LONG)
