"""Random programs about what is stored: two sides that remember, joined, and what changes there.

A side is an input, what of its past is there, and a result of that. Sides meet by columns that are
no key of what is stored, and share an input often: so what is stored of one is looked up by the
other. Every third program is one of all operators, and every second of these has a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from tests.laws.programs import RandomProgram, random_program

HISTORIES = (
    "{x}",
    "{x} -> persist()",
    "{x} -> persist()",
    "{x} -> persist() -> delta() -> window(2)",
    "{x} -> window(2)",
    "{x} -> window(3)",
    "{x} -> old()",
    "{x} -> prev()",
)
RESULTS = {
    "": ("k", "v", "at"),
    'select("v", "k")': ("k", "v"),
    'select("k", "v") -> unique()': ("k", "v"),
    'select("v") -> unique()': ("v",),
    "unique()": ("k", "v", "at"),
    "filter(lambda r: (r.v or 0) > 0)": ("k", "v", "at"),
    "with_columns(v=lambda r: (r.at or 0) % 3)": ("k", "v", "at"),
    'aggregate(by="v", at=max("at"))': ("v", "at"),
    'aggregate(by="k", v=count(), at=sum("at"))': ("k", "v", "at"),
    'latest(by="k", order="at")': ("k", "v", "at"),
    'latest(by=["k", "v"], order="at")': ("k", "v", "at"),
    'top(1, by="v", order="at")': ("k", "v", "at"),
}
"""What is made of a history, with the columns that it has."""
HOWS = ("inner", "left", "outer", "semi", "anti")
BEHIND = (
    "delta()",
    "delta()",
    "changes()",
    "prev()",
    "unique() -> delta()",
    'aggregate(by="v", n=count())',
    'aggregate(by="v", n=count()) -> changes()',
    'aggregate(n=count(), most=max("v"))',
    "",
)


@dataclass(frozen=True)
class StoredProgram:
    """A program, the schemas of its inputs that it does not declare, and its ticks as JSON."""

    text: str
    schemas: dict[str, str]
    ticks: list[dict[str, list[Any]]]


def stored_program(seed: int) -> StoredProgram:
    """The program of a number."""
    if seed % 3 == 2:
        other = _of_all_operators(seed, with_cycle=seed % 2 == 1)
        rng = Random(seed)
        ticks = [*other.ticks, *rng.choices(other.ticks, k=max(0, 6 - len(other.ticks)))]
        return StoredProgram(other.text, other.schemas, ticks)
    rng = Random(seed)
    inputs = ["a", "b"] if rng.random() < 0.6 else ["a"]
    lines = [f'{name} = source("k string, v long, at long")' for name in inputs]
    columns: dict[str, tuple[str, ...]] = {}
    for side in ("l", "r"):
        result = rng.choice(list(RESULTS))
        columns[side] = RESULTS[result]
        steps = [rng.choice(HISTORIES).format(x=rng.choice(inputs)), *([result] if result else [])]
        lines.append(f"{side} = {' -> '.join(steps)}")
    lines.append(f"j = {_joined(rng, columns)}")
    for number, step in enumerate(rng.sample(BEHIND, rng.randint(1, 2))):
        lines.append(f"j -> {step + ' -> ' if step else ''}out{number}")
    if rng.random() < 0.3:
        lines.append(f"{rng.choice('lr')} -> side")
    ticks = [{name: _rows(rng) for name in inputs} for _ in range(rng.randint(5, 7))]
    return StoredProgram("\n".join(lines) + "\n", {}, ticks)


def _of_all_operators(seed: int, *, with_cycle: bool) -> RandomProgram:
    programs = (random_program(seed + more, steps=7) for more in count(step=1_000_000))
    return next(p for p in programs if not with_cycle or "= union()" in p.text)


def _joined(rng: Random, columns: dict[str, tuple[str, ...]]) -> str:
    shared = [name for name in ("k", "v") if all(name in of for of in columns.values())]
    on = ", ".join(f'"{name}"' for name in rng.sample(shared, rng.randint(1, len(shared))))
    if columns["l"] == columns["r"] and rng.random() < 0.2:
        return "l -> difference(neg=r)"
    return f'l -> join(right=r, on=[{on}], how="{rng.choice(HOWS)}", suffix="_r")'


def _rows(rng: Random) -> list[dict[str, Any]]:
    """Few keys, nulls among them; some ticks bring nothing."""
    return [
        {
            "k": rng.choice(("x", "y", None)),
            "v": rng.choice((None, 0, 1, 2)),
            "at": rng.choice((None, 0, 1, 2, 3)),
        }
        for _ in range(rng.choice((0, 1, 1, 2, 4)))
    ]
