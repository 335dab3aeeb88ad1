"""Operators that use earlier ticks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hydro_core.catalog import column_rules, lineage_rules, type_rules
from hydro_core.catalog.classes import Commands, History, PreviousTick, TickDifference, Window
from hydro_core.catalog.spec import (
    LINEAR,
    ORDERED,
    WHOLE,
    Arg,
    Args,
    Barrier,
    Example,
    FailureMode,
    OnAnyField,
    OnKey,
    OpSpec,
    OrderRule,
    Port,
    State,
    option,
)

_PAST = (Port("in", barrier=Barrier.TICK, linear=True, aliases=("0",)),)
_LONGS = {"a": "long"}
_TICKS: tuple[dict[str, list[Any]], ...] = ({"a": [1]}, {"a": [1, 2]}, {"a": []})


def _for_a_time(args: Args) -> Mapping[str, Any]:
    """The columns of a history with a bound; without one it has no further arguments."""
    if args.get("for_") is None:
        return {"args": ()}
    return {"cls": Window(timed=True), "state": State.RECENT, "time_invariant": False}


_over_time = partial(OpSpec, family="state", order=OrderRule.LOSES)
"""An operator whose output has no order, whatever its input's."""

PERSIST = _over_time(
    name="persist",
    cls=History(),
    summary="all items of the ticks up to this one; with `for_`, rows leave when the time in "
    "their column `by` is so long before the tick's end",
    inputs=LINEAR,
    args=(
        option("for_", "duration", "how long after their time rows stay, a timedelta"),
        option(
            "by",
            "name",
            "the column of the rows' time, a date (its midnight) or a timestamp, in UTC "
            "where it names no zone; rows without one, and those that come too late, are never "
            "there",
        ),
    ),
    together=("for_", "by"),
    refine=_for_a_time,
    result=column_rules.recent,
    state=State.HISTORY,
    example=Example(
        "a -> persist() -> out",
        _TICKS,
        ({"out": [1]}, {"out": [1, 1, 2]}, {"out": [1, 1, 2]}),
        _LONGS,
    ),
)

OLD = _over_time(
    name="old",
    cls=History(before=True),
    summary="all items of the ticks before this one",
    inputs=_PAST,
    state=State.HISTORY,
    example=Example(
        "a -> old() -> out", _TICKS, ({"out": []}, {"out": [1]}, {"out": [1, 1, 2]}), _LONGS
    ),
)

WINDOW = _over_time(
    name="window",
    cls=Window(),
    summary="all items of the last n ticks, this one included",
    inputs=LINEAR,
    args=(Arg("n", "integer", "how many ticks", required=True, least=1),),
    state=State.WINDOW,
    example=Example(
        "a -> window(2) -> out",
        _TICKS,
        ({"out": [1]}, {"out": [1, 1, 2]}, {"out": [1, 2]}),
        _LONGS,
    ),
)

PREV = _over_time(
    name="prev",
    cls=PreviousTick(),
    summary="the items of the tick before",
    inputs=_PAST,
    order=OrderRule.KEEPS,
    state=State.LAST,
    keeps_single=True,
    aliases=("defer_tick",),
    example=Example(
        "a -> prev() -> out", _TICKS, ({"out": []}, {"out": [1]}, {"out": [1, 2]}), _LONGS
    ),
)

DELTA = _over_time(
    name="delta",
    cls=TickDifference(signed=False),
    summary="the items that were not there in the tick before, copies counted",
    inputs=WHOLE,
    monotone=False,
    keeps_single=True,
    state=State.LAST,
    partition=OnAnyField(),
    example=Example(
        "a -> delta() -> out", _TICKS, ({"out": [1]}, {"out": [2]}, {"out": []}), _LONGS
    ),
)

CHANGES = _over_time(
    name="changes",
    cls=TickDifference(signed=True),
    summary="`(n, x)` for each item x of which there are n more than in the tick before, n never 0",
    inputs=WHOLE,
    result=type_rules.counted,
    monotone=False,
    state=State.LAST,
    partition=OnAnyField(gives=("1",)),
    lineage=lineage_rules.numbered,
    example=Example(
        "a -> changes() -> out",
        _TICKS,
        ({"out": [[1, 1]]}, {"out": [[1, 2]]}, {"out": [[-1, 1], [-1, 2]]}),
        _LONGS,
    ),
)

PERSIST_MUT = _over_time(
    name="persist_mut",
    cls=Commands(keyed=False),
    summary='what is there after all commands `("persist", x)` and `("delete", x)`; '
    "delete removes every copy",
    inputs=ORDERED,
    result=type_rules.commanded,
    monotone=False,
    fails=FailureMode.ON_ITEMS,
    state=State.RESULT,
    partition=OnAnyField(at=("1",)),
    lineage=lineage_rules.commanded,
    example=Example(
        'a -> sort() -> map(lambda n, x: ("persist" if n > 0 else "delete", x))\n'
        "  -> persist_mut() -> out",
        ({"a": [[1, "x"], [1, "y"]]}, {"a": [[0, "x"]]}),
        ({"out": ["x", "y"]}, {"out": ["y"]}),
        {"a": "(long, string)"},
    ),
)

PERSIST_MUT_KEYED = _over_time(
    name="persist_mut_keyed",
    cls=Commands(keyed=True),
    summary='what `("persist", k, v)`, which upserts, and `("delete", k, None)` leave there',
    inputs=ORDERED,
    result=type_rules.commanded_by_key,
    monotone=False,
    fails=FailureMode.ON_ITEMS,
    state=State.RESULT,
    partition=OnKey(at=(("1",),)),
    lineage=lineage_rules.commanded_by_key,
    example=Example(
        'a -> sort() -> map(lambda k, v: ("persist", k, v)) -> persist_mut_keyed() -> out',
        ({"a": [["x", 1], ["y", 2]]}, {"a": [["x", 3]]}),
        ({"out": [["x", 1], ["y", 2]]}, {"out": [["x", 3], ["y", 2]]}),
        {"a": "(string, long)"},
    ),
)
