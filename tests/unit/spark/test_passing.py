"""What passes of a batch, before Spark sees it: too much may, too little never."""

from __future__ import annotations

import ast
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.errors import HydroError
from hydro_core.functions.call import call_item
from hydro_core.functions.read import read_function
from hydro_core.functions.tree import Fn
from hydro_core.spark.store.lookups.conditions import may_pass
from hydro_core.spark.store.lookups.search import ASKED, passing_items
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
    assert len(passed("r.k + 0 == 2", rows=rows)) == ASKED + 1
    assert passed("r.k + 0 == 2", rows=rows[1:]) == []


def test_of_any_number_of_rows_columns_are_asked() -> None:
    rows = [{"k": k, "s": "a"} for k in (1, 2)] * ASKED
    assert passed("0 < r.k <= 1 and r.s == 'a'", rows=rows) == rows[::2]


def test_an_input_to_which_nothing_came_has_a_column_of_no_type() -> None:
    nothing = pa.nulls(0)
    assert passing_items([function("lambda r: r.k == 1")], nothing, ROW) == (nothing, ROW)


@pytest.mark.parametrize("rows", [[], ROWS])
def test_what_all_pass_is_all(rows: list[Any]) -> None:
    assert passed(rows=rows) == rows


WIDE = parse_ddl("k long, b byte, s string, d date, n decimal(10,2), m decimal(38,0), x double")
VALUES: dict[str, list[Any]] = {
    "k": [None, 0, -1, 5, 1 << 62, -(1 << 63)],
    "b": [None, 0, -1, 127],
    "s": [None, "", "a", "A", "é", "\uffff", "\U0001f600"],
    "d": [None, date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)],
    "n": [None, Decimal("-0.10"), Decimal(0), Decimal("5.00"), Decimal("99999999.99")],
    "m": [None, Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(5)],
    "x": [None, 0.0, -0.0, float("nan"), 5.0],
}
CONSTANTS = ("0", "-1", "5", "'a'", "''", "date(2026, 1, 1)", "Decimal('5')", "2.5", "True", "None")


def _side(rng: Random) -> str:
    return f"r.{rng.choice(list(VALUES))}" if rng.random() < 0.6 else rng.choice(CONSTANTS)


def _condition(rng: Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.5:
        parts = (_condition(rng, depth - 1) for _ in range(rng.randrange(2, 4)))
        return f"({rng.choice([' and ', ' or ']).join(parts)})"
    ops = ["<", "<=", ">", ">=", "==", "!="]
    several = rng.random() < 0.3
    more = f" {rng.choice(ops)} {_side(rng)}" if several else ""
    return f"{_side(rng)} {rng.choice(ops)} {_side(rng)}{more}"


def _verdict(fn: Fn, row: dict[str, Any]) -> bool | None:
    """Whether it passes; None where the filter fails."""
    try:
        return bool(call_item(fn, row))
    except Exception:  # noqa: BLE001 - whatever it is
        return None


@pytest.mark.parametrize("seed", range(60))
def test_columns_leave_out_nothing_that_passes(seed: int) -> None:
    rng = Random(seed)
    columns = {name: [rng.choice(of) for _ in range(50)] for name, of in VALUES.items()}
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    items, asked = to_arrow(rows, WIDE), 0
    for _ in range(20):
        try:
            fn = function(f"lambda r: {_condition(rng)}")
        except HydroError:  # it fails always
            continue
        found = may_pass(fn, items, WIDE)
        if found is None:
            continue
        asked += 1
        for row, passes in zip(from_arrow(items, WIDE), found.to_pylist(), strict=True):
            assert passes or _verdict(fn, row) is not True, (fn.source, row)
    assert asked
