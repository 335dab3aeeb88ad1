"""Which nodes may be in a plan, so that no tick fails that the program completes.

Rules speak of streams, as if functions always had a value. One that fails on an item fails the
tick, and `prev(f(a))` asks f a tick earlier than `f(prev(a))` does. So a node that may fail is only
allowed where the program itself has shown its function all those items by then: the items are
*covered*. They are covered at the program's own nodes; from there to what is part of a covered
stream, and to what is made of covered items only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.optimize.loops import PREFIX
from hydro_core.optimize.shape import Payload
from hydro_core.optimize.space import ClassId, ENode, Problem, Space
from hydro_core.optimize.views import is_total

SAME_ITEMS = frozenset(
    {"unique", "bag", "sort", "sort_by_key", "identity", "next_stratum", "inspect"}
)
"""Shapes that give the items that they get."""
HOLDS = frozenset({*SAME_ITEMS, "persist", "window", "chain", "union"})
"""Shapes whose every input is part of the output, in each tick."""
PARTS = frozenset(
    {
        *SAME_ITEMS,
        *("filter", "partition", "difference", "anti_join", "join:semi", "join:anti"),
        *("delta", "limit", "latest", "prev", "old", "persist", "window"),
    }
)
"""Shapes that give nothing but items of their first input, of this tick or earlier."""
SUMS = frozenset({"chain", "union"})
FAILING = frozenset({"cross_singleton", "flatten", "persist_mut", "persist_mut_keyed"})
"""Shapes that may fail without a function."""

Key = int | str
"""What is asked: the arguments of a node, or its shape where it has none."""


@dataclass(slots=True)
class _Covered:
    space: Space
    readers: Mapping[ClassId, list[ENode]]
    found: set[tuple[Key, ClassId]] = field(default_factory=set)
    todo: list[tuple[Key, ClassId]] = field(default_factory=list)

    def add(self, key: Key, cls: ClassId) -> None:
        """The items of the class are covered for this function."""
        if (key, cls) not in self.found:
            self.found.add((key, cls))
            self.todo.append((key, cls))


def permitted(problem: Problem, space: Space) -> Space:
    """The space without the nodes that might fail a tick that the program completes."""
    payloads = problem.payloads
    fails = [_may_fail(node, payloads) for node in space.nodes]
    covered = _spread(problem, space, fails)
    own = {(d.shape, tuple(_classes(problem, space, d.inputs))) for d in problem.definitions}
    of = tuple(
        tuple(i for i in options if not fails[i] or _is_allowed(space.nodes[i], covered, own))
        for options in space.of
    )
    return replace(space, of=of)


def _is_allowed(
    node: ENode,
    covered: set[tuple[Key, ClassId]],
    own: set[tuple[str, tuple[ClassId, ...]]],
) -> bool:
    name = node.shape.name
    if name.startswith("loop:"):
        return (name, node.inputs) in own
    if name.startswith(PREFIX):
        reads = (len(node.inputs) - 1) // 3
        return ("loop:" + name.removeprefix(PREFIX), node.inputs[:reads]) in own
    return (_key(node), node.inputs[_asked(node)]) in covered


def _spread(problem: Problem, space: Space, fails: list[bool]) -> set[tuple[Key, ClassId]]:
    readers: dict[ClassId, list[ENode]] = {}
    for node in space.nodes:
        for cls in dict.fromkeys(node.inputs):
            readers.setdefault(cls, []).append(node)
    work = _Covered(space, readers)
    place = {(n.shape.name, n.payload, n.inputs): i for i, n in enumerate(space.nodes)}
    for d in problem.definitions:
        inputs = tuple(_classes(problem, space, d.inputs))
        position = place.get((d.shape, d.payload, inputs))
        if position is not None and fails[position] and inputs:
            node = space.nodes[position]
            work.add(_key(node), inputs[_asked(node)])
    moved = _moved(problem)
    while work.todo:
        key, cls = work.todo.pop()
        for option in space.of[cls]:
            _inside(work, key, space.nodes[option], moved)
        for node in readers.get(cls, ()):
            _outside(work, key, node)
    return work.found


def _inside(
    work: _Covered, key: Key, node: ENode, moved: Mapping[tuple[Key, int], list[int]]
) -> None:
    """What is part of a covered stream is covered."""
    if _plain(node) in HOLDS:
        for cls in node.inputs:
            work.add(key, cls)
    if node.payload is not None:
        # a filter of keys may ask the rows instead: they have the keys of the results
        for other in moved.get((key, node.payload), ()):
            work.add(other, node.inputs[0])


def _outside(work: _Covered, key: Key, node: ENode) -> None:
    """What has covered items only is covered."""
    name = _plain(node)
    if name in SUMS:
        if all((key, cls) in work.found for cls in node.inputs):
            work.add(key, node.cls)
    elif name in PARTS and (key, node.inputs[0]) in work.found:
        work.add(key, node.cls)


def _moved(problem: Problem) -> Mapping[tuple[Key, int], list[int]]:
    """The filters of keys that may be asked earlier, by the filter and the keyed operator."""
    found: dict[tuple[Key, int], list[int]] = {}
    for name, args in problem.facts:
        if name == "on_keys":
            p, f, q = (a for a in args if isinstance(a, int))
            found.setdefault((p, f), []).append(q)
    return found


def _may_fail(node: ENode, payloads: tuple[Payload, ...]) -> bool:
    """Whether the node may fail on some item."""
    name = _plain(node)
    if name.startswith(("loop:", PREFIX)) or name in FAILING:
        return True
    if node.payload is None or not node.inputs:
        return False
    args = payloads[node.payload].args
    if name in {"filter", "inspect"} and _has_value(args["f"]):
        return False
    sums = any(a.function == "sum" for _, a in args.get("aggregates") or ())
    return sums or any(True for _ in _functions(tuple(args.values())))


def _has_value(fn: Fn) -> bool:
    return fn.tree is not None and len(fn.params) == 1 and is_total(fn.tree)


def _functions(value: Any) -> Iterator[Fn]:
    if isinstance(value, Fn):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _functions(part)
    elif is_dataclass(value) and hasattr(value, "arguments"):
        yield from _functions(value.arguments)


def _key(node: ENode) -> Key:
    return _plain(node) if node.payload is None else node.payload


def _asked(node: ENode) -> int:
    """The input whose items are asked about; a state has been made of items that were."""
    name = _plain(node)
    return 1 if name.endswith("_from") or name == "cross_singleton" else 0


def _plain(node: ENode) -> str:
    return node.shape.name.removesuffix("!").removesuffix(":global")


def _classes(problem: Problem, space: Space, names: Iterable[str]) -> Iterator[ClassId]:
    for name in names:
        yield space.named[problem.cuts.get(name, name)]
