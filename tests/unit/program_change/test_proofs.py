"""Why an output is said to be the same: the rules that lead there, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.optimize.compare import INDUCTION, NARROWED, NORMAL_FORM, RENAMED, SAME_TEXT
from hydro_core.optimize.optimizer import optimize
from hydro_core.program_change.difference import Difference, difference

SOURCES = """
orders = source("user string, product string, amount long")
users = source("user string, country string")
"""


def changed(before: str, after: str) -> Difference:
    deployments = []
    for text in (before, after):
        compiled = compile_text(SOURCES + text)
        deployments.append(deployment_of("shop", compiled.typed, optimize(compiled.typed)))
    return difference(deployments[0], deployments[1], {})


def proof(before: str, after: str) -> tuple[str, ...]:
    return changed(before, after).proofs["out"]


def rules(lines: Sequence[str]) -> list[str]:
    """The names; each comes with its sentence."""
    assert all(": " in line for line in lines)
    return [line.split(": ")[0] for line in lines]


ONCE = 'orders -> select("user") -> persist() -> unique() -> delta() -> out'


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (ONCE, ONCE, SAME_TEXT),
        (ONCE, "users -> persist() -> others\n" + ONCE, SAME_TEXT),
        ("a = orders -> old()\na -> out", "b = orders -> old()\nb -> out", RENAMED),
        (
            "orders -> filter(lambda r: r.amount == 1) -> out",
            "orders -> filter(lambda q: q['amount'] == 1) -> out",
            NORMAL_FORM,
        ),
        (
            "orders -> select('user', 'product') -> out",
            "orders -> drop('amount') -> out",
            NORMAL_FORM,
        ),
    ],
)
def test_what_needs_no_rule(before: str, after: str, why: str) -> None:
    assert proof(before, after) == (why,)


def test_a_filter_that_moved() -> None:
    found = proof(
        'orders -> join(right=users, on="user") -> filter(lambda r: r.amount == 1) -> out',
        'orders -> filter(lambda r: r.amount == 1) -> join(right=users, on="user") -> out',
    )
    assert rules(found) == ["filter-join-left"]


def test_an_induction_rests_on_rules_that_are_told() -> None:
    by_hand = """
    seen = orders -> select("user") -> unique()
    news = seen -> difference(neg=before)
    before = news -> old()
    news -> out
    """
    found = proof(ONCE, by_hand)
    assert INDUCTION in found
    assert {"unique-split", "delta-persist"} <= set(rules(found))
    assert not [name for name in rules(found) if "join" in name or "aggregate" in name]


def test_an_induction_that_rests_on_nothing_else() -> None:
    cycle = "x = {} -> union(y)\ny = x -> prev() -> filter(lambda r: r.amount == 1)\nx -> out"
    turned = "b = a -> prev() -> filter(lambda q: q.amount == 1)\na = b -> union(orders)\na -> out"
    found = proof(cycle.format("orders"), turned)
    assert rules(found)[-1] == "induction over ticks"


def test_columns_that_nobody_reads() -> None:
    totals = 'aggregate(by="user", n=sum("amount")) -> out'
    found = proof(
        f"orders -> window(3) -> {totals}",
        f'orders -> select("user", "amount") -> window(3) -> {totals}',
    )
    assert found == (NARROWED,)


def test_of_an_output_with_a_column_more() -> None:
    wider = 'orders -> persist() -> aggregate(by="user", n=count(), m=max("amount")) -> out'
    found = changed(wider.replace(', m=max("amount")', ""), wider)
    assert found.outputs["out"].change == "columns"
    assert found.proofs["out"]


def test_what_is_not_the_same_has_no_proof() -> None:
    found = changed("orders -> persist() -> out", "orders -> old() -> out")
    assert found.outputs["out"].change == "changed"
    assert found.proofs == {}
