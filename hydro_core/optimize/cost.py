"""What a plan costs: the rows that a tick touches.

Every class has an expected number of rows in a tick; history holds many ticks. A node costs what it
reads, stores and gives. In the tick plan a history is dear, since all of it is read each tick; in
the range plan all ticks are one relation, so `persist`, `old`, `prev` and `delta` only change a
column and are free, and a join costs its candidate pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hydro_core.catalog.internal import RUNNING
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import ClassId, ENode, Space
from hydro_core.optimize.statistics import ROWS, InputStatistics, Statistics

Goal = Literal["tick", "range"]

GROUPS_EXPONENT = 0.8
"""n rows are expected to fall into n**0.8 groups."""
DISTINCT_EXPONENT = 0.9
"""n items are expected to be n**0.9 different ones: whole items differ more than their keys."""
MATCHES_EXPONENT = 0.95
"""n rows are expected to have n**0.95 different keys to join on: mostly those of one side."""
SELECTIVITY = 0.5
LOOP = 10.0
"""How often a cycle inside a tick goes round."""
MOST_ROWS = 1e30
"""No stream is expected to be larger: the cost of any plan is a number."""
NODE = 1.0
"""What a node costs by being there."""


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
class CostModel:
    """Sizes of classes and costs of nodes of one space."""

    space: Space
    payloads: Sequence[Payload]
    statistics: Statistics
    goal: Goal

    def sizes(self, first: Sequence[int] = ()) -> list[float]:
        """The expected rows of each class in a tick (the range plan: in all ticks).

        A class has the size that its nodes give when it is first reached from the inputs, the nodes
        at `first` before all others; going on from there would let estimates shrink in a circle.
        """
        found: list[Size | None] = [None] * len(self.space.of)
        for name, given in self.statistics.streams.items():
            if name in self.space.named:
                found[self.space.named[name]] = self._known(given)
        self._spread([self.space.nodes[i] for i in first], found)
        self._spread(self.space.nodes, found)
        unknown = ROWS * self.statistics.ticks
        # only streams that feed themselves have no size yet: they hold some history, but what is
        # made of one row for each key, or of the last ticks, does not
        whole = Size(unknown, self.statistics.ticks)
        for node in self.space.nodes:
            if found[node.cls] is None and (_name(node) in _SMALLER or node.shape.single):
                found[node.cls] = self._size(node, [found[c] or whole for c in node.inputs])
        self._spread(self.space.nodes, found)
        return [unknown if size is None else size.rows for size in found]

    def costs(self, sizes: Sequence[float]) -> list[float]:
        """The cost of every node."""
        kept = {n.cls for n in self.space.nodes if _name(n) in STATES}
        touched = self._touched(sizes)
        return [self._cost_beside(node, sizes, kept, touched) for node in self.space.nodes]

    def _cost_beside(
        self,
        node: ENode,
        sizes: Sequence[float],
        kept: Collection[ClassId],
        touched: Mapping[ClassId, float],
    ) -> float:
        """The cost of a node, which may be less for what is running below it."""
        name = _name(node)
        if name == "prev" and node.inputs[0] in kept:
            return NODE
        cost = self.cost(node, sizes)
        if name in {"delta", "changes"} and node.inputs[0] in touched:
            return min(cost, NODE + 3 * touched[node.inputs[0]])
        return cost

    def _touched(self, sizes: Sequence[float]) -> Mapping[ClassId, float]:
        """How many rows of a running result change in a tick, as the operator itself knows."""
        found: dict[ClassId, float] = {}
        for node in self.space.nodes:
            if _name(node) in STATES:
                found[node.cls] = min(sizes[node.cls], sum(sizes[c] for c in node.inputs))
        changed = True
        while changed:
            changed = False
            for node in self.space.nodes:
                rows = found.get(node.inputs[0]) if node.shape.linear == (True,) else None
                if rows is None or node.cls in found or _name(node) not in ITEMWISE:
                    continue
                found[node.cls] = rows
                changed = True
        return found

    def cost(self, node: ENode, sizes: Sequence[float]) -> float:
        """What the node touches in a tick."""
        name = _name(node)
        into = [sizes[c] for c in node.inputs]
        out = sizes[node.cls]
        if self.goal == "range" and name in _FREE_IN_RANGES:
            return NODE
        if name.startswith("loop:"):
            return NODE + LOOP * sum(into)
        if name.startswith("step:"):
            return NODE + sum(into) / 3 + LOOP * out
        return NODE + _COSTS.get(name, _reads)(into, out)

    def _spread(self, nodes: Sequence[ENode], found: list[Size | None]) -> None:
        waiting = list(nodes)
        while True:
            ready: dict[ClassId, Size] = {}
            left = []
            for node in waiting:
                if found[node.cls] is not None:
                    continue
                into = [size for c in node.inputs if (size := found[c]) is not None]
                if len(into) < len(node.inputs):
                    left.append(node)
                    continue
                size = self._size(node, into)
                if node.cls not in ready or size.rows < ready[node.cls].rows:
                    ready[node.cls] = size
            if not ready:
                return
            for cls, size in ready.items():
                found[cls] = size
            waiting = left

    def _size(self, node: ENode, into: list[Size]) -> Size:
        name = _name(node)
        if name in {"source", "source_iter"}:
            return self._given(node)
        ticks = max((i.ticks for i in into), default=self._ticks())
        known = [i.keys for i in into if i.keys is not None]
        one = node.shape.single and not node.shape.zero
        rows = 1.0 if one else min(MOST_ROWS, self._rows(node, name, into))
        return Size(rows, ticks, min(known, default=None))

    def _rows(self, node: ENode, name: str, into: list[Size]) -> float:
        if name in {"persist", "old", "window"}:
            ticks = float(self._args(node).get("n", into[0].ticks))
            return into[0].rows * min(into[0].ticks, ticks)
        if name in {"delta", "changes"}:
            return into[0].rows / into[0].ticks
        if name in STATES:
            return _running(name, into[0])
        if name in {"filter", "filter_map"}:
            return into[0].rows * self._selectivity(node)
        if name.startswith("step:"):
            return into[-1].rows / into[-1].ticks
        if name.startswith("join"):
            pairs = _pairs([i.rows for i in into])
            return _joined(name, pairs / max(1e-9, *(i.matches() for i in into)), into)
        if name in _GROUPED and into[-1].keys is not None:
            return min(into[-1].rows, into[-1].keys)
        return _SIZES.get(name, _first)([i.rows for i in into])

    def _given(self, node: ENode) -> Size:
        args = self._args(node)
        ticks = self._ticks()
        scale = self.statistics.ticks if self.goal == "range" else 1.0
        if "items" in args:
            return Size(max(0.01, len(args["items"]) / self.statistics.ticks) * scale, ticks)
        return self._known(self.statistics.inputs.get(args["name"], InputStatistics()))

    def _known(self, given: InputStatistics) -> Size:
        rows = max(given.rows, 1e-3)
        history = rows * self.statistics.ticks if given.history is None else given.history
        if self.goal == "range":
            return Size(history, self._ticks(), given.keys)
        return Size(rows, max(1.0, history / rows), given.keys)

    def _selectivity(self, node: ENode) -> float:
        fn = self._args(node).get("f")
        return self.statistics.selectivity.get(getattr(fn, "name", ""), SELECTIVITY)

    def _ticks(self) -> float:
        return 1.0 if self.goal == "range" else self.statistics.ticks

    def _args(self, node: ENode) -> Mapping[str, Any]:
        return {} if node.payload is None else self.payloads[node.payload].args


def _running(name: str, new: Size) -> float:
    """The rows of a running result."""
    if name == "moving_aggregate":
        # the aggregate of the window, which is the same, knows how long that is
        return MOST_ROWS
    whole = new.rows * new.ticks
    return groups(whole) if new.keys is None else min(whole, new.keys)


def groups(rows: float) -> float:
    """Into how many groups so many rows fall."""
    return rows if rows <= 1 else rows**GROUPS_EXPONENT


def _joined(name: str, matches: float, into: list[Size]) -> float:
    """The rows of a join that has so many matches."""
    left, right = (i.rows for i in into)
    match name:
        case "join:left":
            return max(matches, left)
        case "join:right":
            return max(matches, right)
        case "join:outer":
            return max(matches, left, right)
        case "join:semi":
            return min(left, right)
        case "join:anti":
            return left * SELECTIVITY
        case _:
            return matches


def _name(node: ENode) -> str:
    return node.shape.name.removesuffix("!").removesuffix(":global")


def _first(into: list[float]) -> float:
    return into[0] if into else 1.0


def _pairs(into: list[float]) -> float:
    return into[0] * into[1]


def _half(into: list[float]) -> float:
    return into[0] * SELECTIVITY


def _one(_: list[float]) -> float:
    return 1.0


def _grouped(into: list[float]) -> float:
    return groups(into[0])


def _distinct(into: list[float]) -> float:
    return into[0] if into[0] <= 1 else into[0] ** DISTINCT_EXPONENT


STATES = frozenset(op.name for op in RUNNING) - {"running_fold", "running_reduce"}
"""Operators that store their results of many rows, and know what they change: nobody stores them
again, or looks at the others to tell.
"""
ITEMWISE = frozenset(
    {
        *("map", "filter", "filter_map", "flat_map", "select", "with_columns", "rename", "drop"),
        *("identity", "aggregate_result", "of_shard"),
    }
)
"""Operators that go item by item, so that changes pass through them as they are."""
_SMALLER = frozenset(
    {"fold_keyed", "reduce_keyed", "unique_keyed", "latest", "aggregate", "limit", "window"}
)
"""Operators whose result is smaller than the history that it is made of."""
_GROUPED = frozenset({"unique", "fold_keyed", "reduce_keyed", "latest", "aggregate"})
_SIZES: Mapping[str, Callable[[list[float]], float]] = {
    "tick": lambda _: 1.0,
    "null": lambda _: 0.001,
    "chain": sum,
    "union": sum,
    "cross": _pairs,
    "difference": _half,
    "anti_join": _half,
    "zip": min,
    "zip_longest": max,
    "unique": _distinct,
    "fold": _one,
    "reduce": _one,
    "running_fold": _one,
    "running_reduce": _one,
    "fold_keyed": _grouped,
    "reduce_keyed": _grouped,
    "unique_keyed": _grouped,
    "latest": _grouped,
    "aggregate": _grouped,
    "minus": _first,
    "changes_between": sum,
    "flat_map": lambda i: 2 * i[0],
    "flatten": lambda i: 2 * i[0],
}


def _reads(into: list[float], _: float) -> float:
    return sum(into)


def _stores_and_reads(into: list[float], out: float) -> float:
    return into[0] + out


def _stores_and_gives(into: list[float], _: float) -> float:
    # the batch is kept, and that of an earlier tick read
    return 2 * into[0]


def _updates(into: list[float], out: float) -> float:
    # the keys of the new items are found in the state, and written again
    return out + 2 * sum(into)


def _joins(into: list[float], out: float) -> float:
    # a row is dearer to make than to read: what was made once is better stored
    return sum(into) + 2 * out


def _sorts(into: list[float], _: float) -> float:
    return into[0] * max(1.0, math.log2(into[0] + 1))


_COSTS: Mapping[str, Callable[[list[float], float], float]] = {
    "source": lambda i, o: 0.0,
    "persist": _stores_and_reads,
    "old": _stores_and_reads,
    "window": _stores_and_reads,
    "prev": lambda i, o: 2 * i[0],
    **dict.fromkeys(STATES, _updates),
    "leaving": _stores_and_gives,
    "delta": lambda i, o: 3 * i[0],
    "changes": lambda i, o: 3 * i[0],
    "cross": _joins,
    "join": _joins,
    "join:left": _joins,
    "join:right": _joins,
    "join:outer": _joins,
    "chain": lambda i, o: 0.01 * o,
    "union": lambda i, o: 0.01 * o,
    "bag": lambda i, o: 0.0,
    "sink": lambda i, o: 0.0,
    "sort": _sorts,
    "sort_by_key": _sorts,
}
_FREE_IN_RANGES = frozenset({"persist", "old", "prev", "delta"})
