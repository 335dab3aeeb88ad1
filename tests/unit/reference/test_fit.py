from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from hydro_core.reference.bag import fits
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem, Struct, ValueProblem, conform

TYPES = [
    "boolean",
    "byte",
    "integer",
    "long",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(4,2)",
    "(long, string)",
    "(long)",
    "a long, b string",
    "b string, a long",
    "array<long>",
    "array<(long, double)>",
    "x (long, string), y array<string>",
    "void",
]
ITEMS: list[Any] = [
    None,
    True,
    1,
    2**63 - 1,
    -(2**63),
    2**63,
    1.0,
    float("nan"),
    "a",
    "é",
    "\ud800",
    b"x",
    Decimal("1.5"),
    Decimal("1.50"),
    date(2024, 1, 1),
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    (1, "a"),
    Struct((1, "a")),
    Struct((1, 2)),
    Struct((None, None)),
    Struct((1,)),
    [1],
    [1.0],
    [None],
    [],
    [Struct((1, 1.0))],
    {"a": 1, "b": "x"},
    RowItem(a=1, b="x"),
    RowItem(b="x", a=1),
    RowItem(a=1),
    RowItem(x=Struct((1, "a")), y=["z", None]),
    RowItem(items=1, keys="x"),
    RowItem(a=1, b="x", c=2),
]


@pytest.mark.parametrize("schema", TYPES)
def test_what_fits_stays_as_it_is(schema: str) -> None:
    of = parse_ddl(schema)
    for item in ITEMS:
        if fits(of)(item):
            made = conform(item, of)
            assert repr(made) == repr(item)
            assert type(made) is type(item)


@pytest.mark.parametrize(
    "schema", [t for t in TYPES if t not in ("byte", "integer", "float", "decimal(4,2)", "void")]
)
def test_what_conform_gives_fits(schema: str) -> None:
    of = parse_ddl(schema)
    for item in ITEMS:
        try:
            made = conform(item, of)
        except ValueProblem:
            assert not fits(of)(item)
        else:
            assert fits(of)(made) or made == "é"
