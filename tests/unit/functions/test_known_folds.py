"""Folds that an engine has aggregates for are known by the entries of their operations."""

from __future__ import annotations

import pytest

from hydro_core.functions.known_folds import Extreme, KnownFold, StartKept, Total, known_fold
from hydro_core.functions.library.registry import OPERATIONS
from tests.support.functions import text

STEPS = {name: entry for name, entry in OPERATIONS.items() if entry.step is not None}


def known(body: str) -> KnownFold | None:
    return known_fold(text(f"lambda acc, x: {body}"))


def written(name: str, a: str, b: str) -> str:
    return f"{name}({a}, {b})" if name.isalpha() else f"{a} {name} {b}"


@pytest.mark.parametrize("name", sorted(STEPS))
def test_an_entry_that_is_a_step_of_an_aggregate_makes_a_fold_known(name: str) -> None:
    entry, of_both = STEPS[name], [written(name, "acc", "x"), written(name, "x", "acc")]
    match entry.step:
        case "plus":
            assert [type(known(body)) for body in of_both] == [Total, Total]
            assert entry.function(3, 5) == 8
        case "minus":
            assert [type(known(body)) for body in of_both] == [Total, type(None)]
            assert entry.function(3, 5) == -2
        case "least" | "greatest" as step if entry.syntax is None:
            found = [known(body) for body in of_both]
            assert [one.kind for one in found if isinstance(one, Extreme)] == [step, step]
            assert entry.function(3, 5) == {"least": 3, "greatest": 5}[step]
        case "least" | "greatest" as step:
            other = "greatest" if step == "least" else "least"
            ways = [f"{a} if {test} else {b}" for test in of_both for a, b in _ORDERS]
            found = [known(way) for way in ways]
            kinds = [one.kind for one in found if isinstance(one, Extreme)]
            assert kinds == [step, other, other, step]
            assert (3 if entry.function(3, 5) else 5) == {"least": 3, "greatest": 5}[step]


_ORDERS = (("acc", "x"), ("x", "acc"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("acc", StartKept),
        ("acc + x - x * 2", Total),
        ("(x - 1) + acc", Total),
        ("acc + x if x > 0 else acc", Total),
        ("acc if x > 0 else acc - x", Total),
    ],
)
def test_a_fold_that_is_known(body: str, kind: type[KnownFold]) -> None:
    assert type(known(body)) is kind


@pytest.mark.parametrize(
    "body",
    [
        "acc * x",
        "x - (x - acc) - acc",
        "acc < x",
        "max(acc, x, 1)",
        "max(acc, x, key=lambda y: -y)",
        "acc if acc < x else x + 1",
        "acc if acc == x else x",
        "max(acc + x, x)",
        "acc + acc",
        "levenshtein(acc, x)",
    ],
)
def test_a_fold_that_is_none_of_these(body: str) -> None:
    assert known(body) is None


def test_what_is_taken_off_the_accumulator_is_added_with_its_sign() -> None:
    found = known("acc - (x - 3)")
    assert isinstance(found, Total)
    assert found == known("acc - x + 3")
