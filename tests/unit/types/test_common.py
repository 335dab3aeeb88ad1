"""Common types, and types of values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given

from hydro_core.types.common import common_type, common_types, fit_decimal, type_of, type_of_all
from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.item import UNKNOWN, Decimal, ItemType
from hydro_core.types.values import ValueProblem, canonical, conform
from tests.support.values import items, types


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("long", "double", "double"),
        ("byte", "short", "short"),
        ("integer", "long", "long"),
        ("long", "float", "double"),
        ("float", "double", "double"),
        ("decimal(10,2)", "long", "decimal(22,2)"),
        ("decimal(10,2)", "decimal(5,4)", "decimal(12,4)"),
        ("decimal(38,10)", "decimal(38,0)", "decimal(38,0)"),
        ("decimal(10,2)", "double", "double"),
        ("void", "string", "string"),
        ("(long, void)", "(void, string)", "(long, string)"),
        ("a long, b string", "b string, a double", "a double, b string"),
        ("array<long>", "array<double>", "array<double>"),
        ("timestamp", "timestamp", "timestamp"),
    ],
)
def test_common(a: str, b: str, both: str) -> None:
    found = common_type(parse_ddl(a), parse_ddl(b))
    assert found is not None
    assert to_ddl(found) == both


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("boolean", "long"),
        ("string", "long"),
        ("date", "timestamp"),
        ("timestamp", "timestamp_ntz"),
        ("binary", "string"),
        ("(long)", "(long, long)"),
        ("(long)", "array<long>"),
        ("(string)", "(long)"),
        ("a long", "b long"),
        ("a long", "a long, b long"),
        ("a long", "(long)"),
        ("array<string>", "array<long>"),
        ("a string, b long", "a long, b long"),
    ],
)
def test_nothing_in_common(a: str, b: str) -> None:
    assert common_type(parse_ddl(a), parse_ddl(b)) is None
    assert common_type(parse_ddl(b), parse_ddl(a)) is None


@given(types)
def test_with_itself_and_the_unknown(t: ItemType) -> None:
    assert common_type(t, t) == t
    assert common_type(t, UNKNOWN) == common_type(UNKNOWN, t) == t


@given(types, types)
def test_has_room_for_both(a: ItemType, b: ItemType) -> None:
    both = common_type(a, b)
    assert (both is None) == (common_type(b, a) is None)
    if both is not None:
        assert common_type(both, a) == both


@given(items)
def test_a_value_fits_its_type(item: Any) -> None:
    try:
        t = type_of(item)
    except ValueProblem:  # an array of several types
        return
    found = conform(item, t)
    assert common_type(type_of(found), t) == t
    assert canonical(conform(found, t)) == canonical(found)


@pytest.mark.parametrize(
    ("value", "ddl"),
    [
        (None, "void"),
        (True, "boolean"),
        (1, "long"),
        (1.5, "double"),
        (Number("12.50"), "decimal(4,2)"),
        (Number("0.001"), "decimal(4,3)"),
        (Number("1E3"), "decimal(4,0)"),
        (Number(0), "decimal(1,0)"),
        (date(2024, 1, 1), "date"),
        (datetime(2024, 1, 1), "timestamp_ntz"),
        (datetime(2024, 1, 1, tzinfo=UTC), "timestamp"),
        (b"", "binary"),
        ([(1, None), (2.5, "a")], "array<(double, string)>"),
        ({"a": []}, "a array<void>"),
    ],
)
def test_type_of(value: Any, ddl: str) -> None:
    assert to_ddl(type_of(value)) == ddl


def test_several() -> None:
    assert to_ddl(type_of_all([1, None, 2.5])) == "double"
    assert common_types([]) == UNKNOWN
    assert common_types([parse_ddl("long"), parse_ddl("string"), parse_ddl("long")]) is None
    with pytest.raises(ValueProblem, match="no common type: long and string"):
        type_of_all([1, "a"])


def test_decimals_keep_digits() -> None:
    assert fit_decimal(40, 10, 6) == Decimal(38, 6)
    assert fit_decimal(5, 2) == Decimal(7, 2)
    assert fit_decimal(0, 0) == Decimal(1, 0)
    assert fit_decimal(50, 3) == Decimal(38, 0)
