"""Random programs over rows that leave by a time of theirs: rows come late, early, or without."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

TIMES = ("date", "timestamp", "timestamp_ntz")
TICKS = 6
FORMS = {
    "values": "{x} -> {out}",
    "changes": "{x} -> changes() -> {out}",
    "delta": "{x} -> delta() -> {out}",
    "prev": "{x} -> prev() -> {out}",
    "totals": '{x} -> aggregate(by="k", n=count(), total=sum("v")) -> {out}',
    "moved": '{x} -> aggregate(by="k", m=max("v"), n=count()) -> changes() -> {out}',
    "whole": "{x} -> aggregate(n=count()) -> {out}",
    "some": "{x} -> filter(lambda r: r.v is not None and r.v > 1) -> {out}",
    "joined": '{x} -> join(right={c}, on="k") -> {out}',
    "padded": '{x} -> join(right={c}, on="k", how="left") -> {out}',
    "named": '{x} -> join(right={c}, on="k") -> aggregate(by="w", n=count()) -> {out}',
    "without": '{c} -> join(right={x}, on="k", how="anti") -> {out}',
    "keys": '{x} -> select("k") -> unique() -> {out}',
    "newest": '{x} -> latest(by="k", order="at") -> {out}',
    "first": '{x} -> sort_by_key(lambda r: r.v or 0) -> limit(2, by="k") -> {out}',
    "window": "{x} -> delta() -> window(2) -> {out}",
    "kept": '{x} -> persist(for_={longer}, by="at") -> {out}',
}
"""What is made of the rows."""


@dataclass
class RecentProgram:
    """A program, the schemas of its inputs, and its ticks as JSON."""

    text: str = ""
    schemas: dict[str, str] = field(default_factory=dict)
    ticks: list[dict[str, list[Any]]] = field(default_factory=list)


def recent_program(seed: int) -> RecentProgram:
    """The program of a number; its ticks are days from 2024-01-01 on."""
    rng = Random(seed)
    time = rng.choice(TIMES)
    lines = [f'x = a -> persist(for_={_length(rng)}, by="at")']
    if rng.random() < 0.3:
        lines.append('a -> persist() -> aggregate(by="k", n=count()) -> of_all')
    if rng.random() < 0.3:
        lines.append(f'y = a -> persist(for_={_length(rng)}, by="at")\ny -> also')
    right = rng.choice(["b -> persist()", "b", f'b -> persist(for_={_length(rng)}, by="at")'])
    chosen = rng.sample(sorted(FORMS), rng.randint(1, 3))
    made = [
        FORMS[form].format(x="x", c="c", out=form, longer="timedelta(days=9)") for form in chosen
    ]
    if any(" c " in f" {line} ".replace("=c,", " c ") for line in made):
        lines.append(f'c = {right} -> select("k", "w")')
    given = {"a": f"k string, at {time}, v long", "b": f"k string, at {time}, w long"}
    text = "\n".join([*lines, *made]) + "\n"
    used = {name: of for name, of in given.items() if f"{name} ->" in text}
    ticks = [
        {name: [_row(rng, tick, time, "vw"[name == "b"]) for _ in range(rng.randint(0, 4))]
         for name in used}
        for tick in range(TICKS)
    ]  # fmt: skip
    return RecentProgram(text, used, ticks)


def _length(rng: Random) -> str:
    return rng.choice(
        ("timedelta(days=1)", "timedelta(days=2)", "timedelta(days=3, hours=5)", "timedelta(0)",
         "timedelta(hours=7)", "timedelta(days=999999999)", "timedelta(days=2, microseconds=1)")
    )  # fmt: skip


def _row(rng: Random, tick: int, time: str, value: str) -> dict[str, Any]:
    day = tick + rng.choice((-4, -2, -1, -1, 0, 0, 0, 0, 1, 2))
    shown = f"2023-12-{28 + day:02}" if day < 4 else f"2024-01-{day - 3:02}"
    hour = rng.choice(("00:00:00", "07:00:00", "17:00:00", "23:59:59.999999"))
    at = shown if time == "date" else f"{shown}T{hour}{'Z' if time == 'timestamp' else ''}"
    known = None if rng.random() < 0.1 else at
    return {"k": rng.choice("pqr"), "at": known, value: rng.choice((None, 0, 1, 2, 3))}
