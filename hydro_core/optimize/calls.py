"""Which nodes may be in a plan, so that no tick fails that the program completes.

Rules speak of streams, as if functions always had a value. One that fails on an item fails the
tick, and `prev(f(a))` asks f a tick earlier than `f(prev(a))` does. So a node that may fail is only
allowed where the program itself has shown its function all those items by then: the items are
*covered*. They are covered at the program's own nodes; from there to what is part of a covered
stream, and to what is made of covered items only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import ByKey, Product, Sum
from hydro_core.catalog.over_functions import aggregate_of
from hydro_core.catalog.properties import Passes
from hydro_core.catalog.spec import Aggregate, Args, Fails, functions_of
from hydro_core.catalog.variants import Meets, Summary
from hydro_core.optimize.loop import cycle_of
from hydro_core.optimize.shape import FeedbackShape, Payload
from hydro_core.optimize.space import ClassId, ENode, Problem, Space, classes_read, own_nodes

Asked = int | str
"""What is asked: the arguments of a node, or its shape where it has none."""


@dataclass(frozen=True, slots=True)
class _Paired:
    """What is asked of each item together with the single one of a stream."""

    key: Asked
    single: ClassId
    by: int | None = None
    """The aggregate that keeps the items, of its results."""


CallKey = Asked | _Paired
_SINGLE = Product(Meets.SINGLE)


def permitted(problem: Problem, space: Space) -> Space:
    """The space without the nodes that might fail a tick that the program completes."""
    total = {number for (number,) in problem.known("total")}
    fails = [may_fail(node, problem.payloads, total) for node in space.nodes]
    shown = (space.nodes[i] for i in own_nodes(problem, space) if fails[i])
    known = covered(problem, space, [call_of(n) for n in shown if n.inputs])
    own = {(d.shape, classes_read(problem, space, d)) for d in problem.definitions}
    of = tuple(
        tuple(i for i in options if not fails[i] or _is_allowed(space.nodes[i], known, own))
        for options in space.of
    )
    return replace(space, of=of)


def _is_allowed(
    node: ENode,
    known: set[tuple[CallKey, ClassId]],
    own: set[tuple[str, tuple[ClassId, ...]]],
) -> bool:
    name, cls = node.shape.name, node.shape.cls
    if not isinstance(cls, FeedbackShape):
        return call_of(node) in known
    if cls.new:
        reads = (len(node.inputs) - 1) // 3
        return (cycle_of(name), node.inputs[:reads]) in own
    return (name, node.inputs) in own


def covered(
    problem: Problem, space: Space, calls: Iterable[tuple[CallKey, ClassId]]
) -> set[tuple[CallKey, ClassId]]:
    """What is asked of which items by then, where these calls are made."""
    work = _Covered(problem, space)
    for key, cls in calls:
        work.add(key, cls)
    while work.todo:
        key, cls = work.todo.pop()
        for option in space.of[cls]:
            work.inside(key, space.nodes[option])
        for node in work.readers[cls]:
            if isinstance(key, _Paired):
                work.outside_paired(key, node)
            else:
                work.outside(key, node)
        if not isinstance(key, _Paired):
            work.in_other_words(key, cls)
    return work.found


class _Covered:
    """What is asked of which items, and what facts say of who asks."""

    def __init__(self, problem: Problem, space: Space) -> None:
        self.found: set[tuple[CallKey, ClassId]] = set()
        self.todo: list[tuple[CallKey, ClassId]] = []
        self.readers = defaultdict[ClassId, list[ENode]](list)
        for node in space.nodes:
            for cls in dict.fromkeys(node.inputs):
                self.readers[cls].append(node)
        self._kept = {by: columns for by, columns in problem.known("kept")}  # noqa: C416 - pairs
        """The columns that give back the rows that an aggregate keeps, by the aggregate."""
        self._moved = defaultdict[tuple[CallKey, int], list[int]](list)
        """The filters that may be asked earlier, by the filter and the operator."""
        for p, f, q in problem.known("on_keys", "composed"):
            self._moved[p, f].append(q)
        self._parts = defaultdict[Asked, list[tuple[int, int | None]]](list)
        """By what is asked in one: its first part, and what is asked of that part's results."""
        for whole, given, made in problem.known("parts", "moving", "tails", "conjunct"):
            self._parts[whole].append((given, made))
        for whole, one, other, _, _ in problem.known("apart"):
            self._parts[whole] += [(one, None), (other, None)]
        for _, sort, top in problem.known("first_of_key", "first_of_all"):
            # the first items are found by what a sort asks of all
            self._parts[sort].append((top, None))
        self._steps = defaultdict[Asked, list[tuple[int, int]]](list)
        """By what a sort or a step asks: what is asked beside it, and what asks both."""
        itself = {sort for (sort,) in problem.known("itself")}
        for step, sort, both in problem.known("steps_in_order"):
            # the sort of items by themselves asks nothing
            self._steps[step].append((step if sort in itself else sort, both))
            self._steps[sort].append((step, both))
        self._keyed = defaultdict[Asked, list[tuple[int, int]]](list)
        """By what asks of rows without a key: what gives it, and what asks the same with it."""
        for over, key, by_key, _ in problem.known("one_key"):
            self._keyed[over].append((key, by_key))

    def add(self, key: CallKey, cls: ClassId) -> None:
        """The items of the class are covered for this function."""
        if (key, cls) not in self.found:
            self.found.add((key, cls))
            self.todo.append((key, cls))

    def inside(self, key: CallKey, node: ENode) -> None:
        """What is part of a covered stream is covered."""
        if node.shape.cls.passes in (Passes.ALL, Passes.SO_FAR):
            for cls in node.inputs:
                self.add(key, cls)
        if node.shape.cls == _SINGLE and not isinstance(key, _Paired):
            self.add(_Paired(key, node.inputs[1]), node.inputs[0])
        if node.payload is not None:
            # a filter may ask what an item was made of instead, or rows with the key of a result
            for other in self._moved[key, node.payload]:
                self.add(other, node.inputs[0])

    def outside(self, key: CallKey, node: ENode) -> None:
        """What has covered items only is covered."""
        cls = node.shape.cls
        if cls == Sum():
            if all((key, read) in self.found for read in node.inputs):
                self.add(key, node.cls)
        elif cls.passes is not Passes.NONE and (key, node.inputs[0]) in self.found:
            self.add(key, node.cls)

    def outside_paired(self, key: _Paired, node: ENode) -> None:
        """What is asked of items with a single one is asked of some of them, in the same tick."""
        passes, payload = node.shape.cls.passes, node.payload
        there = (key, node.inputs[0]) in self.found
        if node.shape.cls == _SINGLE:
            if key.by is None and node.inputs[1] == key.single and there:
                self.add(key.key, node.cls)
        elif key.by is not None:
            if payload == self._kept[key.by]:
                self.add(replace(key, by=None), node.cls)
        elif payload in self._kept:
            self.add(replace(key, by=payload), node.cls)
        elif passes is Passes.SOME and there:
            self.add(key, node.cls)

    def in_other_words(self, key: Asked, cls: ClassId) -> None:
        """What asks the same, or a part of it; what parts make is asked of nothing else."""
        readers = self.readers[cls]
        whole = any(node.payload == key and _of_items(node) for node in readers)
        for given, made in self._parts[key]:
            self.add(given, cls)
            for node in readers if made is not None else ():
                # the sum of some items may be beyond 64 bits where that of all is not
                of_all = whole or not _of_items(node)
                if node.payload == given and made is not None and of_all:
                    self.add(made, node.cls)
        for beside, both in self._steps[key]:
            if (beside, cls) in self.found:
                self.add(both, cls)
        for with_key, of_key in self._keyed[key]:
            for node in readers:
                if node.payload == with_key:
                    self.add(of_key, node.cls)


def may_fail(node: ENode, payloads: tuple[Payload, ...], total: Collection[int | str]) -> bool:
    """Whether the node may fail on some item; arguments that are `total` have a value for all."""
    op = node.shape.op
    if isinstance(node.shape.cls, FeedbackShape) or (op is not None and op.fails is Fails.ON_ITEMS):
        return True
    if op is None or node.payload is None or not node.inputs:
        return False
    args = payloads[node.payload].args
    if any(AGGREGATES[a.function].may_fail for a in _aggregates_in(args)):
        return True
    asks = next(functions_of(args), None) is not None
    return asks and not (op.fails is Fails.NEVER and node.payload in total)


def _aggregates_in(args: Args) -> Iterator[Aggregate]:
    yield from (aggregate for _, aggregate in args.get("aggregates") or ())
    yield from filter(None, (aggregate_of(f) for _, f in args.get("functions") or ()))


def call_of(node: ENode) -> tuple[CallKey, ClassId]:
    """What the node asks, and of which items."""
    key = node.shape.plain if node.payload is None else node.payload
    return key, node.inputs[int(node.shape.cls == _SINGLE)]


def _of_items(node: ENode) -> bool:
    """Whether it makes aggregates, of all its items."""
    cls = node.shape.cls
    return isinstance(cls, ByKey) and cls.summary is Summary.AGGREGATES
