"""Calls of functions in plans: no plan may fail in a tick that the program completes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from hydro_core.analysis.infer import never_null
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ByKey,
    PairedItems,
    PassedItems,
    Product,
    Projection,
    Sum,
    Summary,
)
from hydro_core.catalog.over_functions import aggregate_of
from hydro_core.catalog.spec import Aggregate, Args, FailureMode, functions_of
from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, reachable
from hydro_core.optimize.egraph import (
    ClassId,
    ENode,
    Problem,
    Space,
    StreamDefinition,
    classes_read,
    own_nodes,
)
from hydro_core.optimize.load import LoadedProblem
from hydro_core.optimize.loop import cycle_of
from hydro_core.optimize.rule import FeedbackShape, Payload
from hydro_core.types.item import ItemType, Row

# Functions that may be called with items that the program never passes to them.


def is_total(fn: Fn, item: ItemType, *, there: bool = False) -> bool:
    """True if the function has a value for every item of the type.

    Null is among the items unless they are `there`.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda x: x is not None and x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long")), is_total(f, parse_ddl("decimal(9, 2)"))
    (True, True)
    >>> f = read_function(ast.parse("lambda x: x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long"))
    False
    """
    if fn.tree is None or len(fn.params) != 1:
        return False
    try:
        return not bind(fn, (item,)).may_fail(there=there)
    except TypeProblem:
        return False


@dataclass(slots=True)
class FunctionUses:
    """The types of items that functions are applied to, in the program and by rules."""

    types: dict[Fn, set[tuple[ItemType, bool]]] = field(default_factory=dict)

    def add(self, fn: Fn, item: ItemType, *, there: bool) -> None:
        """The function may be called with items of the type; if `there`, no item is null."""
        self.types.setdefault(fn, set()).add((item, there))

    def are_total(self, fns: Iterable[Fn]) -> bool:
        """True if all functions have a value for every item that they may be called with."""
        known = self.types.get
        return all(
            known(fn) and all(is_total(fn, item, there=there) for item, there in self.types[fn])
            for fn in fns
        )


# Nodes that may be in a plan, so that no tick fails that the program completes.
#
# Rules treat functions as if they always had a value. But a function that fails on an item fails
# the tick, and `prev(f(a))` calls f a tick earlier than `f(prev(a))` does. So a node that may fail
# is allowed only where the program itself has called its function with all those items by then: the
# items are *covered*. Items are covered at the program's own nodes, and from there in each part of
# a covered stream and in each stream derived from covered items only.


Asked = int | str
"""The key of a call: the arguments of a node, or its shape where it has none."""


@dataclass(frozen=True, slots=True)
class _PairedItems:
    """A call with each item paired with the single item of a stream."""

    key: Asked
    single: ClassId
    by: int | None = None
    """The aggregate that contains the items, if the call is of its results."""


CallKey = Asked | _PairedItems
_SINGLE = Product(PairedItems.SINGLE)


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
    """The calls that are covered, with the classes of their items, if these calls are made."""
    work = _Coverage(problem, space)
    for key, cls in calls:
        work.add(key, cls)
    while work.todo:
        key, cls = work.todo.pop()
        for option in space.of[cls]:
            work.inside(key, space.nodes[option])
        for node in work.readers[cls]:
            if isinstance(key, _PairedItems):
                work.outside_paired(key, node)
            else:
                work.outside(key, node)
        if not isinstance(key, _PairedItems):
            work.in_other_words(key, cls)
    return work.found


class _Coverage:
    """The covered calls, and the facts about calls that imply others."""

    def __init__(self, problem: Problem, space: Space) -> None:
        self.found: set[tuple[CallKey, ClassId]] = set()
        self.todo: list[tuple[CallKey, ClassId]] = []
        self.readers = defaultdict[ClassId, list[ENode]](list)
        for node in space.nodes:
            for cls in dict.fromkeys(node.inputs):
                self.readers[cls].append(node)
        self._kept = {by: columns for by, columns in problem.known("kept")}  # noqa: C416 - pairs
        """By aggregate: the columns that restore the rows that it contains."""
        self._moved = defaultdict[tuple[CallKey, int], list[int]](list)
        """By filter and operator: the filters that may be called earlier."""
        for p, f, q in problem.known("on_keys", "composed"):
            self._moved[p, f].append(q)
        self._parts = defaultdict[Asked, list[tuple[int, int | None]]](list)
        """By call in two parts: its first part, and the call on that part's results."""
        for whole, given, made in problem.known("parts", "moving", "tails", "conjunct"):
            self._parts[whole].append((given, made))
        for whole, one, other, _, _ in problem.known("apart"):
            self._parts[whole] += [(one, None), (other, None)]
        for _, sort, top in problem.known("first_of_key", "first_of_all"):
            # the first items are found by the calls of a sort over all items
            self._parts[sort].append((top, None))
        self._steps = defaultdict[Asked, list[tuple[int, int]]](list)
        """By the call of a sort or a step: the call that goes with it, and the call of both."""
        itself = {sort for (sort,) in problem.known("itself")}
        for step, sort, both in problem.known("steps_in_order"):
            # a sort of items by themselves calls no function
            self._steps[step].append((step if sort in itself else sort, both))
            self._steps[sort].append((step, both))
        self._keyed = defaultdict[Asked, list[tuple[int, int]]](list)
        """By a call on rows without a key: the projection that adds the key, and the same call with
        it.
        """
        for over, key, by_key, _ in problem.known("one_key"):
            self._keyed[over].append((key, by_key))

    def add(self, key: CallKey, cls: ClassId) -> None:
        """The items of the class are covered for this function."""
        if (key, cls) not in self.found:
            self.found.add((key, cls))
            self.todo.append((key, cls))

    def inside(self, key: CallKey, node: ENode) -> None:
        """Adds the calls on parts of a covered stream."""
        if node.shape.cls.passes in (PassedItems.ALL, PassedItems.SO_FAR):
            for cls in node.inputs:
                self.add(key, cls)
        if node.shape.cls == _SINGLE and not isinstance(key, _PairedItems):
            self.add(_PairedItems(key, node.inputs[1]), node.inputs[0])
        if node.payload is not None:
            # a filter may be called with the item before a projection, or with rows of the key of a
            # result
            for other in self._moved[key, node.payload]:
                self.add(other, node.inputs[0])

    def outside(self, key: CallKey, node: ENode) -> None:
        """Adds the calls on streams that have covered items only."""
        cls = node.shape.cls
        if cls == Sum():
            if all((key, read) in self.found for read in node.inputs):
                self.add(key, node.cls)
        elif cls.passes is not PassedItems.NONE and (key, node.inputs[0]) in self.found:
            self.add(key, node.cls)

    def outside_paired(self, key: _PairedItems, node: ENode) -> None:
        """Adds the calls on a part of the items that are paired with a single one, in the same
        tick.
        """
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
        elif passes is PassedItems.SOME and there:
            self.add(key, node.cls)

    def in_other_words(self, key: Asked, cls: ClassId) -> None:
        """Adds the calls that are equal to a call or part of it."""
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
    """True if the node may fail on some item; arguments that are `total` have a value for all."""
    op = node.shape.op
    if isinstance(node.shape.cls, FeedbackShape) or (
        op is not None and op.fails is FailureMode.ON_ITEMS
    ):
        return True
    if op is None or node.payload is None or not node.inputs:
        return False
    args = payloads[node.payload].args
    if any(AGGREGATES[a.function].may_fail for a in _aggregates_in(args)):
        return True
    asks = next(functions_of(args), None) is not None
    return asks and not (op.fails is FailureMode.NEVER and node.payload in total)


def _aggregates_in(args: Args) -> Iterator[Aggregate]:
    yield from (aggregate for _, aggregate in args.get("aggregates") or ())
    yield from filter(None, (aggregate_of(f) for _, f in args.get("functions") or ()))


def call_of(node: ENode) -> tuple[CallKey, ClassId]:
    """The call of the node, and the class of its items."""
    key = node.shape.plain if node.payload is None else node.payload
    return key, node.inputs[int(node.shape.cls == _SINGLE)]


def _of_items(node: ENode) -> bool:
    """True if the node computes aggregates of all its items."""
    cls = node.shape.cls
    return isinstance(cls, ByKey) and cls.summary is Summary.AGGREGATES


# Programs that fail in the same ticks: a proof shows that they are equal where neither fails.
#
# Rules treat functions as if they always had a value. A plan may fail less often than its program,
# so a rule may call a function on fewer items. A program that replaces another as equal may fail
# neither less nor more. So each call that may fail in one has to be *covered* by the calls of the
# other, as above, and the other way round.


AskedCall = tuple[CallKey, ClassId]


def doubtful_in(loaded: LoadedProblem) -> Mapping[str, bool]:
    """By name: the streams of the program whose operators may fail on some item, and whether these
    items may be null.

    Rows of inputs are never null, since a landing has no null rows.
    """
    graph, types = loaded.typed.graph, loaded.typed.types
    rows = [n.id for n in graph.sources.values() if isinstance(types[Endpoint(n.id)].item, Row)]
    there = never_null(graph, rows)
    found = {}
    for by in loaded.problem.definitions:
        node = loaded.origins.get(by.name)
        nullable = node is None or any(end.node not in there for end in node.inputs)
        if _may_fail(loaded.problem, by, there=not nullable):
            found[by.name] = nullable
    return found


def _may_fail(problem: Problem, by: StreamDefinition, *, there: bool) -> bool:
    shape = problem.shapes[by.shape]
    node = ENode(shape, by.payload, tuple(0 for _ in by.inputs), 0)
    total = [by.payload] if by.payload is not None and _is_total(problem, by.payload, there) else []
    if total and isinstance(shape.cls, Projection):
        # a row of values fits its type
        return False
    return may_fail(node, problem.payloads, total)


def _is_total(problem: Problem, payload: int, there: bool) -> bool:
    """True if the functions have a value for every item, or for every item that is not null."""
    fns = tuple(functions_of(problem.payloads[payload].args))
    return bool(fns) and all(
        len(fn.over) == 1 and is_total(fn, fn.over[0], there=there) for fn in fns
    )


@dataclass(slots=True)
class FailingCalls:
    """Calls that may fail behind streams of programs that were loaded together."""

    problem: Problem
    space: Space
    doubtful: Mapping[str, bool]
    """The result of `doubtful_in`, before equal arguments were merged."""
    spelled: Mapping[Any, Sequence[str]]
    """By comparison: its streams as written, then in other equal forms."""
    definitions: Mapping[str, StreamDefinition] = field(init=False)
    conjuncts: dict[CallKey, tuple[int, ...]] = field(init=False)
    """By call: its two parts as written; rules may split it in other ways, with fewer calls."""

    def __post_init__(self) -> None:
        self.definitions = {d.name: d for d in self.problem.definitions}
        self.conjuncts = {}
        for whole, *parts in self.problem.known("conjunct"):
            self.conjuncts.setdefault(whole, tuple(parts))

    def alike(self, one: Hashable, other: Hashable) -> bool:
        """True if the calls behind the one fail in the same ticks as the calls behind the other.

        Any two ways to write them are compared: equal forms depend on the rest of the program, so
        the shortest form of the one need not be that of the other.
        """
        ways = product(self._ways_to_write(one), self._ways_to_write(other))
        return any(mine == theirs or self._fail_alike(mine, theirs) for mine, theirs in ways)

    def _fail_alike(self, one: Collection[str], other: Collection[str]) -> bool:
        cycles, calls = zip(*map(self._of, (one, other)), strict=True)
        if cycles[0] != cycles[1]:
            return False
        if calls[0] == calls[1]:
            return True
        return all(
            mine <= covered(self.problem, self.space, theirs)
            for mine, theirs in (calls, calls[::-1])
        )

    def _ways_to_write(self, compared: Hashable) -> Collection[Collection[str]]:
        """The calls that may fail behind it, in each form that omits none of them."""
        written, *others = map(self._doubtful_behind, self.spelled[compared])
        whole = (found for found in others if len(found) == len(written))
        return dict.fromkeys((written, *whole))

    def _doubtful_behind(self, stream: str) -> frozenset[str]:
        found = reachable([stream], lambda name: self._reads(self.definitions[name]))
        return frozenset(name for name in found if name in self.doubtful)

    def _reads(self, by: StreamDefinition) -> Iterator[str]:
        return (self.problem.cuts.get(name, name) for name in by.inputs)

    def _of(self, streams: Collection[str]) -> tuple[frozenset[object], set[AskedCall]]:
        """The cycles within a tick among these streams, which are compared as they are, and the
        calls.
        """
        cycles: set[object] = set()
        calls: set[AskedCall] = set()
        for name in streams:
            by = self.definitions[name]
            inputs = classes_read(self.problem, self.space, by)
            shape = self.problem.shapes[by.shape]
            if isinstance(shape.cls, FeedbackShape):
                cycles.add((by.shape, inputs))
            elif inputs:
                call = call_of(ENode(shape, by.payload, inputs, -1))
                calls |= set(self._in_parts(call, there=not self.doubtful[name]))
        return frozenset(cycles), calls

    def _in_parts(self, call: AskedCall, *, there: bool) -> Iterator[AskedCall]:
        """The parts of a call: the first, and the second on items for which the first holds."""
        todo = [call]
        while todo:
            key, cls = todo.pop()
            parts = self.conjuncts.get(key)
            passing = () if parts is None else self._that_pass(parts[0], cls)
            if parts is not None and passing:
                asked = zip(parts, (cls, passing[0]), strict=True)
                todo += [(p, of) for p, of in asked if not _is_total(self.problem, p, there)]
            else:
                yield key, cls

    def _that_pass(self, key: CallKey, cls: ClassId) -> tuple[ClassId, ...]:
        """The items of a class that pass a filter, if there is such a stream."""
        nodes = (n for n in self.space.nodes if n.payload == key and n.inputs == (cls,))
        return tuple(n.cls for n in nodes if n.shape.is_itemwise)
