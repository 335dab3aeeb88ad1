"""What `expect` says holds of a column or not as the language page compares values, of few rows in
this process and of many that executors wrote.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.files import parquet
from hydro_core.plan.tick_plan import Kind
from hydro_core.project.check import expected_problems
from hydro_core.project.flow_asset import Expect, FlowAsset, Ticks
from hydro_core.project.yaml_text import value_of
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.item import ItemType
from hydro_core.types.values import canonical, conform, sort_key
from hydrotick.quality.judge import counted
from hydrotick.quality.suites import CheckFacts, checks_of_columns, judge_counts
from tests.support.selection import alternately_slow

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

NAN, INF = float("nan"), float("inf")
_FLOATS = [0.0, -0.0, 0.1, NAN, NAN, INF, -INF, 2.0**53, -1.5, None, None]
_FLOAT_BOUNDS = ["0.1", "0", "-0.0", ".inf", "-.inf", "9007199254740993", "1.0e+400"]
VALUES: Mapping[str, tuple[list[Any], list[str]]] = {
    "long": (
        [0, 2**53, 2**53 + 1, None, None, -(2**63), 2**63 - 1, 1, 1],
        ["9007199254740993", "0.5", "-0.5", "1_000", "0x10", ".inf", "-.inf", "1.0e+100"],
    ),
    "byte": ([0, 127, -128, None, 5, 5], ["5", "127", "1000", "4.5"]),
    "decimal(38,2)": (
        [
            *map(Decimal, ("0.10", "12345678901234567.89", "-1.00", "0.00", "-0.00")),
            *(None, Decimal("9" * 36 + ".99")),
        ],
        ["0.1", "0.100", "12345678901234567.89", "12345678901234567.885", "0", ".inf", "1.0e+80"],
    ),
    "decimal(4,3)": (
        [*map(Decimal, ("0.100", "9.999", "-9.999", "0.100")), None],
        ["0.1", "0.0995", "10", "1000000"],
    ),
    "double": (_FLOATS, _FLOAT_BOUNDS),
    "float": (_FLOATS, _FLOAT_BOUNDS),
    "string": (
        ["", "a", "a\u2028b", "\U0001f600", "\uffff", "é", "a", "a\nb", None, "\x1b[31m"],
        ["a", '"a\\u2028b"', "'\ufffd'", "''"],
    ),
    "date": (
        [
            *(date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31), None),
            *[date(1899, 12, 31)] * 2,
        ],
        ["1899-12-31", "'1582-10-10'", "0001-01-01"],
    ),
    "timestamp": (
        [datetime(1, 1, 1, tzinfo=UTC), datetime(1899, 12, 31, 23, 59, 59, 999999, UTC), None]
        + [datetime(2026, 1, 1, tzinfo=UTC)] * 2,
        ["2026-01-01T01:00:00+01:00", "'1899-12-31T23:59:59.999999Z'", "'2026-01-01'"],
    ),
    "timestamp_ntz": (
        [datetime(1, 1, 1), datetime(1899, 12, 31, 23, 59, 59, 999999), None, datetime(2026, 1, 1)],
        ["2026-01-01T00:00:00", "'1899-12-31T23:59:59.999999'"],
    ),
    "boolean": ([True, False, None, True], ["true", "no"]),
    "binary": ([b"", b"\0", b"\0", None], []),
    "array<double>": ([[NAN], [NAN], [0.0], [-0.0], [], None, [None], [1.0]], []),
    "struct<a: float, b: string>": (
        [{"a": NAN, "b": "x"}, {"a": NAN, "b": "x"}, {"a": 0.0, "b": None}, None],
        [],
    ),
}
"""By type values that are hard to compare, and what YAML may say of them."""


def expectations(of: str, column: str) -> list[Expect]:
    """Of one column each kind, with each of the values that are written."""
    bounds = [value_of(text) for text in VALUES[of][1]]
    found = [Expect(column, not_null=True, unique=True)]
    found += [Expect(column, at_least=bound) for bound in bounds]
    found += [Expect(column, at_most=bound) for bound in bounds]
    found += [Expect(column, one_of=(bound,)) for bound in bounds]
    if of in ("double", "float"):
        found += [Expect(column, one_of=(NAN, 0)), Expect(column, at_least=0.1, at_most=INF)]
    if of == "string":
        found += [Expect(column, matches=pattern) for pattern in ("^a", "a.b", "a$", "")]
    item, flow = (
        parse_ddl(of),
        FlowAsset(name="flow", program="a.hydro", ticks=Ticks(datetime(2026, 1, 1)), inputs={}),
    )
    return [e for e in found if not list(expected_problems(flow, "expect", e, item))]


def breaks(expect: Expect, kind: str, of: ItemType) -> Callable[[Any, int], bool]:
    """The page's word on a value of a column, of which there are so many in its tick."""

    def key(value: Any) -> Any:
        if isinstance(value, float) and of not in map(parse_ddl, ("float", "double")):
            return (2, 0, value if math.isinf(value) else Decimal(repr(value)))
        is_exact = isinstance(of, DecimalType) or str(of) in ("long", "byte")
        return sort_key(value if is_exact else conform(value, of))

    match kind:
        case "unique":
            return lambda value, count: value is not None and count > 1
        case "between":
            return lambda value, _: (
                value is not None
                and not (
                    (expect.at_least is None or key(expect.at_least) <= key(value))
                    and (expect.at_most is None or key(value) <= key(expect.at_most))
                )
            )
        case "one_of":
            return lambda value, _: (
                value is not None and key(value) not in [key(one) for one in expect.one_of]
            )
        case "matches":
            return lambda value, _: value is not None and not re.search(expect.matches, value)
        case _:
            return lambda value, _: value is None


def wanted(rows: list[tuple[int, Any]], expected: list[Expect], of: str) -> dict[str, int]:
    """How many rows break each check."""
    item = parse_ddl(of)
    values = [(tick, conform(value, item)) for tick, value in rows]
    counts = Counter((tick, canonical(value)) for tick, value in values)
    found = {}
    for check in checks_of_columns(expected):
        broken = breaks(check.expect, check.kind, item)
        found[check.name] = sum(broken(v, counts[t, canonical(v)]) for t, v in values)
    return found


@pytest.mark.parametrize(
    ("of", "empty"),
    alternately_slow(VALUES, [False, True]),
)
def test_few_rows_and_many_are_judged_as_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, empty: bool
) -> None:
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 3)
    values = [] if empty else VALUES[of][0]
    # In the second tick each value is alone.
    alone = list({repr(canonical(value)): value for value in values}.values())
    rows = [*((0, value) for value in values), *((1, value) for value in alone)]
    item = parse_ddl(f"v {of}")
    spec = TableSpec("outputs/out", "output", "out", item, False, Form.GROWTH, Kind.E, "")
    named = [{"tick": tick, "v": value} for tick, value in rows]
    table = pa.Table.from_pylist(named, spec.arrow_schema)
    pq.write_table(table, tmp_path / "rows.parquet")
    expected = expectations(of, "v")
    assert len(expected) > len(VALUES[of][1])
    few = WrittenRows(spec, len(rows), table)
    many = replace(few, table=None, files=(tmp_path / "rows.parquet",) if rows else ())
    for shown in (few, many):
        facts = counted(expected, shown, lambda: spark)
        assert {name: of.broken for name, of in facts.items()} == wanted(rows, expected, of)
        assert {of.rows for of in facts.values()} == {len(rows)}
        assert not any(of.problem for of in facts.values())
        for verdict in judge_counts("flow", "out", expected, facts):
            assert verdict.passed == (facts[verdict.check].broken == 0)


def test_what_could_not_be_counted_has_not_passed() -> None:
    expected = [Expect("v", not_null=True)]
    facts = {"v_not_null": CheckFacts(problem="there is no such column")}
    (verdict,) = judge_counts("flow", "out", expected, facts)
    assert not verdict.passed
