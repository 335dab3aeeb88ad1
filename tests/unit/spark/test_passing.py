"""What passes of a batch, before Spark sees it: too much may, too little never."""

from __future__ import annotations

import ast
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.spark.store.passing import ASKED, passing_items
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl

ROW = parse_ddl("k long, s string")
ROWS = [{"k": k, "s": s} for k in (0, 1, 2, None) for s in ("", "a", None)]


def function(text: str) -> Fn:
    return read_function(ast.parse(text, mode="eval").body, {})


def passed(*conditions: str, rows: list[Any] = ROWS) -> list[Any]:
    filters: list[Fn] = [function(f"lambda r: {condition}") for condition in conditions]
    return list(from_arrow(*passing_items(filters, to_arrow(rows, ROW), ROW)))


def test_as_python_sees_truth() -> None:
    assert passed("r.s") == [r for r in ROWS if r["s"]]
    assert passed("r.s", "r.k == 1") == [{"k": 1, "s": "a"}]


def test_what_fails_may_pass() -> None:
    fails = [r for r in ROWS if r["k"] is None]
    assert passed("r.k > 1") == [r for r in ROWS if r["k"] == 2 or r in fails]
    assert passed("r.s == 'a'", "1 // r.k") == [r for r in ROWS if r["s"] == "a" and r["k"] != 2]


def test_of_many_rows_none_is_asked() -> None:
    rows = [{"k": 1, "s": "a"}] * (ASKED + 1)
    assert len(passed("r.k == 2", rows=rows)) == ASKED + 1
    assert passed("r.k == 2", rows=rows[1:]) == []


def test_an_input_to_which_nothing_came_has_a_column_of_no_type() -> None:
    nothing = pa.nulls(0)
    assert passing_items([function("lambda r: r.k == 1")], nothing, ROW) == (nothing, ROW)


@pytest.mark.parametrize("rows", [[], ROWS])
def test_what_all_pass_is_all(rows: list[Any]) -> None:
    assert passed(rows=rows) == rows
