"""Cost of a plan: the rows that a tick touches, from statistics and estimated sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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

# Statistics, known or assumed, of the data that a program runs on.


ROWS = 1000.0
TICKS = 100.0
MOST_ROWS = 1e30
"""The limit of a stream's rows, so that the cost of any plan is finite."""


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """Statistics of an input: rows in a tick, rows of all history, distinct keys in history."""

    rows: float = ROWS
    history: float | None = None
    keys: float | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of data: `{"ticks": 100, "inputs": {"a": {"rows": 10, "history": 1e6}}}`."""

    ticks: float = TICKS
    inputs: Mapping[str, InputStatistics] = field(default_factory=dict)
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """The share of items that a filter passes, by the name of its function."""
    streams: Mapping[str, InputStatistics] = field(default_factory=dict)
    """Statistics of streams of the program that are no inputs, by their names."""

    def of_inputs(self, names: Iterable[str]) -> Statistics:
        """The same statistics with defaults for those of these inputs that have none."""
        return replace(self, inputs={n: self.inputs.get(n, InputStatistics()) for n in names})

    def as_json(self) -> Mapping[str, Any]:
        """The statistics as `of` reads them."""
        return asdict(self)

    def longer(self, times: float) -> Statistics:
        """The statistics once the history of the input with the most new rows is `times` as long.

        Every stream gets as many rows in a tick as before. Statistics of all inputs are given.
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
        """The statistics of a parsed file; raises `ValueError` where the file is wrong."""
        entries = _entries(data, "statistics", ("ticks", "inputs", "selectivity", "streams"))
        inputs, streams = (
            {
                name: _input_statistics(of, f"`{kind}.{name}`")
                for name, of in _entries(entries.get(kind, {}), f"`{kind}`").items()
            }
            for kind in ("inputs", "streams")
        )
        selectivity = {
            name: _number(share, f"`selectivity.{name}`", (0, 1))
            for name, share in _entries(entries.get("selectivity", {}), "`selectivity`").items()
        }
        ticks = _number(entries.get("ticks", TICKS), "`ticks`", (1, MOST_ROWS))
        return Statistics(ticks, inputs, selectivity, streams)


def _input_statistics(data: Any, of: str) -> InputStatistics:
    """The statistics of one stream; what is null or absent is unknown."""
    entries = _entries(data, of, ("rows", "history", "keys"))
    least = {"rows": 0, "history": 0, "keys": 1}
    numbers = {
        name: _number(value, f"`{of.strip('`')}.{name}`", (least[name], MOST_ROWS))
        for name, value in entries.items()
        if value is not None
    }
    return InputStatistics(**numbers)


def _entries(data: Any, of: str, known: Collection[str] | None = None) -> Mapping[str, Any]:
    """The entries of a JSON object, which may have these names only."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{of}: not a JSON object")  # noqa: TRY004 - it is the file's fault
    unknown = [] if known is None else sorted(set(data) - set(known))
    if unknown:
        there = ", ".join(known or ())
        raise ValueError(f"{of}: no entry is called {', '.join(unknown)}; there are {there}")
    return data


def _number(value: Any, of: str, limits: tuple[float, float]) -> float:
    least, most = limits
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and least <= value <= most):
        raise ValueError(f"{of}: not a number from {least} to {most:g}")
    return float(value)


# Estimated rows of a node's output, by the class of its operator.


GROUPS_EXPONENT = 0.8
"""n rows are expected to have n**0.8 groups."""
DISTINCT_EXPONENT = 0.9
"""n items are expected to have n**0.9 distinct ones: whole items differ more than their keys."""
MATCHES_EXPONENT = 0.95
"""n rows are expected to have n**0.95 distinct join keys: mostly those of one side."""
SELECTIVITY = 0.5
SPREAD = 2.0
"""The expected output items per item of an operator that gives any number."""
HARDLY_ANY = 0.001
TIMED_TICKS = 100.0
"""The ticks whose rows are expected in a window that rows leave by their time."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a stream: rows in a tick, the number of such ticks in its history, and the number
    of distinct join keys where it is known.
    """

    rows: float
    ticks: float
    keys: float | None = None

    def matches(self) -> float:
        """The number of distinct join keys of the rows."""
        guess = self.rows if self.rows <= 1 else self.rows**MATCHES_EXPONENT
        return guess if self.keys is None else min(self.keys, max(self.rows, 1.0))


@dataclass(frozen=True, slots=True)
class SizeHints:
    """Hints about a node's size from its arguments."""

    selectivity: float = SELECTIVITY
    """The share of items that its function passes, if it is a filter."""
    ticks: float = 1.0
    """The number of ticks in a window, or of rows that stay of a key."""
    keyed: bool = True
    """True if these are rows of each key, not of all."""


def rows_of(cls: ShapeClass, into: Sequence[Size], asked: SizeHints) -> float:  # noqa: C901, PLR0911, PLR0912 - a closed set of cases
    """The rows that a node of the class gives in a tick, for inputs of these sizes."""
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
            # The class also has the aggregate of the same stream, whose size is known.
            return math.inf
        case RunningResult(OrderedByKey() as of):
            return rows_of(of, [_of_all(into[0])], asked)
        case RunningResult(of):
            return _of_keys(_of_all(into[0]), GROUPS_EXPONENT) if of.keyed else 1.0
        case Commands():
            # the items after the commands of all ticks; few commands delete
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
    """The number of groups of so many rows."""
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
    """All rows so far, as those of one tick."""
    return Size(new.rows * new.ticks, 1.0, new.keys)


def _of_keys(size: Size, exponent: float) -> float:
    """The number of distinct keys of the rows."""
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


# Cost of a plan: the rows that a tick touches.
#
# Every class has an expected number of rows in a tick; a history has the rows of many ticks. A node
# costs the rows that it reads, stores and gives. So a history is expensive, since each tick reads
# all of it. A range of ticks runs by the same plan; the engine chooses what is cheaper in a range.


LOOP = 10.0
"""The expected rounds of a cycle within a tick."""
NODE = 1.0
"""The fixed cost of a node."""
MADE = 2.0
"""The cost of a row that a join gives, where a row that is read costs one."""
SKEW = 2.0
"""The rows of a key with a new row, as a multiple of the mean rows of a key: keys with many rows
get new ones more often.
"""
SEARCHED = 0.002
"""The cost of a stored row whose key is compared, where a row that is read costs one."""
MOST_SEARCHED = 100_000.0
"""The most stored rows whose keys are compared: in larger files, hashes find the rows."""


class RowsTouched(NamedTuple):
    """The rows that a node reads in a tick, gives (where these are expensive), and writes."""

    reads: float = 0.0
    makes: float = 0.0
    stores: float = 0.0
    fixed: float = NODE

    @property
    def cost(self) -> float:
        """The total, with the fixed cost of the node."""
        return self.fixed + self.reads + self.makes + self.stores


@dataclass(frozen=True, slots=True)
class CostModel:
    """Sizes of classes and costs of nodes of one space."""

    space: Space
    payloads: Sequence[Payload]
    statistics: Statistics

    def sizes(self, first: Sequence[int] = ()) -> list[float]:
        """The expected rows of each class in a tick.

        A class has the size of the node by which it is first reached from the inputs. The nodes at
        `first` come before all others except literals. Later nodes do not change a size, since
        estimates would shrink in a cycle.
        """
        found: list[Size | None] = [None] * len(self.space.of)
        for name, given in self.statistics.streams.items():
            if name in self.space.named:
                found[self.space.named[name]] = self._known(given)
        self._spread([n for n in self.space.nodes if "items" in self._args(n)], found)
        self._spread([self.space.nodes[i] for i in first], found)
        self._spread(self.space.nodes, found)
        unknown = ROWS * self.statistics.ticks
        # Only streams that feed themselves have no size yet. They are expected to have some
        # history, but not one row for each key, a window, or a part of a known stream.
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
        """The cost of every node if it gives values; `sizes`: the rows of every class."""
        return [
            _touched(n.shape.cls, [sizes[c] for c in n.inputs], sizes[n.cls]).cost
            for n in self.space.nodes
        ]

    def touched(
        self, sizes: Sequence[float], forms: Forms
    ) -> tuple[list[RowsTouched], Sequence[float]]:
        """The rows that every node of a space with representations touches, and the rows of its
        classes.

        Args:
            sizes: the rows of every class of values.
            forms: the space, in which streams may be wanted as changelogs.
        """
        rows = self._rows(sizes, forms)
        return [self._touched_in(forms, node, rows) for node in forms.space.nodes], rows

    def _touched_in(self, forms: Forms, node: ENode, rows: Sequence[float]) -> RowsTouched:
        """The rows that a node touches which gives its stream in some representation."""
        form = forms.streams[node.cls][1]
        if form is Form.LOOKED_UP:
            return self._searched(forms, node, rows)
        if node.shape is INTEGRATE:
            return RowsTouched(rows[node.cls], fixed=0.0)
        # a join has as many rows as the rows that it looks up, so these add no cost
        into = [self._new(c, rows, forms) for c in node.inputs]
        told = any(forms.streams[c][1] is not Form.VALUES for c in (node.cls, *node.inputs))
        found = _touched(node.shape.cls, into, self._new(node.cls, rows, forms), changes=told)
        return found._replace(reads=found.reads + self._met(forms, node, rows))

    def _met(self, forms: Forms, node: ENode, rows: Sequence[float]) -> float:
        """The rows of changed keys, from which a keyed result is recomputed."""
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
        """The rows read to look up items of some keys, once for all readers.

        The keys of a stored stream are compared. The readers pay for the matched rows.
        """
        searched = SEARCHED * min(rows[forms.streams[node.cls][0]], MOST_SEARCHED)
        if isinstance(node.shape.cls, History):
            return RowsTouched(searched, stores=rows[node.inputs[0]])
        told = forms.streams[node.inputs[0]][1] is Form.CHANGES
        return RowsTouched(searched if node.shape is INTEGRATE and told else 0.0)

    def _rows(self, sizes: Sequence[float], forms: Forms) -> list[float]:
        """The rows of every class in its representation: for a changelog, the updates of a tick.

        A class that only feeds itself has all rows.
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
        """The number of updates in a tick."""
        told = [c for c in node.inputs if forms.streams[c][1] is not Form.LOOKED_UP]
        into = [rows[c] for c in told]
        cls, whole = node.shape.cls, rows[forms.streams[node.cls][0]]
        if not isinstance(cls, FeedbackShape) and looks_up(cls):
            # a new row gives as many rows as any other row of its side
            sides = (rows[forms.streams[c][0]] for c in told)
            return sum(n * max(1.0, whole / side) for n, side in zip(into, sides, strict=True))
        return sum(into) * (2 if isinstance(cls, Window) else 1)

    def _new(self, cls: ClassId, rows: Sequence[float], forms: Forms) -> float:
        """The rows of a stream that a tick reads, without those that are looked up."""
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
    """The rows that a node of the class touches in a tick, for the rows that it reads and gives;
    `changes`: these are updates.
    """
    match cls:
        case ExternalItems():
            return RowsTouched()
        case TickDifference() if changes:
            return RowsTouched(into[0])
        case PreviousTick() if changes:
            # the whole changelog is read and summed up, and nothing is written
            return RowsTouched(2 * out)
        case Output():
            # of a changelog stream the updates are stored, of others all rows in each tick
            return RowsTouched(stores=into[0])
        case Sum():
            return RowsTouched(0.01 * out)
        case History() if changes:
            return RowsTouched()
        case Window() if changes:
            # the batch is stored, and the rows that leave are read
            return RowsTouched(out)
        case History() | Window():
            # it stores the batch and reads the rest
            return RowsTouched(out, stores=into[0])
        case PreviousTick():
            # all rows are written in each tick, and those of the tick before are read
            return RowsTouched(2 * into[0], stores=into[0])
        case RunningResult(OrderedByKey()):
            # the keys of the new items are looked up in the state, and some items are written
            changed = min(SKEW * sum(into), out)
            return RowsTouched(sum(into) + changed + (0.0 if changes else out), stores=changed)
        case RunningResult(ByKey(keyed=True)):
            # the keys of the new items are looked up in the state, and written again
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
