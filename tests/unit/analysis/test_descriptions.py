"""What is said of columns follows their lineage."""

from __future__ import annotations

from hydro_core.analysis.lineage import described
from hydro_core.compile import compile_text
from hydro_core.lang.comments import Comments

PROGRAM = """\
payments = source(
  "user string, "  # who pays
  "amount long, "  # in cents
  "day date"
)
users = source(
  "user string, "  # who is known
  "city string"    # where they live
)

known = users -> persist()
joined = payments -> join(right=known, on="user") -> rename(town="city")
joined -> placed
payments -> join(right=known, on="user", how="left") -> perhaps_placed
payments -> join(right=known, on="user", how="outer") -> either_placed

joined -> select("user", euros=lambda p: p.amount / 100, amount=lambda p: p.amount + 1) -> changed
joined -> map(lambda p: (p.user, p.town)) -> pairs

totals = payments -> persist() -> aggregate(
  by="user",
  total=sum("amount"),  # all that was paid
)
totals -> delta() -> sums

either = union()
totals -> either
payments -> select("user", total=lambda p: p.amount) -> either
either -> either_way

# Around the cycle it has been there before.
seen = union()
payments -> select("user") -> seen
seen -> prev() -> seen
seen -> passed
"""


def test_columns_of_inputs_and_what_comes_of_them_unchanged():
    compiled = compile_text(PROGRAM)
    found = described(compiled.typed, Comments({"<text>": PROGRAM}))
    assert found.inputs == {
        "payments": {"user": "who pays", "amount": "in cents"},
        "users": {"user": "who is known", "city": "where they live"},
    }
    assert found.outputs == {
        "placed": {"user": "who pays", "amount": "in cents", "town": "where they live"},
        "perhaps_placed": {
            "user": "who pays",
            "amount": "in cents",
            "city": "where they live",
        },
        "either_placed": {"user": "who pays", "amount": "in cents", "city": "where they live"},
        "changed": {"user": "who pays"},
        "pairs": {},
        "sums": {"user": "who pays", "total": "all that was paid"},
        "either_way": {"user": "who pays", "total": "all that was paid"},
        "passed": {"user": "who pays"},
    }
