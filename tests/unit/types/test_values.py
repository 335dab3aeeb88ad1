"""Items as Python values."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import UNKNOWN
from hydro_core.types.values import (
    RowItem,
    Struct,
    ValueProblem,
    canonical,
    conform,
    describe,
    is_changeable,
    sort_key,
    to_item,
)
from tests.support.values import items

NAN = float("nan")
EAST = timezone(timedelta(hours=1))
COPIES = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


class TestStruct:
    def test_is_a_tuple_with_named_positions(self) -> None:
        pair = Struct((1, "a"))
        assert pair == (1, "a")
        assert (pair._1, pair._2, pair[0]) == (1, "a", 1)
        assert hash(pair) == hash((1, "a"))

    @pytest.mark.parametrize("name", ["_0", "_3", "_01", "x", "_"])
    def test_has_no_other_names(self, name: str) -> None:
        with pytest.raises(AttributeError):
            getattr(Struct((1, 2)), name)

    @pytest.mark.parametrize("again", COPIES)
    def test_survives_a_copy(self, again: Any) -> None:
        found = again(Struct((1, Struct((2,)))))
        assert found._2._1 == 2


class TestRowItem:
    def test_fields_are_attributes_and_win_over_methods(self) -> None:
        row = RowItem(keys=1, items=2, values=3, count=4, index=5, get=6, copy=7)
        assert (row.keys, row.items, row.values, row.count) == (1, 2, 3, 4)
        assert (row.index, row.get, row.copy, row["get"]) == (5, 6, 7, 6)
        assert {**row, "n": 1} == {**dict(row), "n": 1}
        assert list(row) == ["keys", "items", "values", "count", "index", "get", "copy"]

    def test_methods_stay_without_such_a_field(self) -> None:
        assert list(RowItem(a=1).items()) == [("a", 1)]
        assert RowItem(a=1).get("b", 2) == 2

    def test_names_what_is_missing(self) -> None:
        with pytest.raises(AttributeError, match="no column 'b'; it has 'a'"):
            _ = RowItem(a=1).b

    @pytest.mark.parametrize(
        "change",
        [
            lambda r: r.update(a=2),
            lambda r: r.pop("a"),
            lambda r: r.clear(),
            lambda r: r.setdefault("z", 1),
            lambda r: r.popitem(),
            lambda r: r.__setitem__("a", 2),
            lambda r: r.__delitem__("a"),
            lambda r: setattr(r, "a", 2),
            lambda r: r.__ior__({"a": 2}),
        ],
    )
    def test_cannot_be_changed(self, change: Any) -> None:
        row = RowItem(a=1)
        with pytest.raises(TypeError, match="cannot be changed"):
            change(row)
        assert row == {"a": 1}

    def test_hashes_as_dicts_compare(self) -> None:
        assert hash(RowItem(a=1, b=2)) == hash(RowItem(b=2.0, a=True))
        assert len({RowItem(a=1), RowItem(a=1)}) == 1

    @pytest.mark.parametrize("again", COPIES)
    def test_survives_a_copy(self, again: Any) -> None:
        found = again(RowItem(keys=1, r=RowItem(a=2)))
        assert isinstance(found, RowItem)
        assert found.r.a == 2


class TestCanonical:
    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (None, None),
            (NAN, math.nan),
            (NAN, -NAN),
            (0.0, -0.0),
            (1, 1.0),
            (Decimal("1.50"), Decimal("1.5")),
            (RowItem(a=1, b=NAN), RowItem(b=NAN, a=1)),
            ([NAN, None], [NAN, None]),
            (Struct((1, NAN)), Struct((1.0, NAN))),
            (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, tzinfo=EAST)),
        ],
    )
    def test_equal(self, a: Any, b: Any) -> None:
        assert canonical(a) == canonical(b)
        assert hash(canonical(a)) == hash(canonical(b))

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (True, 1),
            (False, 0),
            (None, False),
            (None, NAN),
            ("1", 1),
            (b"a", "a"),
            (Struct((1,)), [1]),
            (Struct((1, 2)), Struct((2, 1))),
            (RowItem(a=None), RowItem()),
            (Struct((True,)), Struct((1,))),
            (2**53 + 1, float(2**53)),
            (date(2024, 1, 1), datetime(2024, 1, 1)),
        ],
    )
    def test_different(self, a: Any, b: Any) -> None:
        assert canonical(a) != canonical(b)

    @given(items)
    def test_is_a_key(self, item: Any) -> None:
        assert canonical(item) == canonical(copy.deepcopy(item))
        hash(canonical(item))


def columns(item: Any) -> Any:
    """The names of the columns of all rows in the item, where they stand."""
    match item:
        case RowItem():
            return {name: columns(item[name]) for name in item}
        case list() | tuple():
            return [columns(part) for part in item]
        case _:
            return None


class TestOrder:
    def test_of_every_kind(self) -> None:
        assert sorted([True, None, False], key=sort_key) == [None, False, True]
        assert sorted([2, None, NAN, -1.5, math.inf], key=sort_key)[:4] == [None, -1.5, 2, math.inf]
        strings = ["b", "\U0001f600", "\uffff", "a", ""]
        assert sorted(strings, key=sort_key) == ["", "a", "b", "\uffff", "\U0001f600"]
        assert sorted([b"\xff", b"", b"a"], key=sort_key) == [b"", b"a", b"\xff"]

    def test_structs_go_field_by_field(self) -> None:
        pairs = [Struct((1, "b")), Struct((None, "z")), Struct((1, None)), Struct((0, "c"))]
        assert sorted(pairs, key=sort_key) == [(None, "z"), (0, "c"), (1, None), (1, "b")]

    def test_rows_go_by_the_order_of_their_fields(self) -> None:
        rows = [RowItem(b=1, a=2), RowItem(b=0, a=3)]
        assert sorted(rows, key=sort_key) == [{"b": 0, "a": 3}, {"b": 1, "a": 2}]

    def test_arrays_go_by_element_then_length(self) -> None:
        assert sorted([[1, 2], [1], [], [0, 9]], key=sort_key) == [[], [0, 9], [1], [1, 2]]

    def test_equal_zeroes(self) -> None:
        assert sort_key(0.0) == sort_key(-0.0)

    @given(items, items)
    def test_is_total(self, a: Any, b: Any) -> None:
        x, y = sort_key(a), sort_key(b)
        assert (x < y) + (y < x) + (x == y) == 1

    @given(items, items)
    def test_agrees_with_equality_within_a_type(self, a: Any, b: Any) -> None:
        # The items of a stream have the same columns; the order looks at their values only. The
        # other way round a row's order of fields counts.
        if columns(a) == columns(b) and sort_key(a) == sort_key(b):
            assert canonical(a) == canonical(b)

    def test_of_what_is_no_item(self) -> None:
        with pytest.raises(ValueProblem):
            sort_key(object())


class TestToItem:
    def test_tuples_and_dicts(self) -> None:
        found = to_item((1, {"a": (2, [{"b": None}])}))
        assert isinstance(found, Struct)
        assert isinstance(found._2, RowItem)
        assert found._2.a._2[0].b is None

    def test_sequences_become_arrays(self) -> None:
        assert to_item(range(3)) == [0, 1, 2]
        assert to_item(x for x in (1, 2)) == [1, 2]
        assert to_item(zip([1], "a", strict=True)) == [(1, "a")]
        assert to_item({"a": 1}.items()) == [("a", 1)]
        assert to_item(reversed([1, 2])) == [2, 1]

    def test_zones_become_utc(self) -> None:
        east = timezone(timedelta(hours=2))
        assert to_item(datetime(2024, 1, 1, tzinfo=east)) == datetime(2023, 12, 31, 22, tzinfo=UTC)
        assert to_item(datetime(2024, 1, 1)).tzinfo is None

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, [2**63], {"a": (2**64,)}, 10**400])
    def test_integers_have_64_bits(self, value: Any) -> None:
        with pytest.raises(ValueProblem, match="beyond 64 bits"):
            to_item(value)

    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
    def test_the_last_integers(self, value: int) -> None:
        assert to_item(value) == value

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            ({1, 2}, "sorted"),
            (timedelta(1), "total_seconds"),
            (object(), "a object is not an item"),
            (1j, "complex"),
            (len, "builtin"),
            ({1: 2}, "names"),
            (Decimal("NaN"), "not an item"),
            (Decimal("Infinity"), "not an item"),
            ("\ud800", "surrogate"),
            ({"\ud800": 1}, "surrogate"),
        ],
    )
    def test_what_is_no_item(self, value: Any, why: str) -> None:
        with pytest.raises(ValueProblem, match=why):
            to_item(value)

    def test_subclasses_become_plain(self) -> None:
        class Many(int): ...

        class Name(str): ...

        assert type(to_item(Many(3))) is int
        assert type(to_item(Name("a"))) is str

    @given(items)
    def test_keeps_items(self, item: Any) -> None:
        assert canonical(to_item(item)) == canonical(item)


class TestConform:
    @pytest.mark.parametrize(
        ("item", "ddl", "expected"),
        [
            (1, "double", 1.0),
            (Decimal("1.5"), "double", 1.5),
            (1, "decimal(5,2)", Decimal("1.00")),
            (Decimal("1.005"), "decimal(5,2)", Decimal("1.00")),
            (Decimal("1.015"), "decimal(5,2)", Decimal("1.02")),
            (0, "decimal(2,2)", Decimal("0.00")),
            (0.1, "float", 0.10000000149011612),
            (1e300, "float", math.inf),
            ("2024-01-01", "date", date(2024, 1, 1)),
            ("2024-01-01", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
            ("2024-01-01T02:00:00+02:00", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
            (datetime(2024, 1, 1), "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
            ("2024-01-01T02:00:00", "timestamp_ntz", datetime(2024, 1, 1, 2)),
            ([1, 2], "(long, double)", (1, 2.0)),
            ((1, 2), "array<double>", [1.0, 2.0]),
            ({"b": 1}, "a string, b double", {"a": None, "b": 1.0}),
            (bytearray(b"x"), "binary", b"x"),
            (127, "byte", 127),
            (None, "(long, string)", None),
            (7, "void", 7),
        ],
    )
    def test_fits(self, item: Any, ddl: str, expected: Any) -> None:
        found = conform(item, parse_ddl(ddl))
        assert found == expected
        assert type(found) is type(expected) or isinstance(found, Struct | RowItem)

    @pytest.mark.parametrize(
        ("item", "ddl"),
        [
            (True, "long"),
            (True, "double"),
            (True, "decimal(3,0)"),
            (1, "boolean"),
            (1.0, "long"),
            ("1", "long"),
            (1, "string"),
            (128, "byte"),
            (2**31, "integer"),
            (2**63, "long"),
            (1.5, "decimal(5,2)"),
            (1000, "decimal(5,2)"),
            (Decimal("999.995"), "decimal(5,2)"),
            ("2024-13-01", "date"),
            ("20240101", "date"),
            (datetime(2024, 1, 1), "date"),
            (date(2024, 1, 1), "timestamp"),
            ("soon", "timestamp"),
            ("2024-01-01T00:00:00Z", "timestamp_ntz"),
            ("0001-01-01T00:00:00+02:00", "timestamp"),
            ((1,), "(long, long)"),
            ((1, 2, 3), "(long, long)"),
            (5, "(long, long)"),
            (5, "array<long>"),
            ("ab", "array<string>"),
            ((1, 2), "a long, b long"),
            ({"a": 1, "c": 2}, "a long, b long"),
            ("x", "binary"),
            ("\ud800", "string"),
        ],
    )
    def test_does_not_fit(self, item: Any, ddl: str) -> None:
        with pytest.raises(ValueProblem):
            conform(item, parse_ddl(ddl))

    def test_says_where(self) -> None:
        with pytest.raises(ValueProblem, match=r"'x' is not of type long \(at n\) \(at 1\)"):
            conform(({"n": 1}, {"n": "x"}), parse_ddl("array<struct<n: long>>"))
        with pytest.raises(ValueProblem, match="no column 'c'; the columns are a, b"):
            conform({"c": 2}, parse_ddl("a long, b long"))

    def test_rows_take_the_order_of_the_type(self) -> None:
        assert list(conform({"b": 1, "a": 2}, parse_ddl("a long, b long"))) == ["a", "b"]

    @given(items)
    def test_of_the_unknown_type(self, item: Any) -> None:
        assert canonical(conform(item, UNKNOWN)) == canonical(item)


def test_describe_is_short() -> None:
    assert describe(10**5000) == "an integer of 16610 bits"
    assert len(describe(["x"] * 1000)) < 70
    assert describe(None) == "None"
    assert describe(object()) == "a object"


def test_is_changeable() -> None:
    assert is_changeable(Struct((1, RowItem(a=[]))))
    assert not is_changeable(Struct((1, RowItem(a="x"))))
