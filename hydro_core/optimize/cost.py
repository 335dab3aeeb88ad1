"""Cost of a plan: the rows that a tick touches, from statistics and estimated sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    DistinctItems,
    EmptyStream,
    ExternalItems,
    History,
    ItemEffect,
    KeyMatch,
    Linear,
    OrderedByKey,
    Ordering,
    Output,
    OverTime,
    PairedItems,
    PassedItems,
    PastExtent,
    PerItem,
    PerKey,
    PerPosition,
    Places,
    PositionalOrder,
    PreviousTick,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
)
from hydro_core.catalog.forms import Form, looks_up
from hydro_core.optimize.egraph import ClassId, ENode, Space
from hydro_core.optimize.extract import Forms
from hydro_core.optimize.rule import INTEGRATE, FeedbackShape, Payload, ShapeClass

# What is known, or assumed, of the data that a program runs on.


ROWS = 1000.0
TICKS = 100.0


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """Of one input: rows in a tick, rows of all history, different keys in history."""

    rows: float = ROWS
    history: float | None = None
    keys: float | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of data: `{"ticks": 100, "inputs": {"a": {"rows": 10, "history": 1e6}}}`."""

    ticks: float = TICKS
    inputs: Mapping[str, InputStatistics] = field(default_factory=dict)
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """Of filters, by the node's id or the function's name."""
    streams: Mapping[str, InputStatistics] = field(default_factory=dict)
    """Of streams of the program that are not inputs, by their names."""

    def of_inputs(self, names: Iterable[str]) -> Statistics:
        """The same with what is assumed of those inputs of which nothing is known."""
        return replace(self, inputs={n: self.inputs.get(n, InputStatistics()) for n in names})

    def as_json(self) -> Mapping[str, Any]:
        """As `of` reads it."""
        return asdict(self)

    def longer(self, times: float) -> Statistics:
        """The same once the history of the input with the most new rows is so many times as long.

        Every stream gets as many rows in a tick as before. All inputs are given.
        """
        largest = max(self.inputs.values(), key=lambda i: i.rows, default=InputStatistics())
        span = self.ticks
        if largest.history is not None and largest.rows > 0:
            span = max(span, largest.history / largest.rows)
        more = span * (times - 1)

        def later(given: InputStatistics) -> InputStatistics:
            history = given.rows * self.ticks if given.history is None else given.history
            return replace(given, history=history + given.rows * more)

        inputs, streams = (
            {name: later(given) for name, given in known.items()}
            for known in (self.inputs, self.streams)
        )
        return replace(self, ticks=self.ticks + more, inputs=inputs, streams=streams)

    @staticmethod
    def of(data: Mapping[str, Any]) -> Statistics:
        """The statistics of a parsed file; raises `ValueError` where it makes no sense."""
        if not isinstance(data, Mapping):
            raise ValueError("statistics are a JSON object")  # noqa: TRY004 - it is the file's fault
        unknown = set(data) - {"ticks", "inputs", "selectivity", "streams"}
        if unknown:
            raise ValueError(f"statistics know nothing of {', '.join(sorted(unknown))}")
        try:
            inputs, streams = (
                {name: InputStatistics(**given) for name, given in data.get(kind, {}).items()}
                for kind in ("inputs", "streams")
            )
        except TypeError as problem:
            raise ValueError(f"streams have rows, history and keys: {problem}") from None
        return Statistics(
            float(data.get("ticks", TICKS)), inputs, dict(data.get("selectivity", {})), streams
        )


# How many rows a node is expected to give, by what its operator is to time, keys and order.


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
        case ExternalItems():
            return 1.0
        case EmptyStream():
            return HARDLY_ANY
        case PerItem(gives):
            return into[0].rows * _share(gives, asked)
        case Sum():
            return sum(i.rows for i in into)
        case Product():
            return _met(cls, *into)
        case KeyMatch(wanted):
            left, right = into
            return min(left.rows, right.rows) if wanted else left.rows * SELECTIVITY
        case AsOf():
            return into[0].rows
        case DistinctItems():
            return _of_keys(into[0], DISTINCT_EXPONENT)
        case ByKey(keyed=keyed):
            return _of_keys(into[0], GROUPS_EXPONENT) if keyed else 1.0
        case RunningResult(changes=True):
            # the aggregate of the same stream, which is the same, knows how large that is
            return math.inf
        case RunningResult(OrderedByKey() as of):
            return rows_of(of, [_of_all(into[0])], asked)
        case RunningResult(of):
            return _of_keys(_of_all(into[0]), GROUPS_EXPONENT) if of.keyed else 1.0
        case Commands():
            # what commands of all ticks leave there; few of them delete
            return _of_keys(_of_all(into[0]), GROUPS_EXPONENT)
        case OrderedByKey(gives, keyed):
            if gives is Places.EACH:
                return into[0].rows
            keys = _of_keys(into[0], GROUPS_EXPONENT) if keyed else 1.0
            return min(into[0].rows, keys * max(asked.ticks, HARDLY_ANY))
        case PositionalOrder(gives):
            return _placed(gives, [i.rows for i in into], asked)
        case History():
            return into[0].rows * into[0].ticks
        case Window(timed=True):
            return into[0].rows * min(into[0].ticks, TIMED_TICKS)
        case Window():
            return into[0].rows * min(into[0].ticks, asked.ticks)
        case TickDifference() | FeedbackShape(new=True):
            return into[-1].rows / into[-1].ticks
        case FeedbackShape():
            return into[0].rows if into else 1.0
        case Output() | Projection() | Ordering() | PreviousTick():
            return into[0].rows
        case _:
            assert_never(cls)


def groups(rows: float) -> float:
    """Into how many groups so many rows fall."""
    return rows if rows <= 1 else rows**GROUPS_EXPONENT


def _share(gives: ItemEffect, asked: SizeHints) -> float:
    match gives:
        case ItemEffect.SOME | ItemEffect.UP_TO_ONE:
            return asked.selectivity
        case ItemEffect.SEVERAL:
            return SPREAD
        case ItemEffect.SAME | ItemEffect.ROUTED | ItemEffect.ONE | ItemEffect.RESULT:
            return 1.0


def _met(cls: Product, left: Size, right: Size) -> float:
    match cls.meets:
        case PairedItems.ALL:
            return left.rows * right.rows
        case PairedItems.SINGLE:
            return left.rows
        case PairedItems.KEY:
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


# What a plan costs: the rows that a tick touches.
#
# Every class has an expected number of rows in a tick; history holds many ticks. A node costs
# what it reads, stores and gives. A history is dear, since all of it is read each tick. A range
# of ticks runs by the same plan: what is cheaper there in another way is the engine's choice.


LOOP = 10.0
"""How often a cycle inside a tick goes round."""
MOST_ROWS = 1e30
"""No stream is expected to be larger: the cost of any plan is a number."""
NODE = 1.0
"""What a node costs by being there."""
MADE = 2.0
"""What a row costs that a join makes, where one that is read costs one."""
SKEW = 2.0
"""Rows come to keys that have many more often than to others: so many times the rows of a key in
the mean has one to which a row comes.
"""
SEARCHED = 0.002
"""What a stored row costs whose key is looked at, where one that is read costs one."""
MOST_SEARCHED = 100_000.0
"""Of more stored rows no more keys are looked at: those of large files are found by hashes."""


class RowsTouched(NamedTuple):
    """The rows that a node goes through in a tick, those that it makes where they are dear, and
    those that it writes.
    """

    reads: float = 0.0
    makes: float = 0.0
    stores: float = 0.0
    fixed: float = NODE

    @property
    def cost(self) -> float:
        """All of them, and what the node costs by being there."""
        return self.fixed + self.reads + self.makes + self.stores


@dataclass(frozen=True, slots=True)
class CostModel:
    """Sizes of classes and costs of nodes of one space."""

    space: Space
    payloads: Sequence[Payload]
    statistics: Statistics

    def sizes(self, first: Sequence[int] = ()) -> list[float]:
        """The expected rows of each class in a tick.

        A class has the size that its nodes give when it is first reached from the inputs, the nodes
        at `first` before all others but literals; going on from there would let estimates shrink in
        a circle.
        """
        found: list[Size | None] = [None] * len(self.space.of)
        for name, given in self.statistics.streams.items():
            if name in self.space.named:
                found[self.space.named[name]] = self._known(given)
        self._spread([n for n in self.space.nodes if "items" in self._args(n)], found)
        self._spread([self.space.nodes[i] for i in first], found)
        self._spread(self.space.nodes, found)
        unknown = ROWS * self.statistics.ticks
        # only streams that feed themselves have no size yet: they hold some history, but what is
        # made of one row for each key, or of the last ticks, does not
        whole = Size(unknown, self.statistics.ticks)
        for node in self.space.nodes:
            holds = node.shape.cls.holds
            kept = node.shape.cls.passes is PassedItems.SOME and found[node.inputs[0]] is not None
            smaller = holds.condenses or holds is PastExtent.WINDOW or node.shape.single or kept
            if found[node.cls] is None and smaller:
                found[node.cls] = self._size(node, [found[c] or whole for c in node.inputs])
        self._spread(self.space.nodes, found)
        return [unknown if size is None else size.rows for size in found]

    def costs(self, sizes: Sequence[float]) -> list[float]:
        """The cost of every node, each of which gives its values; `sizes`: the rows of a class."""
        return [
            _touched(n.shape.cls, [sizes[c] for c in n.inputs], sizes[n.cls]).cost
            for n in self.space.nodes
        ]

    def touched(
        self, sizes: Sequence[float], forms: Forms
    ) -> tuple[list[RowsTouched], Sequence[float]]:
        """What every node of a space with forms touches, and the rows of its classes.

        Args:
            sizes: the rows of every class of values.
            forms: the space, in which streams may be wanted by their changes.
        """
        rows = self._rows(sizes, forms)
        return [self._touched_in(forms, node, rows) for node in forms.space.nodes], rows

    def _touched_in(self, forms: Forms, node: ENode, rows: Sequence[float]) -> RowsTouched:
        """What a node touches that gives its stream in some form."""
        form = forms.streams[node.cls][1]
        if form is Form.LOOKED_UP:
            return self._searched(forms, node, rows)
        if node.shape is INTEGRATE:
            return RowsTouched(rows[node.cls], fixed=0.0)
        # rows that are looked up are as many as are made of them
        into = [self._new(c, rows, forms) for c in node.inputs]
        told = any(forms.streams[c][1] is not Form.VALUES for c in (node.cls, *node.inputs))
        found = _touched(node.shape.cls, into, self._new(node.cls, rows, forms), changes=told)
        return found._replace(reads=found.reads + self._met(forms, node, rows))

    def _met(self, forms: Forms, node: ENode, rows: Sequence[float]) -> float:
        """The rows of the keys that change, of which a result by key is made again."""
        (stream, form), cls = forms.streams[node.cls], node.shape.cls
        if form is not Form.CHANGES:
            return 0.0
        history, keys = rows[forms.streams[node.inputs[0]][0]], None
        if isinstance(cls, ByKey):
            keys = rows[stream]
        if isinstance(cls, OrderedByKey):
            keys = groups(history)
        if keys is None:
            return 0.0
        return SKEW * self._new(node.inputs[0], rows, forms) * max(1.0, history / keys)

    def _searched(self, forms: Forms, node: ENode, rows: Sequence[float]) -> RowsTouched:
        """What is gone through to look up items of some keys, once for all who ask for them.

        Where a stream is stored its keys are gone through. What is found is paid by who asks.
        """
        searched = SEARCHED * min(rows[forms.streams[node.cls][0]], MOST_SEARCHED)
        if isinstance(node.shape.cls, History):
            return RowsTouched(searched, stores=rows[node.inputs[0]])
        told = forms.streams[node.inputs[0]][1] is Form.CHANGES
        return RowsTouched(searched if node.shape is INTEGRATE and told else 0.0)

    def _rows(self, sizes: Sequence[float], forms: Forms) -> list[float]:
        """The rows of every class in its form: those that a tick changes, where it is changes.

        A class that only feeds itself has all.
        """
        space, known = forms.space, len(sizes)
        found = [*sizes, *(sizes[stream] for stream, _ in forms.streams[known:])]
        tells = (Form.CHANGES, Form.GROWTH)
        told = [c for c in range(known, len(found)) if forms.streams[c][1] in tells]
        changed = True
        while changed:
            changed = False
            for cls in told:
                for i in space.of[cls]:
                    rows = self._changed(space.nodes[i], found, forms)
                    if rows < found[cls]:
                        found[cls], changed = rows, True
        return found

    def _changed(self, node: ENode, rows: Sequence[float], forms: Forms) -> float:
        """How many rows come and go in a tick."""
        told = [c for c in node.inputs if forms.streams[c][1] is not Form.LOOKED_UP]
        into = [rows[c] for c in told]
        cls, whole = node.shape.cls, rows[forms.streams[node.cls][0]]
        if not isinstance(cls, FeedbackShape) and looks_up(cls):
            # a row that comes makes as many as any other of its side
            sides = (rows[forms.streams[c][0]] for c in told)
            return sum(n * max(1.0, whole / side) for n, side in zip(into, sides, strict=True))
        return sum(into) * (2 if isinstance(cls, Window) else 1)

    def _new(self, cls: ClassId, rows: Sequence[float], forms: Forms) -> float:
        """How many rows of a stream a tick goes through, without those that are looked up."""
        return 0.0 if forms.streams[cls][1] is Form.LOOKED_UP else rows[cls]

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
        one = node.shape.single and not node.shape.zero
        if isinstance(node.shape.cls, ExternalItems) and not one:
            return self._given(node)
        ticks = max((i.ticks for i in into), default=self.statistics.ticks)
        known = [i.keys for i in into if i.keys is not None]
        args = self._args(node)
        keyed = args.get("by") is not None
        called = getattr(args.get("f"), "name", "")
        selectivity = self.statistics.selectivity.get(called, SELECTIVITY)
        asked = SizeHints(selectivity, float(args.get("n", 1)), keyed)
        rows = 1.0 if one else min(MOST_ROWS, rows_of(node.shape.cls, into, asked))
        return Size(rows, ticks, min(known, default=None))

    def _given(self, node: ENode) -> Size:
        args = self._args(node)
        ticks = self.statistics.ticks
        if "items" in args:
            return Size(max(0.01, len(args["items"]) / ticks), ticks)
        return self._known(self.statistics.inputs.get(args["name"], InputStatistics()))

    def _known(self, given: InputStatistics) -> Size:
        rows = max(given.rows, 1e-3)
        history = rows * self.statistics.ticks if given.history is None else given.history
        return Size(rows, max(1.0, history / rows), given.keys)

    def _args(self, node: ENode) -> Mapping[str, Any]:
        return {} if node.payload is None else self.payloads[node.payload].args


def _touched(  # noqa: C901, PLR0911, PLR0912 - a closed set of cases
    cls: ShapeClass, into: Sequence[float], out: float, *, changes: bool = False
) -> RowsTouched:
    """What a node of the class touches in a tick, given the rows that it reads and gives;
    `changes`: these are changes.
    """
    match cls:
        case ExternalItems():
            return RowsTouched()
        case TickDifference() if changes:
            return RowsTouched(into[0])
        case PreviousTick() if changes:
            # all of the log is read and summed up, and nothing written
            return RowsTouched(2 * out)
        case Output():
            # of what is told by its changes these are stored, of others all is stored anew
            return RowsTouched(stores=into[0])
        case Sum():
            return RowsTouched(0.01 * out)
        case History() if changes:
            return RowsTouched()
        case Window() if changes:
            # the batch is stored, and that which leaves is read
            return RowsTouched(out)
        case History() | Window():
            # it stores the batch and reads the rest
            return RowsTouched(out, stores=into[0])
        case PreviousTick():
            # all of it is written in each tick, and that of the tick before read
            return RowsTouched(2 * into[0], stores=into[0])
        case RunningResult(OrderedByKey()):
            # the keys of the new items are found in the state, and some items written
            changed = min(SKEW * sum(into), out)
            return RowsTouched(sum(into) + changed + (0.0 if changes else out), stores=changed)
        case RunningResult(ByKey(keyed=True)):
            # the keys of the new items are found in the state, and written again
            changed = min(groups(sum(into)), out)
            return RowsTouched(sum(into) + changed + (0.0 if changes else out), stores=changed)
        case TickDifference():
            return RowsTouched(3 * into[0])
        case Product(PairedItems.ALL | PairedItems.KEY):
            return RowsTouched(sum(into), MADE * out)
        case Ordering(sorts):
            return RowsTouched(into[0] * max(1.0, math.log2(into[0] + 1)) if sorts else 0.0)
        case FeedbackShape(new):
            if new:
                return RowsTouched(sum(into) / 3, LOOP * out)
            return RowsTouched(LOOP * sum(into))
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return RowsTouched(sum(into))
        case _:
            assert_never(cls)
