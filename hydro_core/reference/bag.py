"""Bags, the values of streams, and the past of an operator's inputs and result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from operator import call
from typing import Any

from hydro_core.catalog.classes import RunningResult
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Node
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.values import LONG_MAX, LONG_MIN, RowItem, Struct, canonical

# Type tests of items: most items have their type already, and are not converted.


Fits = Callable[[Any], bool]

_SCALARS: Mapping[Scalar, Fits] = {
    BOOLEAN: lambda x: type(x) is bool,
    LONG: lambda x: type(x) is int and LONG_MIN <= x <= LONG_MAX,
    DOUBLE: lambda x: type(x) is float,
    STRING: lambda x: type(x) is str and x.isascii(),
    BINARY: lambda x: type(x) is bytes,
    DATE: lambda x: type(x) is date,
    TIMESTAMP: lambda x: type(x) is datetime and x.tzinfo is UTC,
    TIMESTAMP_NTZ: lambda x: type(x) is datetime and x.tzinfo is None,
}


@cache
def fits(of: ItemType) -> Fits:
    """A quick test that is true only of items that `conform` leaves unchanged.

    >>> fits(LONG)(1), fits(LONG)(1.0), fits(LONG)(None)
    (True, False, True)
    """
    test = _test(of)
    return lambda x: x is None or test(x)


def _test(of: ItemType) -> Fits:
    match of:
        case Scalar() if of in _SCALARS:
            return _SCALARS[of]
        case Tuple(fields):
            return _struct(tuple(map(fits, fields)))
        case Row(fields):
            return _row(of.names, tuple(fits(field.type) for field in fields))
        case Array(element):
            return _array(fits(element))
        case _:
            return lambda _: False


def _struct(tests: tuple[Fits, ...]) -> Fits:
    def test(x: Any) -> bool:
        if type(x) is not Struct or len(x) != len(tests):
            return False
        return all(map(call, tests, x))

    return test


def _row(names: tuple[str, ...], tests: tuple[Fits, ...]) -> Fits:
    def test(x: Any) -> bool:
        if type(x) is not RowItem or tuple(x) != names:
            return False
        return all(map(call, tests, dict.values(x)))

    return test


def _array(element: Fits) -> Fits:
    return lambda x: type(x) is list and all(map(element, x))


# Bags, the values of streams: finite multisets of items; equality is the language page's.
#
# `items` have the stream's order if it has one. A bag does not change, except for the streams of a
# cycle, which `grow` while their least fixpoint is computed.


KeyFunction = Callable[[Any], Hashable]
"""Lookup key of items: a function that gives equal hashables exactly for equal keys."""


class Bag:
    """A multiset of items."""

    __slots__ = ("_counts", "_indexes", "items")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items: list[Any] = list(items)
        self._counts: dict[Hashable, int] | None = None
        self._indexes: dict[KeyFunction, dict[Hashable, list[Any]]] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Bag({self.items!r})"

    def __add__(self, other: Bag) -> Bag:
        """`a + b`: the counts are added; the items of `a` come first."""
        return Bag(self.items + other.items)

    def monus(self, other: Bag) -> Bag:
        """`a ∸ b`: the counts of `b` are subtracted, never below 0."""
        if not other.items:
            return self
        owed = dict(other.counts())
        left = []
        for item in self.items:
            form = canonical(item)
            if owed.get(form, 0):
                owed[form] -= 1
            else:
                left.append(item)
        return Bag(left)

    def distinct(self) -> Bag:
        """Each item once, at its first position."""
        found: dict[Hashable, Any] = {}
        for item in self.items:
            found.setdefault(canonical(item), item)
        return Bag(found.values())

    def counts(self) -> dict[Hashable, int]:
        """The count of each item, by its canonical form."""
        if self._counts is None:
            self._counts = {}
            _count(self.items, self._counts)
        return self._counts

    def same_as(self, other: Bag) -> bool:
        """True if both have the same items with the same counts, in any order."""
        return len(self) == len(other) and self.counts() == other.counts()

    def by(self, key: KeyFunction) -> dict[Hashable, list[Any]]:
        """The items of each key; keys and items are in the order of the bag."""
        if key not in self._indexes:
            self._indexes[key] = {}
            _file(self.items, key, self._indexes[key])
        return self._indexes[key]

    def grow(self, more: Bag) -> None:
        """Becomes `self + more`: for the streams of a cycle only."""
        self.items += more.items
        if self._counts is not None:
            _count(more.items, self._counts)
        for key, index in self._indexes.items():
            _file(more.items, key, index)


def _count(items: Iterable[Any], counts: dict[Hashable, int]) -> None:
    for item in items:
        form = canonical(item)
        counts[form] = counts.get(form, 0) + 1


def _file(items: Iterable[Any], key: KeyFunction, index: dict[Hashable, list[Any]]) -> None:
    for item in items:
        index.setdefault(key(item), []).append(item)


EMPTY = Bag()
"""The bag without items."""


# The past that an operator may read: the bags of its input, or its last result.
#
# The operator's column `state` in the catalogue limits what is stored.


class NodePast:
    """The input `a` of a stateful node at tick t: `now` is `a_t`, all else is from earlier
    ticks.
    """

    def __init__(self, keeps_all: bool, ticks: int, *, keeps_result: bool = False) -> None:
        self._keeps_result = keeps_result
        self.now: Bag = EMPTY
        self.result_before: Bag = EMPTY
        self._sum: Bag | None = Bag() if keeps_all else None
        self._bags: deque[Bag] = deque(maxlen=ticks)

    @staticmethod
    def of(node: Node) -> NodePast | None:
        """The empty past of a node at tick 0; None for a stateless operator."""
        match node.spec.state:
            case State.NONE:
                return None
            case State.HISTORY | State.RECENT:
                return NodePast(keeps_all=True, ticks=0)
            case State.RESULT:
                over_all = isinstance(node.cls, RunningResult) and not node.cls.changes
                return NodePast(keeps_all=over_all, ticks=0, keeps_result=True)
            case State.WINDOW:
                return NodePast(keeps_all=False, ticks=max(0, node.args["n"] - 1))
            case State.LAST:
                return NodePast(keeps_all=False, ticks=1)

    @property
    def before(self) -> Bag:
        """`a_{t−1}`, empty at t = 0."""
        return self._bags[-1] if self._bags else EMPTY

    @property
    def recent(self) -> Bag:
        """The sum of the earlier ticks that are stored."""
        return Bag(item for bag in self._bags for item in bag)

    @property
    def earlier(self) -> Bag:
        """`Σ_{s<t} a_s`, for an operator that stores its whole history."""
        if self._sum is None:
            raise ValueError("the history of this operator is not kept")
        return self._sum

    def kept(self) -> list[Bag]:
        """All stored bags of earlier ticks; later ticks leave them unchanged."""
        history = [] if self._sum is None else [Bag(self._sum)]
        result = [self.result_before] if self._keeps_result else []
        return [*history, *self._bags, *result]

    def end_tick(self, now: Bag, result: Bag) -> None:
        """Ends the tick: its input and its result belong to the past."""
        if self._sum is not None:
            self._sum.grow(now)
        self._bags.append(now)
        self.result_before = result
        self.now = EMPTY
