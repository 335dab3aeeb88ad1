"""Schemas as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hydro_core.errors import TypeProblem
from hydro_core.types.ddl import parse_ddl, parse_stored, stored_ddl, to_ddl
from hydro_core.types.item import (
    LONG,
    STRING,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from tests.support.values import names, scalar_types, types


@given(types)
def test_reads_what_it_prints(item: ItemType) -> None:
    assert parse_ddl(to_ddl(item)) == item


stored_types = st.recursive(
    scalar_types,
    lambda inner: st.one_of(
        inner.map(Array),
        st.lists(inner, max_size=3).map(lambda ts: Tuple(tuple(ts))),
        st.lists(inner, max_size=3).map(
            lambda ts: Row(tuple(Field(f"_{i}", t, bool(i % 2)) for i, t in enumerate(ts, 1)))
        ),
        st.lists(
            st.builds(Field, st.one_of(st.just(""), names), inner, st.booleans()),
            max_size=3,
            unique_by=lambda field: field.name,
        ).map(lambda fields: Row(tuple(fields))),
    ),
    max_leaves=5,
)


@given(stored_types)
@example(Row((Field("decimal", Tuple(())),)))
@example(Row((Field("", Tuple(())),)))
@example(Row((Field("_1", LONG, nullable=False),)))
def test_what_is_stored_loses_nothing(item: ItemType) -> None:
    """The text says whether columns may be null, which equality does not look at."""
    found = parse_stored(stored_ddl(item))
    assert found == item
    assert str(found) == str(item)


def test_a_wide_schema_is_read_in_no_time() -> None:
    text = ", ".join(f"c{i} long" for i in range(9_000))
    began = time.process_time()
    parse_ddl(text)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long", LONG),
        ("(long)", Tuple((LONG,))),
        ("a long", Row((Field("a", LONG),))),
        ("(long, (string, long))", Tuple((LONG, Tuple((STRING, LONG))))),
        ("BIGINT", LONG),
        ("date date", Row((Field("date", Scalar("date")),))),
        ("a: int, b: tinyint", Row((Field("a", Scalar("integer")), Field("b", Scalar("byte"))))),
        ("a real", Row((Field("a", Scalar("float")),))),
        ("decimal", Decimal(10, 0)),
        ("decimal(5)", Decimal(5, 0)),
        ("numeric(5, 2)", Decimal(5, 2)),
        ("decimal decimal(3,1)", Row((Field("decimal", Decimal(3, 1)),))),
        ("decimal (boolean)", Row((Field("decimal", Tuple((Scalar("boolean"),))),))),
        ("char ((long))", Row((Field("char", Tuple((Tuple((LONG,)),))),))),
        ("pos (long, long)", Row((Field("pos", Tuple((LONG, LONG))),))),
        ("varchar(10)", STRING),
        ("struct<_1: long, _2: string>", Tuple((LONG, STRING))),
        ("_1 long, _2 string", Tuple((LONG, STRING))),
        ("_2 long, _1 string", Row((Field("_2", LONG), Field("_1", STRING)))),
        ("struct<>", Row(())),
        ("a long NOT NULL COMMENT 'the, \\'key'", Row((Field("a", LONG),))),
        ("`a``b, c` long", Row((Field("a`b, c", LONG),))),
        ("timestamp_ntz", Scalar("timestamp_ntz")),
        ("timestamp_ltz", Scalar("timestamp")),
        ("array<array<string>>", Array(Array(STRING))),
        ("  long \n", LONG),
    ],
)
def test_reads(text: str, expected: ItemType) -> None:
    assert parse_ddl(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("lon", "`lon` is not a type"),
        ("a", "`a` is not a type"),
        ("a strin", "`strin` is not a type"),
        ("a long,", "a name is missing at its end"),
        ("a long b long", "`,` is missing before `b`"),
        ("(long", "is missing at its end"),
        ("()", "`\\)` is not a type"),
        ("(a long)", "`a` is not a type"),
        ("array<long", "`>` is missing"),
        ("map<string,int>", "no maps"),
        ("a long, a string", "`a` stands twice"),
        ("decimal(39,0)", "1 to 38 digits"),
        ("decimal(3,4)", "1 to 38 digits"),
        ("decimal(x)", "not a number"),
        ("a long; b long", "cannot be read at '; b long'"),
        ("long)", "`\\)` is not a type"),
        ("'a' long", "is not a name"),
        ("`` long", "a column has no name"),
    ],
)
def test_refuses(text: str, said: str) -> None:
    with pytest.raises(TypeProblem, match=said) as caught:
        parse_ddl(text)
    assert caught.value.code == "type"


def test_suggests_the_type_that_was_meant() -> None:
    with pytest.raises(TypeProblem) as caught:
        parse_ddl("a timestmp")
    assert caught.value.help == "did you mean `timestamp`?"
