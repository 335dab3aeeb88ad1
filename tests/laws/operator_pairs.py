"""Programs of two operators that remember, over one input, of different arguments or the same.

What is stored is shared where it can be: one table for two windows, one change log for two
results, one index, one kept plan. So two operators are tried together that by themselves are right.
A part of a program is a history, what reads it, and what is wanted of that: values or changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import combinations_with_replacement
from random import Random
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.lang.resolve import parse
from hydro_core.running import read_ticks
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import parse_ddl

DAYS = Calendar(datetime(2024, 1, 10, tzinfo=UTC), "1d")

SCHEMAS = {
    "a": "k string, at timestamp, seen timestamp, v long",
    "b": "k string, since timestamp, w long",
}
TICKS = 7

SOME = "filter(lambda r: (r.v or 0) > 1)"
PAIRS = "map(lambda r: (r.k, r.v or 0))"
ROW = 'map(lambda k, v: {"k": k, "v": v})'
COMMANDS = 'map(lambda r: ("delete" if r.v == 0 else "persist", r.k, r.v))'

HISTORIES = {
    "persist": "{x} -> persist()",
    "old": "{x} -> old()",
    "day": '{x} -> persist(for_=timedelta(days=1), by="at")',
    "days": '{x} -> persist(for_=timedelta(days=3), by="at")',
    "seen": '{x} -> persist(for_=timedelta(days=2), by="seen")',
    "two": "{x} -> window(2)",
    "four": "{x} -> window(4)",
    "before": "{x} -> prev()",
    "two before": "{x} -> prev() -> prev()",
    "tick": "{x}",
    "newest": '{x} -> persist() -> latest(by="k", order="at")',
    "some": f"{{x}} -> {SOME} -> persist()",
    "some days": f'{{x}} -> {SOME} -> persist(for_=timedelta(days=3), by="at")',
    "of two": '{x} -> window(2) -> persist(for_=timedelta(days=2), by="at")',
}
"""What of the past is there, as rows of `a`."""

READERS = {
    "rows": "",
    "keys": 'select("k") -> unique()',
    "values": 'select("k", "v") -> unique()',
    "totals": 'aggregate(by="k", n=count(), s=sum("v"))',
    "totals by two": 'aggregate(by=["k", "v"], n=count())',
    "whole": 'aggregate(n=count(), s=sum("v")) -> with_columns(k=lambda r: "w")',
    "most": 'aggregate(by="k", m=max("v"))',
    "least": 'aggregate(by="k", m=min("v"), last=max("at"))',
    "different": 'aggregate(by="k", d=count_distinct("v"))',
    "medians": 'aggregate(by="k", m=median("v"))',
    "latest": 'latest(by="k", order="at")',
    "latest seen": 'latest(by="k", order=["seen", "v"])',
    "top": 'top(1, by="k", order="v")',
    "top two": 'top(2, by="k", order="v", descending=True)',
    "ties": 'top(2, by="k", order="v", ties=True)',
    "top of all": 'top(3, order="v")',
    "lag": 'over(by="k", order="at", x=lag("v", 1))',
    "lag two": 'over(by="k", order="at", x=lag("v", 2), n=row_number())',
    "rolled": 'over(by="k", order="at", x=rolling(sum("v"), within=timedelta(days=1)))',
    "rolled days": 'over(by="k", order="at", x=rolling(sum("v"), within=timedelta(days=3)))',
    "rolled rows": 'over(by="k", order="at", x=rolling(sum("v"), rows=2))',
    "sessions": 'over(by="k", order="at", x=session(gap=timedelta(hours=6)))',
    "long sessions": 'over(by="k", order="at", x=session(gap=timedelta(days=2)))',
    "as of": 'join_asof(right=bs, on="k", at="at", since="since", within=timedelta(days=1))',
    "as of days": 'join_asof(right=bs, on="k", at="at", since="since", within=timedelta(days=3))',
    "as of later": 'join_asof(right=bs, on="k", at="at", since="since", direction="forward")',
    "nearest": 'join_asof(right=lately, on="k", at="at", since="since", direction="nearest")',
    "joined": 'join(right=bs, on="k")',
    "joined lately": 'join(right=lately, on="k")',
    "joined where": 'join(right=bs, on="k", where=lambda l, r: l.at < r.since)',
    "padded": 'join(right=bs, on="k", how="left")',
    "padded both": 'join(right=lately, on="k", how="outer")',
    "known": 'join(right=bs, on="k", how="semi")',
    "unknown": 'join(right=lately, on="k", how="anti")',
    "new": 'delta() -> window(2)',
    "folded": f"{PAIRS} -> fold_keyed(0, lambda s, v: s + v, commutative=True) -> {ROW}",
    "folded least": f"{PAIRS} -> reduce_keyed(lambda x, y: min(x, y), commutative=True) -> {ROW}",
    "scanned": f"sort_by_key(lambda r: r.at) -> {PAIRS}"
    f" -> scan_keyed(0, lambda s, v: (s * 2 + v) % 7) -> {ROW}",
    "first": 'sort_by_key(lambda r: r.v or 0) -> limit(1, by="k")',
    "first two": 'sort_by_key(lambda r: r.v or 0) -> limit(2, by="k")',
    "commands": f"sort_by_key(lambda r: r.at) -> {COMMANDS} -> persist_mut_keyed() -> {ROW}",
    "not theirs": 'select("k") -> difference(neg=keys)',
}  # fmt: skip
"""What reads them; each gives rows with a `k`."""

USES = {
    "as they are": "",
    "changes": 'changes() -> map(lambda n, r: {"k": r.k, "n": n, "r": r})',
    "delta": "delta()",
    "counted": 'aggregate(by="k", rows=count())',
    "counted all": "aggregate(rows=count())",
    "largest": 'aggregate(by="k", rows=count()) -> top(1, order="rows", ties=True)',
    "tick before": "prev()",
}
"""What is wanted of that."""

SHARED = {
    "bs": "bs = b -> persist()",
    "lately": 'lately = b -> persist(for_=timedelta(days=2), by="since")',
    "keys": 'keys = b -> window(3) -> select("k")',
}
"""The other side, which two readers share too."""


@dataclass(frozen=True)
class Part:
    """A history, what reads it, and what is wanted of that."""

    history: str
    reader: str
    use: str

    def line(self, name: str) -> str:
        """The statement that gives this as an output."""
        steps = (HISTORIES[self.history].format(x="a"), READERS[self.reader], USES[self.use])
        return f"{' -> '.join(step for step in steps if step)} -> {name}"


@dataclass(frozen=True)
class Made:
    """A program, the schemas of its inputs, and its ticks as JSON."""

    text: str
    schemas: dict[str, str]
    ticks: list[dict[str, list[Any]]]


def pairs_of_readers() -> Iterator[tuple[Part, ...]]:
    """Every two readers, each with itself too, over histories and for uses at random."""
    for first, second in combinations_with_replacement(READERS, 2):
        rng = Random(f"{first} {second}")
        same = rng.choice(list(HISTORIES))
        histories = (same, same) if rng.random() < 0.5 else rng.choices(list(HISTORIES), k=2)
        uses = rng.choices(list(USES), k=2)
        yield tuple(map(Part, histories, (first, second), uses))


def pairs_of_histories() -> Iterator[tuple[Part, ...]]:
    """Every two histories for every two uses, with readers at random."""
    wanted = [(history, use) for history in HISTORIES for use in USES]
    for (first, use), (second, other) in combinations_with_replacement(wanted, 2):
        rng = Random(f"{first} {use} {second} {other}")
        readers = rng.choices(list(READERS), k=2)
        same = rng.random() < 0.5
        yield (Part(first, readers[0], use), Part(second, readers[not same], other))


def made(parts: tuple[Part, ...]) -> Made:
    """The program that gives all parts, and ticks for it."""
    lines = [part.line(f"out{n}") for n, part in enumerate(parts)]
    shared = [line for name, line in SHARED.items() if any(f"={name}" in of for of in lines)]
    text = "\n".join([*shared, *lines]) + "\n"
    schemas = {name: of for name, of in SCHEMAS.items() if name == "a" or shared}
    rng = Random(text)
    ticks = [
        {name: [_ROWS[name](rng, tick) for _ in range(rng.randint(0, 4))] for name in schemas}
        for tick in range(TICKS)
    ]
    return Made(text, schemas, ticks)


def _row_of_a(rng: Random, tick: int) -> dict[str, Any]:
    times = {name: _time(rng, tick) for name in ("at", "seen")}
    return {"k": rng.choice("pqr"), **times, "v": rng.choice((None, 0, 1, 2, 3))}


def _row_of_b(rng: Random, tick: int) -> dict[str, Any]:
    return {"k": rng.choice("pqs"), "since": _time(rng, tick), "w": rng.choice((None, 1, 2))}


_ROWS = {"a": _row_of_a, "b": _row_of_b}


def _time(rng: Random, tick: int) -> str | None:
    """On the day of a tick, late, early, or none at all."""
    if rng.random() < 0.05:
        return None
    day = 10 + tick + rng.choice((-4, -2, -1, -1, 0, 0, 0, 0, 0, 1))
    return f"2024-01-{day:02}T{rng.choice(('00:00:00', '07:00:00', '17:00:00'))}Z"


@cache
def all_pairs() -> tuple[tuple[Part, ...], ...]:
    """All of them."""
    return (*pairs_of_readers(), *pairs_of_histories())


def numbered(
    pairs: tuple[tuple[Part, ...], ...], every: int
) -> tuple[list[tuple[Part, ...]], list[tuple[Part, ...]]]:
    """Some of the pairs, and all others."""
    some = [pair for number, pair in enumerate(pairs) if number % every == 0]
    return some, [pair for number, pair in enumerate(pairs) if number % every]


def program_of(one: Made) -> CompiledProgram:
    """It, compiled."""
    types = {name: parse_ddl(text) for name, text in one.schemas.items()}
    return compile_graph(parse(one.text), types)


def ticks_of(one: Made, program: CompiledProgram) -> list[TickInput]:
    """Its ticks, each of a day."""
    return list(read_ticks(program.typed, one.ticks, DAYS))
