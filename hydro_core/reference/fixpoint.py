"""Cycles within a tick: the least fixpoint of the operators of one recursive component.

Definition (`naive`): every stream of the cycle starts empty, and all operators are evaluated
repeatedly until no stream changes. All operators of a cycle are monotone on bags (a blocking input
cannot be part of one), so every round adds items, none is removed, and the result is the least bag
that satisfies the program.

Evaluation (`semi_naive`): an operator gets only the new items of its inputs, and the gain of its
output follows from its `SemiNaive`. It computes the same bag: in any order of gains, the streams
stay below the least fixpoint, and have reached it when nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from hydro_core.analysis.strata import shown
from hydro_core.catalog.spec import Refusal, endless_cycle
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.definitions.registry import SemiNaive, definition_of
from hydro_core.settings import Settings
from hydro_core.types.values import canonical


class Multiset:
    """A bag that holds every distinct item once, with its count: in a cycle the counts of few items
    may become large.
    """

    __slots__ = ("_entries", "size")

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[Any, int]] = {}
        self.size = 0
        """The sum of all counts."""

    def __bool__(self) -> bool:
        return self.size > 0

    def add(self, bag: Bag, times: int = 1) -> None:
        """Adds every item of the bag `times` times."""
        for item in bag:
            self._put(canonical(item), item, times)

    def merge(self, other: Multiset) -> None:
        """Adds all items of another one."""
        for form, (item, count) in other._entries.items():
            self._put(form, item, count)

    def without(self, other: Multiset) -> Multiset:
        """`a ∸ b`."""
        left = Multiset()
        for form, (item, count) in self._entries.items():
            taken = other._entries.get(form, (None, 0))[1]
            if count > taken:
                left._put(form, item, count - taken)
        return left

    def distinct(self) -> Bag:
        """Every item once."""
        return Bag(item for item, _ in self._entries.values())

    def classes(self) -> Iterator[tuple[int, Bag]]:
        """The distinct items by their counts."""
        found: dict[int, list[Any]] = {}
        for item, count in self._entries.values():
            found.setdefault(count, []).append(item)
        return ((count, Bag(items)) for count, items in found.items())

    def bag(self) -> Bag:
        """Every item with its count of copies."""
        return Bag(item for item, count in self._entries.values() for _ in range(count))

    def _put(self, form: Hashable, item: Any, count: int) -> None:
        before = self._entries.get(form)
        self._entries[form] = (item, count) if before is None else (before[0], before[1] + count)
        self.size += count


PortBags = Mapping[Endpoint, Bag]
Evaluate = Callable[[Node, Sequence[Bag]], PortBags]
"""Evaluates a node on these inputs, in this tick."""


class EndlessCycle(Exception):  # noqa: N818 - it becomes a Diagnostic, it is not one
    """The reason why the evaluation of a cycle was stopped."""

    def __init__(self, refusal: Refusal, node: Node) -> None:
        super().__init__(refusal.reason)
        self.refusal, self.node = refusal, node


Fixpoint = Callable[[Sequence[Node], PortBags, Evaluate, Settings], PortBags]


def naive(cycle: Sequence[Node], given: PortBags, apply: Evaluate, settings: Settings) -> PortBags:
    """The streams of the cycle by the definition; `given` are the streams that enter it."""
    found: dict[Endpoint, Bag] = {}
    for _ in range(settings.max_iterations):
        before = dict(found)
        for node in cycle:
            inputs = [given.get(e) or found.get(e, EMPTY) for e in node.inputs]
            found.update(apply(node, inputs))
        if before and all(found[e].same_as(before[e]) for e in found):
            return found
        if sum(map(len, found.values())) > settings.max_cycle_items:
            raise _too_many("items", cycle, settings)
    raise _too_many("rounds", cycle, settings)


def semi_naive(
    cycle: Sequence[Node], given: PortBags, apply: Evaluate, settings: Settings
) -> PortBags:
    """The same streams; each round reads the gains of the round before."""
    streams = _Streams(cycle, given)
    ordered = in_flow_order(cycle)
    for _ in range(settings.max_iterations):
        for node in ordered:
            if streams.has_news(node):
                streams.publish(node, _gain(node, streams, apply))
                if streams.size > settings.max_cycle_items:
                    raise _too_many("items", cycle, settings)
        if not any(map(streams.has_news, ordered)):
            return {endpoint: items.bag() for endpoint, items in streams.found.items()}
    raise _too_many("rounds", cycle, settings)


Gain = dict[Endpoint, Multiset]


class _Streams:
    """The streams of a cycle, and the part of them that each node has read."""

    def __init__(self, cycle: Sequence[Node], given: PortBags) -> None:
        own = {node.id for node in cycle}
        self.found: Gain = {}
        self.size = 0
        self.started: set[NodeId] = set()
        self.inner = {n.id: [e.node in own for e in n.inputs] for n in cycle}
        """For each input, True if it comes from the cycle itself."""
        self.read = {n.id: [given[e] if e in given else Bag() for e in n.inputs] for n in cycle}
        """The part of each input that has been read; inputs from outside are read whole from the
        start.
        """
        self._news = {n.id: [Multiset() for _ in n.inputs] for n in cycle}
        self._readers: dict[Endpoint, list[tuple[NodeId, int]]] = {}
        for node in cycle:
            for position, endpoint in enumerate(node.inputs):
                self._readers.setdefault(endpoint, []).append((node.id, position))

    def has_news(self, node: Node) -> bool:
        """True if the node has unread items; always true at first."""
        return node.id not in self.started or any(self._news[node.id])

    def take_news(self, node: Node) -> list[Multiset]:
        news, self._news[node.id] = self._news[node.id], [Multiset() for _ in node.inputs]
        return news

    def publish(self, node: Node, gain: Gain) -> None:
        """Adds the gain of the node's outputs, and forwards it to their readers."""
        self.started.add(node.id)
        for endpoint, items in gain.items():
            self.size += items.size
            self.found.setdefault(endpoint, Multiset()).merge(items)
            for reader, position in self._readers.get(endpoint, ()):
                self._news[reader][position].merge(items)


def _gain(node: Node, streams: _Streams, apply: Evaluate) -> Gain:
    """The gain of the node's outputs from the new items of its inputs."""
    news, read, inner = streams.take_news(node), streams.read[node.id], streams.inner[node.id]
    growth = definition_of(node.op.name).growth_of(node.args)
    if growth is SemiNaive.FIRST and any(inner[1:]):
        growth = SemiNaive.ANEW
    if node.id not in streams.started or growth is SemiNaive.ANEW:
        for bag, new in zip(read, news, strict=True):
            if new:
                bag.grow(new.bag())
        whole = _counted(apply(node, read))
        return {e: items.without(streams.found.get(e, Multiset())) for e, items in whole.items()}
    match growth:
        case SemiNaive.INPUT:
            return {Endpoint(node.id): news[0]}
        case SemiNaive.ONCE:
            output = _counted(apply(node, [news[0].distinct()]))
            return {e: items.without(streams.found[e]) for e, items in output.items()}
        case SemiNaive.TOGETHER:
            return _gain_of_each(node, news, [EMPTY] * len(news), apply)
        case _:
            return _gain_of_each(node, news, read, apply)


def _gain_of_each(node: Node, news: Sequence[Multiset], read: list[Bag], apply: Evaluate) -> Gain:
    """`op(x + dx, y + dy) = op(x, y) + op(dx, y) + op(x + dx, dy)`; `op(n·x, y) = n·op(x, y)`."""
    gain: Gain = {}
    for position, new in enumerate(news):
        for times, items in new.classes():
            inputs = [*read[:position], items, *read[position + 1 :]]
            for endpoint, bag in apply(node, inputs).items():
                gain.setdefault(endpoint, Multiset()).add(bag, times)
        # An operator with `TOGETHER` growth has read nothing that its gain depends on.
        if new and read[position] is not EMPTY:
            read[position].grow(new.bag())
    return gain


def _counted(outputs: PortBags) -> Gain:
    gain: Gain = {}
    for endpoint, bag in outputs.items():
        gain[endpoint] = Multiset()
        gain[endpoint].add(bag)
    return gain


def in_flow_order(cycle: Collection[Node]) -> list[Node]:
    """Each node after those it reads, as far as a cycle allows; its entries come first."""
    own = {node.id: node for node in cycle}
    readers: dict[NodeId, list[NodeId]] = {node: [] for node in own}
    for node in cycle:
        for endpoint in node.inputs:
            if endpoint.node in own:
                readers[endpoint.node].append(node.id)
    entries = [n.id for n in cycle if any(e.node not in own for e in n.inputs)]
    left: list[NodeId] = []
    seen: set[NodeId] = set()
    for start in (*reversed(entries), *own):
        left += _post_order(start, readers, seen)
    return [own[node] for node in reversed(left)]


def _post_order(
    start: NodeId, readers: Mapping[NodeId, Sequence[NodeId]], seen: set[NodeId]
) -> Iterator[NodeId]:
    """The nodes reachable from `start` that are unseen: readers before the nodes that they read."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(readers[start]))]
    while path:
        node, rest = path[-1]
        following = next((r for r in rest if r not in seen), None)
        if following is None:
            path.pop()
            yield node
        else:
            seen.add(following)
            path.append((following, iter(readers[following])))


def _too_many(what: str, cycle: Sequence[Node], settings: Settings) -> EndlessCycle:
    name = {"rounds": "max_iterations", "items": "max_cycle_items"}[what]
    limit = getattr(settings, name)
    ordered = in_flow_order(cycle)
    path = " -> ".join(shown(node) for node in (*ordered, ordered[0]))
    return EndlessCycle(endless_cycle(path, f"{limit:,} {what}", name), ordered[0])
