"""Between which places left rows stand that a new right row may be nearest to."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import FIRST, LAST, FoundRows, Lookup, LookupBounds, RowsUpToNext
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.search import COMPARED, up_to_next
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl

RIGHT, LEFT = parse_ddl("k long, since date"), parse_ddl("k long, at date, n long")
AT = ("at",)
BY_KEY = Lookup("r", ((("k",), ("k",)),))


def _rows(forward: bool) -> RowsUpToNext:
    keys = BY_KEY.fields
    return RowsUpToNext("r", FoundRows("rs", BY_KEY), keys, (("since",), ("since",)), forward)


def _rights(*places: tuple[int | None, int | None]) -> Any:
    return to_arrow([{"k": k, "since": _day(at)} for k, at in places], RIGHT)


def _day(at: int | None) -> Any:
    from datetime import date, timedelta

    return None if at is None else date(1970, 1, 1) + timedelta(days=at)


def _found(forward: bool, new: Any, stored: Any) -> list[int]:
    """Which left rows are found, of one at each day of key 1, and one without a day."""
    rows = _rows(forward)
    known = {rows: up_to_next(rows, new, RIGHT, None if stored is None else (stored, RIGHT))}
    one = Lookup(
        rows, ((("k",), ("row", "k")),), bounds=LookupBounds(((AT, (FIRST,)),), ((AT, (LAST,)),))
    )
    met = MatchedRows(RowDemand(frozenset([one])), LEFT, known, (0, 9))
    days: list[int | None] = [*range(-5, 10), None]
    items = [{"k": 1, "at": _day(at), "n": 0} for at in days]
    items += [{"k": None, "at": _day(at), "n": 0} for at in days]
    ticks = pa.array([0] * len(items), pa.int64())
    left = met.of(pa.table({"item": to_arrow(items, LEFT), "t": ticks}))
    return [
        (row["at"] - _day(0)).days + (0 if row["k"] else 100) for row in left["item"].to_pylist()
    ]


@pytest.mark.parametrize(
    ("forward", "new", "stored", "wanted"),
    [
        (False, [(1, 2)], [(1, 0), (1, 4), (1, 7), (2, 3), (None, 3)], [2, 3]),
        (True, [(1, 2)], [(1, 0), (1, 4), (1, 7), (2, 1), (None, 1)], [1, 2]),
        (False, [(1, 7)], [(1, 0)], [7, 8, 9]),
        (True, [(1, -4)], [(1, 0)], [-5, -4]),
        (False, [(1, 2)], [(1, 2), (1, 4)], [2, 3]),
        (False, [(1, None)], [(1, 0)], []),
        (False, [(None, 8)], [(1, 0), (1, 9)], [108, 109]),
        (False, [(2, 2)], [(1, 0)], []),
        # of several rows of a key all between the first and the last
        (False, [(1, -4), (1, 1)], [(1, -3), (1, 2)], [-4, -3, -2, -1, 0, 1]),
        (False, [(1, 2)], None, [*range(-5, 10)]),
    ],
)
def test_left_rows_up_to_the_next_right_row_are_found(
    forward: bool,
    new: list[tuple[int | None, int | None]],
    stored: list[tuple[int | None, int | None]] | None,
    wanted: list[int],
) -> None:
    known = None if stored is None else _rights(*stored)
    assert _found(forward, _rights(*new), known) == wanted


def test_of_many_rows_all_left_ones_of_their_keys_are_found() -> None:
    many = _rights(*[(1, 4)] * COMPARED)
    assert _found(False, _rights((1, 2)), many) == [*range(-5, 10)]
