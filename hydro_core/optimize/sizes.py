"""How many rows a node is expected to give, by what its operator is to time, keys and order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    Before,
    ByKey,
    Commands,
    Distinct,
    Empty,
    Given,
    Growth,
    History,
    Matching,
    OrderedByKey,
    Ordering,
    Output,
    PerItem,
    Positional,
    Product,
    Projection,
    Running,
    Sum,
    Window,
)
from hydro_core.catalog.variants import Gives, Meets, Places
from hydro_core.optimize.shape import FeedbackShape, ShapeClass

GROUPS_EXPONENT = 0.8
"""n rows are expected to fall into n**0.8 groups."""
DISTINCT_EXPONENT = 0.9
"""n items are expected to be n**0.9 different ones: whole items differ more than their keys."""
MATCHES_EXPONENT = 0.95
"""n rows are expected to have n**0.95 different keys to join on: mostly those of one side."""
SELECTIVITY = 0.5
SPREAD = 2.0
"""How many items come of one that may give any number."""
HARDLY_ANY = 0.001
TIMED_TICKS = 100.0
"""So many ticks' rows are expected where their time says when they leave."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a stream: rows in a tick, how many such ticks its history holds, different join keys where
    they are known.
    """

    rows: float
    ticks: float
    keys: float | None = None

    def matches(self) -> float:
        """How many different keys the rows have when they are joined."""
        guess = self.rows if self.rows <= 1 else self.rows**MATCHES_EXPONENT
        return guess if self.keys is None else min(self.keys, max(self.rows, 1.0))


@dataclass(frozen=True, slots=True)
class SizeHints:
    """What the arguments of a node say of its size."""

    selectivity: float = SELECTIVITY
    """Of its function, where that keeps items or not."""
    ticks: float = 1.0
    """How many a window holds, or rows stay of a key."""
    keyed: bool = True
    """Whether these are rows of each key, not of all."""


def rows_of(cls: ShapeClass, into: Sequence[Size], asked: SizeHints) -> float:  # noqa: C901, PLR0911, PLR0912 - a closed set of cases
    """The rows that a node of the class gives in a tick, of inputs of these sizes."""
    match cls:
        case Given():
            return 1.0
        case Empty():
            return HARDLY_ANY
        case PerItem(gives):
            return into[0].rows * _share(gives, asked)
        case Sum():
            return sum(i.rows for i in into)
        case Product():
            return _met(cls, *into)
        case Matching(wanted):
            left, right = into
            return min(left.rows, right.rows) if wanted else left.rows * SELECTIVITY
        case AsOf():
            return into[0].rows
        case Distinct():
            return _of_keys(into[0], DISTINCT_EXPONENT)
        case ByKey(keyed=keyed):
            return _of_keys(into[0], GROUPS_EXPONENT) if keyed else 1.0
        case Running(changes=True):
            # the aggregate of the same stream, which is the same, knows how large that is
            return math.inf
        case Running(OrderedByKey() as of):
            return rows_of(of, [_of_all(into[0])], asked)
        case Running(of):
            return _of_keys(_of_all(into[0]), GROUPS_EXPONENT) if of.keyed else 1.0
        case Commands():
            # what commands of all ticks leave there; few of them delete
            return _of_keys(_of_all(into[0]), GROUPS_EXPONENT)
        case OrderedByKey(gives, keyed):
            if gives is Places.EACH:
                return into[0].rows
            keys = _of_keys(into[0], GROUPS_EXPONENT) if keyed else 1.0
            return min(into[0].rows, keys * max(asked.ticks, HARDLY_ANY))
        case Positional(gives):
            return _placed(gives, [i.rows for i in into], asked)
        case History():
            return into[0].rows * into[0].ticks
        case Window(timed=True):
            return into[0].rows * min(into[0].ticks, TIMED_TICKS)
        case Window():
            return into[0].rows * min(into[0].ticks, asked.ticks)
        case Growth() | FeedbackShape(new=True):
            return into[-1].rows / into[-1].ticks
        case FeedbackShape():
            return into[0].rows if into else 1.0
        case Output() | Projection() | Ordering() | Before():
            return into[0].rows
        case _:
            assert_never(cls)


def groups(rows: float) -> float:
    """Into how many groups so many rows fall."""
    return rows if rows <= 1 else rows**GROUPS_EXPONENT


def _share(gives: Gives, asked: SizeHints) -> float:
    match gives:
        case Gives.SOME | Gives.UP_TO_ONE:
            return asked.selectivity
        case Gives.SEVERAL:
            return SPREAD
        case Gives.SAME | Gives.ROUTED | Gives.ONE | Gives.RESULT:
            return 1.0


def _met(cls: Product, left: Size, right: Size) -> float:
    match cls.meets:
        case Meets.ALL:
            return left.rows * right.rows
        case Meets.SINGLE:
            return left.rows
        case Meets.KEY:
            matches = left.rows * right.rows / max(1e-9, left.matches(), right.matches())
            return max(matches, *((left, right)[side].rows for side in cls.keeps), 0.0)


def _of_all(new: Size) -> Size:
    """What has come so far, in one tick."""
    return Size(new.rows * new.ticks, 1.0, new.keys)


def _of_keys(size: Size, exponent: float) -> float:
    """How many different keys there are among the rows."""
    if size.keys is not None:
        return min(size.rows, size.keys)
    return size.rows if size.rows <= 1 else size.rows**exponent


def _placed(gives: Places, rows: Sequence[float], asked: SizeHints) -> float:
    match gives:
        case Places.PAIRS:
            return min(rows)
        case Places.PADDED_PAIRS:
            return max(rows)
        case Places.FIRST_OF_KEY:
            return groups(rows[0])
        case Places.FIRST:
            keys = groups(rows[0]) if asked.keyed else 1.0
            return min(rows[0], keys * max(asked.ticks, HARDLY_ANY))
        case Places.EACH:
            return rows[0]
