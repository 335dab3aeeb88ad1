"""Small programs, each with the edits that a team makes of it: what flows of the stories run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import ProgramError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.shards.program import sharded
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import Row
from hydro_core.types.json import to_json
from hydro_core.types.values import RowItem

START = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first tick begins; each has a day."""
KEY = "k"
COLUMNS = {"a": (KEY, "v"), "b": (KEY, "w")}
"""What rows of the inputs have beside their tick."""
_SOURCES = 'a = source("k string, v long")\n'
_BOTH = _SOURCES + 'b = source("k string, w long")\nhb = b -> persist()\n'


@dataclass(frozen=True)
class Family:
    """A program and its edits: the first version is deployed first."""

    versions: tuple[str, ...]
    refactored: frozenset[tuple[int, int]] = frozenset()
    """Pairs of versions that say the same in other words."""
    fails_later: str = ""
    """The output of these that fails in another tick, which makes it another one."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("a", "b") if self.versions[0].startswith(_BOTH) else ("a",)


def of_one(*versions: str, same: Sequence[tuple[int, int]] = (), fails_later: str = "") -> Family:
    """The versions of a program that reads `a`, and which of them say the same."""
    texts = tuple(_SOURCES + text + "\n" for text in versions)
    return Family(texts, frozenset(same), fails_later)


def of_two(*versions: str, same: Sequence[tuple[int, int]] = ()) -> Family:
    """The same of one that reads `a` and `b`, of which `hb` is the history."""
    return Family(tuple(_BOTH + text + "\n" for text in versions), frozenset(same))


FAMILIES: Mapping[str, Family] = {
    "stateless": of_one(
        "a -> filter(lambda r: r.v > 0) -> o",
        "a -> filter(lambda r: r.v > 1) -> o",
        "a -> filter(lambda r: r.v > 0) -> with_columns(d=lambda r: r.v * 2) -> o",
        "a -> filter(lambda r: not r.v <= 0) -> o",
        "a -> filter(lambda r: r.v > 0) -> o\na -> filter(lambda r: r.v == 0) -> zero",
        same=[(0, 3)],
    ),
    "persist": of_one(
        "a -> persist() -> o",
        "a -> persist() -> filter(lambda r: r.v > 1) -> o",
        "a -> filter(lambda r: r.v > 1) -> persist() -> o",
        'a -> persist() -> o\na -> persist() -> aggregate(by="k", n=count()) -> counts',
        'a -> select("k") -> persist() -> o',
        same=[(1, 2)],
    ),
    "totals": of_one(
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o',
        'a -> persist() -> aggregate(by="k", s=sum("v"), n=count()) -> o',
        'a -> persist() -> aggregate(by="k", s=max("v")) -> o',
        'h = a -> persist()\nh -> aggregate(by="k", s=sum("v")) -> o',
        'a -> filter(lambda r: r.v > 1) -> persist() -> aggregate(by="k", s=sum("v")) -> o',
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> delta() -> o',
        same=[(0, 3)],
    ),
    "news": of_one(
        "a -> persist() -> unique() -> delta() -> o",
        "a -> persist() -> unique() -> o",
        "a -> unique() -> o",
        'a -> select("k") -> persist() -> unique() -> delta() -> o',
        "a -> persist() -> unique() -> delta() -> o\na -> prev() -> before",
    ),
    "before": of_one(
        "a -> prev() -> o\na -> persist() -> old() -> p",
        "a -> prev() -> filter(lambda r: r.v > 1) -> o\na -> persist() -> old() -> p",
        "a -> filter(lambda r: r.v > 1) -> prev() -> o\na -> persist() -> old() -> p",
        "a -> prev() -> prev() -> o\na -> persist() -> old() -> p",
        same=[(1, 2)],
        fails_later="o",
    ),
    "window": of_one(
        'a -> window(2) -> aggregate(by="k", s=sum("v")) -> o',
        'a -> window(3) -> aggregate(by="k", s=sum("v")) -> o',
        'a -> window(2) -> aggregate(by="k", s=sum("v"), n=count()) -> o',
        "a -> window(2) -> o",
    ),
    "latest": of_one(
        'a -> persist() -> latest(by="k", order="v") -> o',
        'a -> filter(lambda r: r.v < 4) -> persist() -> latest(by="k", order="v") -> o',
        'a -> persist() -> latest(by="k", order="v") -> with_columns(d=lambda r: r.v + 1) -> o',
        'a -> persist() -> latest(by="k", order="v") -> delta() -> o',
    ),
    "median": of_one(
        'a -> persist() -> aggregate(by="k", m=median("v")) -> o',
        'a -> persist() -> aggregate(by="k", m=median("v"), n=count()) -> o',
        'a -> persist() -> filter(lambda r: r.v > 1) -> aggregate(by="k", m=median("v")) -> o',
    ),
    "several": of_one(
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o\n'
        "a -> filter(lambda r: r.v > 2) -> big",
        'a -> persist() -> aggregate(by="k", s=sum("v"), n=count()) -> o\n'
        "a -> filter(lambda r: r.v > 2) -> big",
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o\n'
        "a -> filter(lambda r: r.v > 3) -> big",
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o\n'
        "a -> filter(lambda r: r.v > 2) -> big\na -> persist() -> unique() -> seen",
    ),
    "outputs": of_one(
        "a -> persist() -> o\na -> filter(lambda r: r.v > 1) -> p",
        "a -> persist() -> o",
        "a -> persist() -> o\na -> filter(lambda r: r.v > 1) -> q",
    ),
    "join": of_two(
        'a -> persist() -> join(right=hb, on="k") -> o',
        'a -> persist() -> join(right=hb, on="k") -> filter(lambda r: r.v > r.w) -> o',
        'a -> persist() -> join(right=hb, on="k") -> delta() -> o',
        'ha = a -> persist()\nha -> join(right=hb, on="k") -> o',
        'a -> join(right=hb, on="k") -> o',
        'a -> persist() -> join(right=hb, on="k")\n'
        '  -> aggregate(by="k", s=sum("v"), n=count()) -> o',
        same=[(0, 3)],
    ),
    "anti": of_two(
        'a -> persist() -> join(right=hb, on="k", how="anti") -> o',
        'a -> join(right=hb, on="k", how="anti") -> o',
        'a -> persist() -> filter(lambda r: r.v > 1)\n  -> join(right=hb, on="k", how="anti") -> o',
        'a -> persist() -> join(right=hb, on="k", how="semi") -> o',
    ),
    "left": of_two(
        'l = hb -> latest(by="k", order="w")\na -> join(right=l, on="k", how="left") -> o',
        'l = hb -> aggregate(by="k", w=max("w"))\na -> join(right=l, on="k", how="left") -> o',
        'l = hb -> latest(by="k", order="w")\n'
        'a -> persist() -> join(right=l, on="k", how="left") -> o',
    ),
    "sides": of_two(
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o\nhb -> unique() -> p',
        'a -> persist() -> aggregate(by="k", s=sum("v"), n=count()) -> o\nhb -> unique() -> p',
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> o\nhb -> unique() -> delta() -> p',
    ),
}
FEEDS: Mapping[str, str] = {
    "o": _SOURCES + "a -> filter(lambda r: r.v >= 0) -> o\n",
    "sums": _SOURCES
    + 'a -> persist() -> aggregate(by="k", v=sum("v")) -> delta() -> select("k", "v") -> o\n',
}
"""Programs of flows that feed another one: their output has the columns of the input `a`."""
IN_ALL = "in all"
"""The name of one whose rows are not those of one key."""
_LARGE = _SOURCES + "a -> filter(lambda r: r.v >= 2) -> o\n"
FEED_VERSIONS: Mapping[str, tuple[str, ...]] = {
    **{name: (text, _LARGE) for name, text in FEEDS.items()},
    IN_ALL: (
        _SOURCES + 'a -> persist() -> aggregate(v=sum("v")) -> delta()'
        ' -> map(lambda r: {"k": "x", "v": r.v}) -> o\n',
        _LARGE,
    ),
}
"""Each of these programs, and what it is edited to."""

Values = tuple[Any, ...]
"""The columns of a row, without its tick."""
Batch = Mapping[str, Sequence[Values]]
Outputs = Mapping[str, list[Values]]
NamedRows = Sequence[Mapping[str, Any]]


def run(text: str, batches: Sequence[Batch]) -> list[Outputs]:
    """The outputs of the program at every tick, by the reference interpreter: rows in an order."""
    compiled = _compiled(text)
    ticks = [
        TickInput(
            {
                name: [RowItem(zip(COLUMNS[name], row, strict=True)) for row in rows]
                for name, rows in batch.items()
            },
            START + timedelta(days=tick),
            START + timedelta(days=tick + 1),
        )
        for tick, batch in enumerate(batches)
    ]
    found = run_ticks(compiled.typed, compiled.strata, ticks)
    return [{name: _rows(text, name, items) for name, items in tick.items()} for tick in found]


def named(text: str, tick: Outputs) -> dict[str, NamedRows]:
    """The outputs of a tick, with the names of their columns."""
    return {
        name: [dict(zip(columns_of(text, name), row, strict=True)) for row in rows]
        for name, rows in tick.items()
    }


def with_past(
    text: str, ticks: Sequence[Outputs], past: Mapping[str, Sequence[NamedRows]]
) -> list[Outputs]:
    """The outputs at every tick, of which the first ticks may be what other programs gave."""
    return [
        {
            name: _in_columns(text, name, past[name][tick])
            if tick < len(past.get(name, ()))
            else rows
            for name, rows in outputs.items()
        }
        for tick, outputs in enumerate(ticks)
    ]


def _in_columns(text: str, output: str, rows: NamedRows) -> list[Values]:
    names = columns_of(text, output)
    return in_order([tuple(row.get(name) for name in names) for row in rows])


@cache
def can_be_cut(text: str) -> bool:
    """Whether the program can be cut into shards."""
    try:
        sharded(_compiled(text), 2)
    except ProgramError:
        return False
    return True


def columns_of(text: str, output: str) -> tuple[str, ...]:
    """The columns of an output."""
    item = _compiled(text).typed.outputs[output].item
    assert isinstance(item, Row)
    return tuple(item.names)


def outputs_of(text: str) -> set[str]:
    """The names of the outputs."""
    return set(_compiled(text).typed.outputs)


def stated(families: Mapping[str, Family]) -> dict[tuple[str, str], Mapping[str, str]]:
    """The state of every output of the versions that say the same in other words."""
    return {
        pair: {
            name: "changed" if name == family.fails_later else "same"
            for name in outputs_of(pair[0])
        }
        for family in families.values()
        for one, other in (tuple(map(family.versions.__getitem__, p)) for p in family.refactored)
        for pair in ((one, other), (other, one))
    }


def in_order(rows: Sequence[Values]) -> list[Values]:
    """The rows in an order that does not depend on the one that they have."""
    return sorted(rows, key=repr)


@cache
def _compiled(text: str) -> CompiledProgram:
    return compile_text(text)


def _rows(text: str, output: str, items: Sequence[Any]) -> list[Values]:
    item = _compiled(text).typed.outputs[output].item
    names = columns_of(text, output)
    found = (to_json(one, item) for one in items)
    return in_order([tuple(row[name] for name in names) for row in found])
