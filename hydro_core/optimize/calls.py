"""Which nodes may be in a plan, so that no tick fails that the program completes.

Rules speak of streams, as if functions always had a value. One that fails on an item fails the
tick, and `prev(f(a))` asks f a tick earlier than `f(prev(a))` does. So a node that may fail is only
allowed where the program itself has shown its function all those items by then: the items are
*covered*. They are covered at the program's own nodes; from there to what is part of a covered
stream, and to what is made of covered items only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import ByKey, Product, Sum
from hydro_core.catalog.over_functions import aggregate_of
from hydro_core.catalog.properties import Passes
from hydro_core.catalog.spec import Aggregate, Args, Fails, functions_of
from hydro_core.catalog.variants import Meets, Summary
from hydro_core.optimize.semi_naive import cycle_of
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
_InParts = Mapping[Asked, list[tuple[int, int | None]]]
"""By what is asked in one: its first part, and what is asked of that part's results."""


@dataclass(slots=True)
class _Covered:
    space: Space
    readers: Mapping[ClassId, list[ENode]]
    found: set[tuple[CallKey, ClassId]] = field(default_factory=set)
    todo: list[tuple[CallKey, ClassId]] = field(default_factory=list)

    def add(self, key: CallKey, cls: ClassId) -> None:
        """The items of the class are covered for this function."""
        if (key, cls) not in self.found:
            self.found.add((key, cls))
            self.todo.append((key, cls))


_Steps = Mapping[Asked, list[tuple[int, int]]]
"""By what a sort or a step asks: what is asked beside it, and what asks both."""
_SINGLE = Product(Meets.SINGLE)


def permitted(problem: Problem, space: Space) -> Space:
    """The space without the nodes that might fail a tick that the program completes."""
    total = frozenset(args[0] for name, args in problem.facts if name == "total")
    fails = [may_fail(node, problem.payloads, total) for node in space.nodes]
    known = _spread(problem, space, fails)
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
        return (_key(node), node.inputs[_asked(node)]) in known
    if cls.new:
        reads = (len(node.inputs) - 1) // 3
        return (cycle_of(name), node.inputs[:reads]) in own
    return (name, node.inputs) in own


def _spread(problem: Problem, space: Space, fails: list[bool]) -> set[tuple[CallKey, ClassId]]:
    own = (space.nodes[i] for i in own_nodes(problem, space) if fails[i])
    return covered(problem, space, [call_of(n) for n in own if n.inputs])


def covered(
    problem: Problem, space: Space, calls: Iterable[tuple[CallKey, ClassId]]
) -> set[tuple[CallKey, ClassId]]:
    """What is asked of which items by then, where these calls are made."""
    readers: dict[ClassId, list[ENode]] = {}
    for node in space.nodes:
        for cls in dict.fromkeys(node.inputs):
            readers.setdefault(cls, []).append(node)
    work = _Covered(space, readers)
    for key, cls in calls:
        work.add(key, cls)
    moved, parts, kept = _moved(problem), _parts(problem), _kept(problem)
    steps, keyed = _steps(problem), _keyed(problem)
    while work.todo:
        key, cls = work.todo.pop()
        for option in space.of[cls]:
            _inside(work, key, space.nodes[option], moved)
        for node in readers.get(cls, ()):
            if isinstance(key, _Paired):
                _outside_paired(work, key, node, kept)
            else:
                _outside(work, key, node)
        if not isinstance(key, _Paired):
            _in_parts(work, key, cls, parts)
            _in_steps(work, key, cls, steps)
            _of_one_key(work, key, cls, keyed)
    return work.found


def _inside(
    work: _Covered, key: CallKey, node: ENode, moved: Mapping[tuple[CallKey, int], list[int]]
) -> None:
    """What is part of a covered stream is covered."""
    if node.shape.cls.passes in (Passes.ALL, Passes.SO_FAR):
        for cls in node.inputs:
            work.add(key, cls)
    if node.shape.cls == _SINGLE and not isinstance(key, _Paired):
        work.add(_Paired(key, node.inputs[1]), node.inputs[0])
    if node.payload is not None:
        # a filter may ask what an item was made of instead, or rows with the key of a result
        for other in moved.get((key, node.payload), ()):
            work.add(other, node.inputs[0])


def _in_steps(work: _Covered, key: Asked, cls: ClassId, steps: _Steps) -> None:
    """What goes through items in an order of its own asks what a sort and a step have asked."""
    for beside, both in steps.get(key, ()):
        if (beside, cls) in work.found:
            work.add(both, cls)


def _of_one_key(work: _Covered, key: Asked, cls: ClassId, keyed: _Steps) -> None:
    """Rows that get a key are asked what they were asked without."""
    for with_key, of_key in keyed.get(key, ()):
        for node in work.readers.get(cls, ()):
            if node.payload == with_key:
                work.add(of_key, node.cls)


def _in_parts(work: _Covered, key: Asked, cls: ClassId, parts: _InParts) -> None:
    """Parts ask what the whole asks; what is made of them is asked of nothing else."""
    readers = work.readers.get(cls, ())
    whole = any(node.payload == key and _of_items(node) for node in readers)
    for given, made in parts.get(key, ()):
        work.add(given, cls)
        for node in readers if made is not None else ():
            # the sum of some items may be beyond 64 bits where that of all is not
            of_all = whole or not _of_items(node)
            if node.payload == given and made is not None and of_all:
                work.add(made, node.cls)


def _outside(work: _Covered, key: CallKey, node: ENode) -> None:
    """What has covered items only is covered."""
    cls = node.shape.cls
    if cls == Sum():
        if all((key, read) in work.found for read in node.inputs):
            work.add(key, node.cls)
    elif cls.passes is not Passes.NONE and (key, node.inputs[0]) in work.found:
        work.add(key, node.cls)


def _outside_paired(work: _Covered, key: _Paired, node: ENode, kept: Mapping[int, int]) -> None:
    """What is asked of items with a single one is asked of some of them, in the same tick."""
    passes, payload = node.shape.cls.passes, node.payload
    if node.shape.cls == _SINGLE:
        if key.by is None and node.inputs[1] == key.single and (key, node.inputs[0]) in work.found:
            work.add(key.key, node.cls)
    elif key.by is not None:
        if payload == kept[key.by]:
            work.add(replace(key, by=None), node.cls)
    elif payload in kept:
        work.add(replace(key, by=payload), node.cls)
    elif passes is Passes.SOME and (key, node.inputs[0]) in work.found:
        work.add(key, node.cls)


def _kept(problem: Problem) -> Mapping[int, int]:
    """The columns that give back the rows that an aggregate keeps, by the aggregate."""
    found = {}
    for name, args in problem.facts:
        if name == "kept":
            by, columns = (a for a in args if isinstance(a, int))
            found[by] = columns
    return found


def _parts(problem: Problem) -> _InParts:
    found: dict[Asked, list[tuple[int, int | None]]] = {}
    for name, args in problem.facts:
        numbers = [a for a in args if isinstance(a, int)]
        if name in {"parts", "moving", "tails", "conjunct"}:
            found.setdefault(numbers[0], []).append((numbers[1], numbers[2]))
        elif name == "apart":
            found.setdefault(numbers[0], []).extend((n, None) for n in numbers[1:3])
        elif name in {"first_of_key", "first_of_all"}:
            # the first items are found by what a sort asks of all
            found.setdefault(numbers[1], []).append((numbers[2], None))
    return found


def _steps(problem: Problem) -> _Steps:
    """What goes through items in an order of its own asks what the sort and the step ask."""
    itself = {args[0] for name, args in problem.facts if name == "itself"}
    found: dict[Asked, list[tuple[int, int]]] = {}
    for name, args in problem.facts:
        if name == "steps_in_order":
            step, sort, both = (a for a in args if isinstance(a, int))
            # the sort of items by themselves asks nothing
            beside = step if sort in itself else sort
            found.setdefault(step, []).append((beside, both))
            found.setdefault(sort, []).append((step, both))
    return found


def _keyed(problem: Problem) -> _Steps:
    """What asks of rows with a key what is asked of them without: what gives it, and what asks."""
    found: dict[Asked, list[tuple[int, int]]] = {}
    for name, args in problem.facts:
        if name == "one_key":
            over, key, by_key, _ = (a for a in args if isinstance(a, int))
            found.setdefault(over, []).append((key, by_key))
    return found


def _moved(problem: Problem) -> Mapping[tuple[CallKey, int], list[int]]:
    """The filters that may be asked earlier, by the filter and the operator."""
    found: dict[tuple[CallKey, int], list[int]] = {}
    for name, args in problem.facts:
        if name in {"on_keys", "composed"}:
            p, f, q = (a for a in args if isinstance(a, int))
            found.setdefault((p, f), []).append(q)
    return found


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
    return _key(node), node.inputs[_asked(node)]


def _key(node: ENode) -> Asked:
    return node.shape.plain if node.payload is None else node.payload


def _asked(node: ENode) -> int:
    """The input whose items are asked about."""
    return int(node.shape.cls == _SINGLE)


def _of_items(node: ENode) -> bool:
    """Whether it makes aggregates, of all its items."""
    cls = node.shape.cls
    return isinstance(cls, ByKey) and cls.summary is Summary.AGGREGATES
