"""Items in JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.item import STRING, UNKNOWN
from hydro_core.types.json import from_json, infer, json_text, parse_json, to_json
from hydro_core.types.values import RowItem, Struct, ValueProblem, canonical

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_goes_there_and_back_by_the_inferred_type(value: Any) -> None:
    item_type = infer([value])
    item = from_json(json.loads(json.dumps(value)), item_type)
    again = from_json(json.loads(json.dumps(to_json(item, item_type))), item_type)
    assert canonical(again) == canonical(item)


@pytest.mark.parametrize(
    ("value", "ddl", "item"),
    [
        ([1, "a"], "(long, string)", Struct((1, "a"))),
        ([1, 2], "array<long>", [1, 2]),
        ([], "array<long>", []),
        ([[1, [2]]], "array<(long, array<long>)>", [Struct((1, [2]))]),
        ({"b": 1}, "a string, b double", RowItem(a=None, b=1.0)),
        (1, "double", 1.0),
        ("2.5", "decimal(4,2)", Decimal("2.50")),
        (2, "decimal(4,2)", Decimal("2.00")),
        (2.5, "decimal(4,2)", Decimal("2.50")),
        ("-1e1", "decimal(4,2)", Decimal("-10.00")),
        ("2024-02-29", "date", date(2024, 2, 29)),
        ("2024-01-01T00:00:00Z", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01 00:00:00", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-01T00:00:00.5-01:00", "timestamp", datetime(2024, 1, 1, 1, 0, 0, 500000, UTC)),
        ("2024-01-01T00:00:00", "timestamp_ntz", datetime(2024, 1, 1)),
        ("2024-01-01T00:00:00.120000000", "timestamp_ntz", datetime(2024, 1, 1, 0, 0, 0, 120000)),
        ("aGk=", "binary", b"hi"),
        (None, "(long, long)", None),
        ([1, {"a": [2]}], "void", Struct((1, RowItem(a=Struct((2,)))))),
    ],
)
def test_reads(value: Any, ddl: str, item: Any) -> None:
    found = from_json(value, parse_ddl(ddl))
    assert found == item
    assert type(found) is type(item)


@pytest.mark.parametrize(
    ("value", "ddl"),
    [
        (2**63, "long"),
        (2**63, "void"),
        (True, "long"),
        (1.0, "long"),
        ("1", "long"),
        (1, "string"),
        (0, "boolean"),
        ("nan", "double"),
        ("Infinity", "long"),
        ("inf", "float"),
        ("2.555", "decimal(4,2)"),
        ("100", "decimal(4,2)"),
        ("NaN", "decimal(4,2)"),
        ("a", "decimal(4,2)"),
        (True, "decimal(4,2)"),
        ("2023-02-29", "date"),
        (20240101, "date"),
        (1704067200, "timestamp"),
        ("2024-01-01T00:00:00Z", "timestamp_ntz"),
        ("2024-01-01T00:00:00.1234567Z", "timestamp"),
        ("2024-01-01T00:00:00,0000000001", "timestamp_ntz"),
        ("2024-01-01T00:00:00.5+01:00:00.0000001", "timestamp"),
        ("%%%", "binary"),
        ([1], "(long, long)"),
        ({"_1": 1, "_2": 2}, "(long, long)"),
        ([1], "a long"),
        ({"a": 1, "b": 2}, "a long"),
        ("abc", "array<string>"),
        ("\ud800", "string"),
    ],
)
def test_refuses(value: Any, ddl: str) -> None:
    with pytest.raises(ValueProblem):
        from_json(value, parse_ddl(ddl))


def test_says_where() -> None:
    with pytest.raises(ValueProblem, match=r"\(at n\) \(at 1\)$"):
        from_json([0, {"n": "x"}], parse_ddl("(long, struct<n: long>)"))


@pytest.mark.parametrize(
    ("item", "ddl", "text"),
    [
        (datetime(2024, 1, 1, tzinfo=UTC), "timestamp", '"2024-01-01T00:00:00Z"'),
        (datetime(2024, 1, 1, 0, 0, 0, 500, UTC), "timestamp", '"2024-01-01T00:00:00.000500Z"'),
        (datetime(2024, 1, 1), "timestamp_ntz", '"2024-01-01T00:00:00"'),
        (date(2024, 1, 1), "date", '"2024-01-01"'),
        (Decimal("2.5"), "decimal(4,2)", '"2.50"'),
        (Decimal("1E+3"), "decimal(8,0)", '"1000"'),
        (Decimal("0.0000001"), "void", '"0.0000001"'),
        (b"hi", "binary", '"aGk="'),
        (1, "double", "1.0"),
        (float("nan"), "double", '"NaN"'),
        (float("-inf"), "double", '"-Infinity"'),
        (float("inf"), "void", '"Infinity"'),
        (Struct((math.nan, [math.inf])), "(double, array<float>)", '["NaN", ["Infinity"]]'),
        (RowItem(a=RowItem(b=-math.inf)), "a struct<b: float>", '{"a": {"b": "-Infinity"}}'),
        (Struct((1, [Struct((2,))])), "(long, array<(double)>)", "[1, [[2.0]]]"),
        (RowItem(b=1, a=None), "a long, b long", '{"a": null, "b": 1}'),
        (True, "boolean", "true"),
    ],
)
def test_prints(item: Any, ddl: str, text: str) -> None:
    assert json.dumps(to_json(item, parse_ddl(ddl))) == text


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("of", ["double", "float"])
def test_reads_numbers_that_json_has_not(text: str, of: str) -> None:
    """As strings, and as the bare words that Python writes; within other values, too."""
    for written in (f'"{text}"', text):
        value = parse_json(f'[{written}, [{written}, null], {{"x": {written}}}]')
        found = from_json(value, parse_ddl(f"({of}, array<{of}>, struct<x: {of}>)"))
        for number in (found[0], found[1][0], found[2]["x"]):
            assert type(number) is float
            assert repr(number) == repr(float(text))
        assert to_json(found) == [text, [text, None], {"x": text}]
    assert from_json(text, STRING) == text


def test_what_is_printed_for_programs_is_json() -> None:
    value = {"cost": math.inf, "rows": [(math.nan, 1.5, None)], "é": "NaN"}
    assert json_text(value) == '{"cost": "Infinity", "rows": [["NaN", 1.5, null]], "é": "NaN"}'


def test_prints_no_other_values() -> None:
    with pytest.raises(ValueProblem):
        to_json(object(), UNKNOWN)


@pytest.mark.parametrize(
    ("values", "ddl"),
    [
        ([], "void"),
        ([None], "void"),
        ([1, None, 2.5], "double"),
        ([[1, "a"], [None, None]], "(long, string)"),
        ([{"a": 1}, {"b": "x"}], "a long, b string"),
        ([{"a": {"x": 1}}, {"a": {"y": True}}], "a struct<x: long, y: boolean>"),
        ([[], []], "struct<>"),
    ],
)
def test_infers(values: list[Any], ddl: str) -> None:
    assert to_ddl(infer(values)) == ddl


@pytest.mark.parametrize("values", [[1, "a"], [True, 1], [[1], [1, 2]], [[1], {"a": 1}], [2**63]])
def test_infers_no_type(values: list[Any]) -> None:
    with pytest.raises(ValueProblem):
        infer(values)


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ("12345678901234567.89", "decimal(38,2)", Decimal("12345678901234567.89")),
        ("1e2", "decimal(5,2)", Decimal("100.00")),
        ("0.10", "decimal(5,2)", Decimal("0.10")),
        ('{"a": [12345678901234567.89]}', "a array<decimal(38,2)>", None),
        ("1.5", "double", 1.5),
    ],
)
def test_numbers_keep_their_digits_until_the_type_is_known(
    text: str, schema: str, expected: object
) -> None:
    found = from_json(parse_json(text), parse_ddl(schema))
    if expected is not None:
        assert (type(found), str(found)) == (type(expected), str(expected))
    else:
        assert "JsonNumber" not in repr(found)


def test_what_does_not_fit_is_told_by_its_digits() -> None:
    with pytest.raises(ValueProblem, match=r"^12345678901234567\.891 has more digits after"):
        from_json(parse_json("12345678901234567.891"), parse_ddl("decimal(38,2)"))
    with pytest.raises(ValueProblem, match=r"1E\+999999999"):
        from_json(parse_json("1e999999999"), parse_ddl("decimal(38,2)"))


def test_an_item_of_no_type_is_a_float() -> None:
    found = from_json(parse_json('{"a": [1.10]}'), UNKNOWN)
    assert type(found["a"][0]) is float
