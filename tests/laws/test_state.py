"""What the operators of state have to do with each other."""

from __future__ import annotations

import random

import pytest

from tests.laws.programs import random_batch
from tests.laws.running import run
from tests.laws.templates import KINDS

EQUAL = {
    "persist is old and now": ("a -> persist()", "a -> old() -> union(a)"),
    "old is prev of persist": ("a -> old()", "a -> persist() -> prev()"),
    "persist of prev is old": ("a -> prev() -> persist()", "a -> old()"),
    "delta of persist": ("a -> persist() -> delta()", "a"),
    "delta of old is prev": ("a -> old() -> delta()", "a -> prev()"),
    "a window of one": ("a -> window(1)", "a"),
    "a window of three": ("a -> window(3)", "a -> union(p1, p2)"),
    "a window of more ticks than there are": ("a -> window(99)", "a -> persist()"),
    "a window of windows": ("a -> window(2) -> window(2)", "a -> union(p1, p1, p2)"),
    "prev of prev": ("a -> prev() -> prev()", "p2"),
    "delta": (
        "a -> delta()",
        "a -> changes() -> fold(0, lambda acc, n, x: acc + max(n, 0), commutative=True)",
    ),
    "unique of persist grows by what is new": (
        "a -> persist() -> unique() -> delta()",
        "a -> unique() -> difference(neg=o1)",
    ),
    "unique is idempotent": ("a -> unique() -> unique()", "a -> unique()"),
    "union commutes": ("a -> union(b)", "b -> union(a)"),
    "chain is union": ("a -> chain(right=b)", "b -> union(a)"),
    "persist is linear": ("a -> union(b) -> persist()", "a -> persist() -> union(b2)"),
    "difference as anti_join": (
        "a -> difference(neg=b)",
        "a -> map(lambda x: (x, 0)) -> anti_join(neg=b) -> map(lambda k, v: k)",
    ),
    "next_stratum": ("a -> next_stratum()", "a -> identity()"),
    "fold_keyed as group": (
        "a -> map(lambda x: (x, 1)) -> fold_keyed(0, lambda acc, v: acc + v, commutative=True)",
        "a -> map(lambda x: (x, 1)) -> reduce_keyed(lambda v, w: v + w, commutative=True)",
    ),
    "union and persist feed back as prev": ("loop", "a -> persist()"),
}
SHARED = """
p1 = a -> prev()
p2 = p1 -> prev()
o1 = a -> old()
b2 = b -> persist()
loop = union()
a -> loop
loop -> prev() -> loop
"""
UNREAD = "b -> null(); p2 -> null(); b2 -> null(); o1 -> null()"


@pytest.mark.parametrize("kind", ["long", "text", "pair", "row"])
@pytest.mark.parametrize("law", [name for name in EQUAL if name != "delta"])
def test_law(law: str, kind: str) -> None:
    one, other = EQUAL[law]
    program = f"{SHARED}{one} -> one\n{other} -> other\n{UNREAD}"
    rng = random.Random(law + kind)
    for _ in range(15):
        ticks = [{n: random_batch(rng, kind) for n in "ab"} for _ in range(rng.randint(1, 6))]
        for tick in run(program, dict.fromkeys("ab", KINDS[kind]), ticks):
            assert tick["one"] == tick["other"]


def test_delta_is_what_changes_gains() -> None:
    one, other = EQUAL["delta"]
    program = f"{one} -> fold(0, lambda n, x: n + 1, commutative=True) -> one\n{other} -> other"
    rng = random.Random(5)
    for _ in range(30):
        ticks = [{"a": random_batch(rng, "long")} for _ in range(rng.randint(1, 6))]
        for tick in run(program, {"a": "long"}, ticks):
            assert tick["one"] == tick["other"]
