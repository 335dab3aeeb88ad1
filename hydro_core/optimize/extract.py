"""Extraction: the cheapest legal plan of a space, with a representation for each stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    DistinctItems,
    ExternalItems,
    KeyMatch,
    Linear,
    MatchCondition,
    OrderedByKey,
    OverTime,
    PairedItems,
    PerPosition,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    TickDifference,
)
from hydro_core.catalog.forms import Form, looks_up, needed
from hydro_core.catalog.group import (
    GIVE_FEW,
    ExtremeValue,
    WithExtremes,
    extremes_of,
    first_of,
    with_extremes,
)
from hydro_core.catalog.spec import NO_ARGS, Args
from hydro_core.optimize.egraph import ClassId, ENode, Space
from hydro_core.optimize.rule import INTEGRATE, FeedbackShape, Payload, Sort

# Representations among the plans to choose from: the representation of a stream is part of a plan.
#
# A class of equal streams may be wanted as values, as a changelog, or as a history. Each is a class
# of its own here, with the nodes that give it from inputs in the representations that they need, so
# a stream costs what its wanted representation costs. An operator that pairs updates with the rows
# of their keys looks these up; `lookup` is a representation, too: rows are matched once for all
# readers, in a stored table or in the streams that a stream is derived from. Two operators lead
# from one representation to the other. An operator that stores its result has its updates, and
# *integrates* them where a reader wants the values. `delta` and `changes` *differentiate*: they
# read the changelog if there is one, else they compare the values with those of the tick before.


@dataclass(frozen=True, slots=True)
class Forms:
    """A space with one class for each stream and representation; the classes of values come
    first.
    """

    space: Space
    streams: tuple[tuple[ClassId, Form], ...]
    """By class: the class of its values, and the representation."""
    nodes: tuple[int, ...]
    """By node: the node in the space of values that it stands for; -1 for one that converts."""

    def plan(self, found: Plan) -> Plan:
        """The plan in the space of values, with the classes whose changelog alone is wanted.

        A stream that is wanted in several representations is computed once, by a node that gives
        all.
        """
        best: dict[ClassId, tuple[int, int]] = {}
        for cls, chosen in found.choice.items():
            stream, form = self.streams[cls]
            node = self.nodes[chosen]
            if node >= 0:
                best[stream] = max(best.get(stream, (-1, -1)), (_RANK.index(form), node))
        choice = {stream: node for stream, (_, node) in best.items()}
        wanted = {self.streams[c][0] for c in found.choice if self.streams[c][1] is Form.VALUES}
        return replace(found, choice=choice, in_changes=frozenset(choice.keys() - wanted))


_RANK = (Form.LOOKED_UP, Form.VALUES, Form.CHANGES, Form.GROWTH)
"""A later representation also serves readers of an earlier one."""


class _GrowingSpace:
    """The space with the representations wanted so far; `todo` are those without a node yet."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.grows, self.events = _least(space, _grows), _least(space, _is_of_events)
        self.nodes, self.origins = list(space.nodes), list(range(len(space.nodes)))
        self.of: list[list[int]] = [[] for _ in space.of]
        self.streams = [(cls, Form.VALUES) for cls in range(len(space.of))]
        self.ids: dict[tuple[ClassId, Form], ClassId] = {}
        self.todo: list[tuple[ClassId, Form]] = []

    def cls(self, stream: ClassId, form: Form) -> ClassId:
        if form is Form.VALUES:
            return stream
        if (stream, form) not in self.ids:
            self.ids[stream, form] = len(self.of)
            self.of.append([])
            self.streams.append((stream, form))
            self.todo.append((stream, form))
        return self.ids[stream, form]

    def add(self, node: ENode, origin: int) -> None:
        """Adds a node that gives a class."""
        self.of[node.cls].append(len(self.nodes))
        self.nodes.append(node)
        self.origins.append(origin)

    def look_up(self, side: int | None, origin: int) -> None:
        """Adds a node that gives values and looks up one of its inputs, if there is a `side` to
        look up.
        """
        node = self.space.nodes[origin]
        if side is not None:
            inputs = list(node.inputs)
            inputs[side] = self.cls(node.inputs[side], Form.LOOKED_UP)
            self.add(replace(node, inputs=tuple(inputs)), origin)


def values_only(space: Space) -> Forms:
    """The space in which no stream has a changelog."""
    of = tuple(
        tuple(i for i in options if not _reads_changes(space.nodes[i])) for options in space.of
    )
    streams = tuple((cls, Form.VALUES) for cls in range(len(of)))
    return Forms(replace(space, of=of), streams, tuple(range(len(space.nodes))))


def with_forms(space: Space, payloads: Sequence[Payload] = ()) -> Forms:
    """The space with all representations that a reader may want; `payloads`: the arguments of
    operators.
    """
    extremes = ExtremeReads(space, payloads)
    work = _GrowingSpace(space)
    for cls, options in enumerate(space.of):
        stored = [i for i in options if isinstance(space.nodes[i].shape.cls, RunningResult)]
        work.of[cls] += [i for i in options if i not in stored]
        if stored:
            work.add(ENode(INTEGRATE, None, (work.cls(cls, Form.CHANGES),), cls), -1)
        for i in options:
            node = space.nodes[i]
            if node.shape.is_bags and node.shape.cls.takes_changes:
                told = (work.cls(node.inputs[0], Form.CHANGES),)
                work.add(replace(node, inputs=told), i)
            work.look_up(_looked_up_by_events(work, node), i)
            _of_extremes(work, extremes, i)
            work.look_up(extremes.met_by_few(node), i)
    while work.todo:
        _give(work, *work.todo.pop())
    return _alive(work)


def _of_extremes(work: _GrowingSpace, extremes: ExtremeReads, i: int) -> None:
    """Adds the node that gives values and needs few rows of an input, by their minimum or
    maximum.
    """
    node = work.space.nodes[i]
    side = extremes.looked_up(node)
    if side is not None:
        stream, shape = node.inputs[side], node.shape
        rest = (c for j, c in enumerate(node.inputs) if j != side)
        told = (work.cls(stream, Form.CHANGES), work.cls(stream, Form.LOOKED_UP), *rest)
        sorts = (Sort.BAG,) * len(told)
        shape = replace(shape, inputs=sorts, strict=(False,) * len(told))
        work.add(ENode(shape, node.payload, told, node.cls), i)


def _give(work: _GrowingSpace, stream: ClassId, form: Form) -> None:
    """Adds the nodes that give a stream in a representation."""
    if form is Form.LOOKED_UP:
        work.add(ENode(INTEGRATE, None, (stream,), work.cls(stream, form)), -1)
        if any(
            isinstance(work.space.nodes[i].shape.cls, RunningResult) for i in work.space.of[stream]
        ):
            stored = work.cls(stream, Form.CHANGES)
            work.add(ENode(INTEGRATE, None, (stored,), work.cls(stream, form)), -1)
    for i in work.space.of[stream]:
        node = work.space.nodes[i]
        cls = node.shape.cls
        if isinstance(cls, FeedbackShape) or node.shape.output is not Sort.BAG:
            continue
        wanted = needed(cls, form)
        if wanted is None or not (wanted is Form.VALUES or node.shape.is_bags):
            continue
        grows, shape = stream in work.grows, node.shape
        if form is Form.CHANGES and grows and looks_up(cls):
            continue  # rules find the additions of a history
        # where the output has retractions, an input that is a history is read as its additions
        histories = work.grows if wanted is Form.CHANGES and not grows else frozenset[ClassId]()
        inputs = tuple(work.cls(c, Form.GROWTH if c in histories else wanted) for c in node.inputs)
        if form in (Form.CHANGES, Form.GROWTH) and looks_up(cls):
            # besides the updates of an input, its rows are looked up by the keys of the updates
            inputs += tuple(work.cls(c, Form.LOOKED_UP) for c in node.inputs)
            shape = replace(shape, inputs=shape.inputs * 2, strict=shape.strict * 2)
        work.add(ENode(shape, node.payload, inputs, work.cls(stream, form)), i)


def _least(space: Space, holds: Callable[[ENode, set[ClassId]], bool]) -> frozenset[ClassId]:
    """The least set of streams with a node for which `holds`, given the streams in the set."""
    found: set[ClassId] = set()
    while more := {n.cls for n in space.nodes if n.cls not in found and holds(n, found)}:
        found |= more
    return frozenset(found)


def _grows(node: ENode, growing: set[ClassId]) -> bool:
    """True if the node can give its stream as a history."""
    cls = node.shape.cls
    if isinstance(cls, FeedbackShape) or node.shape.output is not Sort.BAG:
        return False
    match needed(cls, Form.GROWTH):
        case Form.VALUES:
            return True
        case Form.GROWTH:
            return bool(node.inputs) and node.shape.is_bags and growing.issuperset(node.inputs)
        case _:
            return False


def _is_of_events(node: ENode, events: set[ClassId]) -> bool:
    """True if the node can give a batch stream."""
    cls, inputs = node.shape.cls, [c in events for c in node.inputs]
    match cls:
        case ExternalItems() | TickDifference():
            return True
        case Linear() | DistinctItems() | ByKey() | OrderedByKey():
            return all(inputs)
        case Product(keeps=keeps):
            return any(inputs) and all(inputs[i] for i in keeps)
        case KeyMatch() | AsOf():
            return inputs[0]
        case FeedbackShape() | StreamEnd() | RunningResult() | PerPosition() | OverTime():
            return False
        case _:
            assert_never(cls)


def _looked_up_by_events(work: _GrowingSpace, node: ENode) -> int | None:
    """The input of a product or a match that a batch looks up; None if there is none."""
    cls, sides = node.shape.cls, list[int]()
    if isinstance(cls, Product) and cls.meets is PairedItems.KEY:
        sides = [i for i in (0, 1) if i not in cls.keeps]
    if isinstance(cls, KeyMatch):
        sides = [1, 0] if cls.wanted else [1]
    if isinstance(cls, AsOf) and cls.keyed:
        sides = [1]
    if not node.shape.is_bags:
        return None
    events = work.events
    found = (i for i in sides if node.inputs[1 - i] in events and node.inputs[i] not in events)
    return next(found, None)


def _alive(work: _GrowingSpace) -> Forms:
    """The space without nodes that need a representation which no node gives."""
    of = [tuple(options) for options in work.of]
    changed = True
    while changed:
        left = [tuple(i for i in o if all(of[c] for c in work.nodes[i].inputs)) for o in of]
        changed, of = left != of, left
    space = Space(tuple(work.nodes), tuple(of), work.space.roots, work.space.named)
    return Forms(space, tuple(work.streams), tuple(work.origins))


def _reads_changes(node: ENode) -> bool:
    cls = node.shape.cls
    return isinstance(cls, RunningResult) and cls.changes


# Min/max lookups among the plans to choose from.
#
# The rows of the changed keys and, of the others, those with the minimum or maximum are enough for
# the min/max aggregate and for a join with its value. These are few, and so their partners in a
# join are looked up. `hydro_core/plan/origins.py` finds these rows when a plan runs.


NamesBelow = Mapping[str, str]
"""By columns of a projection's input: their names in its output."""


@dataclass(slots=True)
class ExtremeReads:
    """The nodes of a space that need few rows of an input whose rows are all wanted."""

    space: Space
    payloads: Sequence[Payload]
    _few: dict[ClassId, bool] = field(default_factory=dict)

    def looked_up(self, node: ENode) -> int | None:
        """The input from which a node needs only min/max rows and the rows of changed keys."""
        if not node.shape.is_bags:
            return None
        match _what(node):
            case WithExtremes.VALUE | WithExtremes.FIRST:
                cls, args = node.shape.cls, self._args(node)
                is_first = not isinstance(cls, FeedbackShape) and first_of(cls, args) is not None
                wanted = is_first or self._extremes(node)
                return 0 if wanted and self._is_stored(node.inputs[0]) else None
            case WithExtremes.PAIRS:
                sides = (0,) if isinstance(node.shape.cls, KeyMatch) else (0, 1)
                return next((i for i in sides if self._compares(node, i)), None)
            case WithExtremes.PASSES | WithExtremes.STORED | WithExtremes.OTHER:
                return None

    def met_by_few(self, node: ENode) -> int | None:
        """The input whose rows a node looks up by the keys of few others."""
        cls = node.shape.cls
        sides = [0, 1] if _what(node) is WithExtremes.PAIRS else []
        if isinstance(cls, KeyMatch) and cls.compares is MatchCondition.KEYS:
            sides = [1, 0] if cls.wanted else [1]
        if not node.shape.is_bags:
            return None
        return next((i for i in sides if self._are_few(node.inputs[1 - i])), None)

    def _compares(self, node: ENode, i: int) -> bool:
        """True if a join compares items of input `i` with their own minimum or maximum."""
        mine, other = node.inputs[i], node.inputs[1 - i]
        if not self._is_stored(mine):
            return False
        keys = [(k, k) if isinstance(k, str) else k for k in self._args(node).get("on") or ()]
        pairs = {(key[i], key[1 - i]) for key in keys}
        for one, names in self._through(other):
            for column, extreme in self._extremes(one).items():
                shown = names.get(column) if names is not None else column
                if one.inputs[0] == mine and (extreme.column, shown) in pairs:
                    return True
        return False

    def _are_few(self, cls: ClassId) -> bool:
        """True if all rows of a stream are rows with a minimum or maximum."""
        if cls not in self._few:
            self._few[cls] = False
            self._few[cls] = any(self._gives_few(self.space.nodes[i]) for i in self.space.of[cls])
        return self._few[cls]

    def _gives_few(self, node: ENode) -> bool:
        what = _what(node)
        if what is WithExtremes.PASSES:
            return self._are_few(node.inputs[0])
        return what in GIVE_FEW and self.looked_up(node) is not None

    def _extremes(self, node: ENode) -> Mapping[str, ExtremeValue]:
        if _what(node) is not WithExtremes.VALUE:
            return {}
        return extremes_of(self._args(node)) or {}

    def _is_stored(self, cls: ClassId) -> bool:
        for i in self.space.of[cls]:
            node = self.space.nodes[i]
            if isinstance(node.shape.cls, Projection):
                made = node.shape.cls.columns(self._args(node), ())
                below = (self.space.nodes[j] for j in self.space.of[node.inputs[0]])
                if any(self._key(one) and self._key(one) <= {*made.values()} for one in below):
                    return True
            elif self._key(node):
                return True
        return False

    def _key(self, node: ENode) -> set[object]:
        """The columns of the key by which the node stores results; empty if it stores none."""
        is_stored = _what(node) is WithExtremes.STORED
        return set(self._args(node).get("by") or ()) if is_stored else set()

    def _through(self, cls: ClassId) -> Iterator[tuple[ENode, NamesBelow | None]]:
        """The nodes that give a stream; for a projection the nodes below it, with the names of
        their columns.
        """
        for i in self.space.of[cls]:
            node = self.space.nodes[i]
            if isinstance(node.shape.cls, Projection):
                for below in self.space.of[node.inputs[0]]:
                    one = self.space.nodes[below]
                    made = node.shape.cls.columns(self._args(node), tuple(self._extremes(one)))
                    yield one, {c: n for n, c in made.items() if isinstance(c, str)}
            else:
                yield node, None

    def _args(self, node: ENode) -> Args:
        return NO_ARGS if node.payload is None else self.payloads[node.payload].args


def _what(node: ENode) -> WithExtremes:
    cls = node.shape.cls
    return WithExtremes.OTHER if isinstance(cls, FeedbackShape) else with_extremes(cls)


# Extraction: the cheapest legal plan of a space, where a shared class is paid once.
#
# A greedy start, then local search: one class changes its node, or two at once where no single
# change helps. Legal plans may have cycles, each through a strict input. The result is
# deterministic: the first of equally cheap nodes wins, and effort is counted, not timed.


MAX_EVALUATIONS = 30_000
"""The number of plans that may be evaluated before pairs of changes stop."""
MAX_VISITS = 6_000_000
"""The number of classes that may be visited in all evaluations together."""
MAX_ROUNDS = 400
EPSILON = 1e-9

ChosenNodes = dict[ClassId, int]
ChosenStep = tuple[tuple[ClassId, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One node for every class that is used, and their total cost."""

    choice: Mapping[ClassId, int]
    cost: float
    has_converged: bool = True
    """True if the search ended by itself, not at a limit."""
    in_changes: frozenset[ClassId] = frozenset()
    """The classes whose changelog alone is wanted."""


@dataclass(slots=True)
class PlanSearch:
    """The search for a plan: the space in flat arrays, and the effort so far."""

    roots: tuple[ClassId, ...]
    options: list[tuple[int, ...]]
    costs: Sequence[float]
    now: list[tuple[ClassId, ...]]
    """By node: the inputs on which it depends in the same tick."""
    later: list[tuple[ClassId, ...]]
    """By node: the strict inputs."""
    evaluations: int = 0
    visits: int = 0

    @property
    def is_over(self) -> bool:
        """True if the effort has reached a limit."""
        return self.evaluations > MAX_EVALUATIONS or self.visits > MAX_VISITS

    def evaluate(
        self, choice: ChosenNodes, bound: float = math.inf
    ) -> tuple[float, tuple[ClassId, ...]]:
        """A plan's cost and the classes it uses; infinite if it is illegal or above `bound`."""
        self.evaluations += 1
        total = 0.0
        done: dict[ClassId, bool] = {}
        delayed = list(self.roots)
        costs, now, later = self.costs, self.now, self.later
        while delayed:
            root = delayed.pop()
            if root in done:
                continue
            stack: list[tuple[ClassId, int]] = [(root, 0)]
            done[root] = False
            node = choice.get(root, -1)
            if node < 0:
                return math.inf, ()
            total += costs[node]
            delayed += later[node]
            while stack:
                cls, position = stack[-1]
                inputs = now[choice[cls]]
                if position == len(inputs):
                    done[cls] = True
                    stack.pop()
                    continue
                stack[-1] = (cls, position + 1)
                child = inputs[position]
                state = done.get(child)
                if state:
                    continue
                node = choice.get(child, -1)
                if state is False or node < 0:
                    return math.inf, ()
                total += costs[node]
                if total >= bound:
                    self.visits += len(done)
                    return math.inf, ()
                delayed += later[node]
                done[child] = False
                stack.append((child, 0))
        self.visits += len(done)
        return total, tuple(sorted(done))

    def inputs_first(self) -> list[ClassId]:
        """The classes that plans may use, each after its inputs where cycles allow that."""
        order: list[ClassId] = []
        seen: set[ClassId] = set()
        stack = [(root, False) for root in reversed(self.roots)]
        while stack:
            cls, finished = stack.pop()
            if finished:
                order.append(cls)
            elif cls not in seen:
                seen.add(cls)
                stack.append((cls, True))
                for node in self.options[cls]:
                    stack += [(c, False) for c in (*self.now[node], *self.later[node])]
        return order


def extract(space: Space, costs: Sequence[float], preferred: Mapping[ClassId, int]) -> Plan:
    """The cheapest plan that the search finds; `preferred` is a legal plan to start from as
    well.
    """
    search = _search(space, costs)
    trees = _trees(search, lambda node: (*search.now[node], *search.later[node]))
    best, choice = math.inf, {**trees, **preferred}
    # Every class has a node in every start, since a move may lead anywhere. `going_on` reads
    # streams of the tick before for free, so it continues from them wherever it can.
    going_on = {**choice, **_trees(search, search.now.__getitem__)}
    for candidate in (choice, {**preferred, **trees}, {**preferred, **_sets(search)}, going_on):
        cost, _ = search.evaluate(candidate)
        if cost < best - EPSILON:
            best, choice = cost, candidate
    for _ in range(MAX_ROUNDS):
        step = _single(search, choice, best) or _pair(search, choice, best)
        if step is None:
            break
        choice |= dict(step)
        best, _ = search.evaluate(choice)
    _, used = search.evaluate(choice)
    return Plan({c: choice[c] for c in used}, best, not search.is_over)


def plan_cost(space: Space, costs: Sequence[float], choice: Mapping[ClassId, int]) -> float:
    """The cost of a plan, infinite where it is illegal."""
    return _search(space, costs).evaluate(dict(choice))[0]


def _search(space: Space, costs: Sequence[float]) -> PlanSearch:
    now, later = [], []
    for node in space.nodes:
        flags = tuple(zip(node.inputs, node.shape.strict, strict=True))
        now.append(tuple(dict.fromkeys(c for c, strict in flags if not strict)))
        later.append(tuple(dict.fromkeys(c for c, strict in flags if strict)))
    return PlanSearch(space.roots, _options(space, costs, now, later), costs, now, later)


def _options(
    space: Space,
    costs: Sequence[float],
    now: Sequence[tuple[ClassId, ...]],
    later: Sequence[tuple[ClassId, ...]],
) -> list[tuple[int, ...]]:
    """The nodes of each class, without those that never help: a node that reads itself, or that has
    the same inputs as a cheaper one.
    """
    options: list[tuple[int, ...]] = []
    for cls, nodes in enumerate(space.of):
        kept: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        for node in nodes:
            if cls in now[node]:
                continue
            key = (frozenset(now[node]), frozenset(later[node]))
            if key not in kept or costs[node] < costs[kept[key]] - EPSILON:
                kept[key] = node
        options.append(tuple(sorted(kept.values())))
    return options


def _trees(search: PlanSearch, paid: Callable[[int], tuple[ClassId, ...]]) -> ChosenNodes:
    """By class: the root of its cheapest tree, where a node costs itself and these of its
    inputs.
    """
    found: dict[ClassId, tuple[float, int]] = {}
    order = search.inputs_first()
    changed = True
    while changed:
        changed = False
        for cls in order:
            for node in search.options[cls]:
                inputs = paid(node)
                if not all(c in found for c in inputs):
                    continue
                cost = search.costs[node] + sum(found[c][0] for c in inputs)
                if cls not in found or cost < found[cls][0] - EPSILON:
                    found[cls] = (cost, node)
                    changed = True
    return {c: n for c, (_, n) in found.items()}


def _sets(search: PlanSearch) -> ChosenNodes:
    """By class: the root of its cheapest set of classes, without cycles."""
    found: dict[ClassId, tuple[float, dict[ClassId, float], int]] = {}
    order = search.inputs_first()
    changed = True
    while changed:
        changed = False
        for cls in order:
            for node in search.options[cls]:
                inputs = (*search.now[node], *search.later[node])
                if not all(c in found for c in inputs):
                    continue
                merged: dict[ClassId, float] = {}
                for c in inputs:
                    merged |= found[c][1]
                if cls in merged:
                    continue
                merged[cls] = search.costs[node]
                cost = sum(merged.values())
                if cls not in found or cost < found[cls][0] - EPSILON:
                    found[cls] = (cost, merged, node)
                    changed = True
    return {c: n for c, (_, _, n) in found.items()}


def _single(search: PlanSearch, choice: ChosenNodes, best: float) -> ChosenStep | None:
    """The best change of one class; None if no change helps."""
    found: ChosenStep | None = None
    _, used = search.evaluate(choice)
    for cls in used:
        before = choice[cls]
        for node in search.options[cls]:
            if node == before:
                continue
            choice[cls] = node
            cost, _ = search.evaluate(choice, best)
            if cost < best - EPSILON:
                best, found = cost, ((cls, node),)
        choice[cls] = before
        if search.visits > MAX_VISITS:
            break
    return found


def _pair(search: PlanSearch, choice: ChosenNodes, best: float) -> ChosenStep | None:
    """The first change of two classes that helps; None if none does."""
    _, used = search.evaluate(choice)
    for cls in used:
        before = choice[cls]
        for node in search.options[cls]:
            if node == before:
                continue
            choice[cls] = node
            _, now_used = search.evaluate(choice)
            for other in now_used:
                if other == cls:
                    continue
                kept = choice[other]
                for second in search.options[other]:
                    if second == kept:
                        continue
                    choice[other] = second
                    cost, _ = search.evaluate(choice, best)
                    if cost < best - EPSILON:
                        choice[other], choice[cls] = kept, before
                        return ((cls, node), (other, second))
                choice[other] = kept
                if search.is_over:
                    choice[cls] = before
                    return None
        choice[cls] = before
    return None
