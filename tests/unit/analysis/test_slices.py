"""What of each input can matter for some rows of an output."""

from __future__ import annotations

import pytest

from hydro_core import Flow
from hydro_core.errors import ProgramError

SHOP = """
orders = source("id long, user string, amount long")
users = source("user string, city string")
known = users -> persist()
"""


def sliced(text: str, *columns: str, output: str = "out") -> dict[str, object]:
    found = Flow.parse(SHOP + text).slice(output, *columns).as_json()
    return {name: found[name] for name in ("orders", "users")}


def test_a_key_is_asked_of_all_that_meets_there() -> None:
    text = 'orders -> persist() -> join(right=known, on="user") -> out'
    assert sliced(text, "user") == {"orders": [{"user": "user"}], "users": [{"user": "user"}]}


def test_the_other_side_is_asked_for_what_is_looked_for() -> None:
    text = 'orders -> join(right=known, on="user", how="left") -> out'
    found = sliced(text, "id")
    assert found == {"orders": [{"id": "id"}], "users": [{"user": "looked for by join_1"}]}


def test_a_padded_side_is_not_told_apart_by_its_own_columns() -> None:
    text = 'orders -> join(right=known, on="user", how="left") -> out'
    found = sliced(text, "city")
    assert found == {"orders": [{}], "users": [{"user": "looked for by join_1"}]}


def test_of_a_group_all_rows_matter() -> None:
    text = (
        'orders -> persist() -> aggregate(by="user", total=sum("amount")) -> out; users -> null()'
    )
    assert sliced(text, "user", "total") == {"orders": [{"user": "user"}], "users": []}
    assert sliced(text, "total") == {"orders": [{}], "users": []}


def test_alternatives_are_told_apart() -> None:
    text = 'a = orders -> select("user"); b = orders -> select(user=lambda r: r.user + "x")\n'
    text += "a -> union(b) -> out; users -> null()"
    assert sliced(text, "user") == {"orders": [{}], "users": []}
    text = 'a = orders -> map(lambda r: (r.user, r.id)); b = orders -> map(lambda r: ("", r.id))\n'
    text += "a -> union(b) -> select_pairs; users -> null(); select_pairs = map(lambda p: p)"
    assert sliced(text + " -> out", "_2") == {"orders": [{"id": "1"}], "users": []}


def test_it_is_said_which_operator_needs_all_rows() -> None:
    answer = str(
        Flow.parse(SHOP + "orders -> aggregate(n=count()) -> out\nusers -> null()").slice(
            "out", "n"
        )
    )
    assert (
        "orders: all rows of the tick can matter: `aggregate` in line 5: one result is made of"
        in answer
    )
    assert "users: none of its rows can matter" in answer


def test_it_is_said_which_ticks_matter() -> None:
    text = SHOP + "orders -> window(3) -> out\nusers -> null()"
    assert "orders: rows of the last 3 ticks with that `user`" in str(
        Flow.parse(text).slice("out", "user")
    )


@pytest.mark.parametrize(
    ("output", "column", "cure"),
    [("ot", "user", "did you mean `out`"), ("out", "usr", "did you mean `user`")],
)
def test_what_is_not_there_is_refused(output: str, column: str, cure: str) -> None:
    with pytest.raises(ProgramError) as refused:
        sliced("orders -> out; users -> null()", column, output=output)
    assert cure in str(refused.value)
