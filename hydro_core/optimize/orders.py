"""Orders of joins: a tree of joins by columns, with equations for every order along its keys.

A tree of inner joins in which only the joined columns have the same names is the natural join of
its leaves, and so is the join of some of them, which is a stream of its own. Each way to compute
such a stream from two others is an equation: it is their join, with the columns in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import PairedItems, Product
from hydro_core.catalog.combine import JOIN
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.egraph import Problem, StreamDefinition
from hydro_core.optimize.rule import Payload, Shape
from hydro_core.types.item import ItemType, Order, Row

MOST_LEAVES = 4
"""Five leaves have 90 ways to be joined, and each way is made incremental."""

LeafSet = tuple[int, ...]
"""Some leaves of a tree, by their positions."""
SideLeaves = tuple[LeafSet, LeafSet]
"""Two sets of leaves, whose streams a join combines."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Joins of leaves: their stream, its columns, and those of each leaf."""

    root: Endpoint
    leaves: tuple[Endpoint, ...]
    columns: tuple[str, ...]
    has: tuple[frozenset[str], ...]

    def of(self, part: LeafSet) -> frozenset[str]:
        """The columns of some of the leaves."""
        return frozenset().union(*(self.has[i] for i in part))


def trees_of(typed: Typed) -> Iterator[Tree]:
    """The largest trees of three joined leaves or more."""
    inner: set[Endpoint] = set()
    joins = [n for n in typed.graph if _is_plain(typed, n)]
    for node in joins:
        inner |= {e for e in node.inputs if _is_plain(typed, typed.graph[e.node])}
    for node in joins:
        if Endpoint(node.id) in inner:
            continue
        leaves = tuple(_leaves(typed, Endpoint(node.id)))
        tree = _tree(typed, Endpoint(node.id), leaves)
        if tree is not None and 3 <= len(leaves) <= MOST_LEAVES:
            yield tree


def with_orders(problem: Problem, typed: Typed, shapes: Mapping[str, Shape]) -> Problem:
    """The problem with the streams of all joined parts of its trees, and their equations."""
    work = _Orders(list(problem.definitions), {p: i for i, p in enumerate(problem.payloads)}, [])
    known = {d.name for d in problem.definitions}
    for tree in trees_of(typed):
        if {str(tree.root), *map(str, tree.leaves)} <= known:
            work.add(tree)
    if not work.facts:
        return problem
    return replace(
        problem,
        shapes={**problem.shapes, SELECT.name: shapes[SELECT.name]},
        definitions=tuple(work.definitions),
        payloads=tuple(work.payloads),
        facts=(*problem.facts, *work.facts),
    )


@dataclass(slots=True)
class _Orders:
    definitions: list[StreamDefinition]
    payloads: dict[Payload, int]
    facts: list[tuple[str, tuple[int | str, ...]]]

    def add(self, tree: Tree) -> None:
        """Adds all ways to join a tree, smaller parts first."""
        everything = tuple(range(len(tree.leaves)))
        names: dict[LeafSet, str] = {(i,): str(leaf) for i, leaf in enumerate(tree.leaves)}
        for size in range(2, len(tree.leaves) + 1):
            for part in combinations(everything, size):
                ways = [w for w in _ways(tree, part) if w[0] in names and w[1] in names]
                if not ways:
                    continue
                made = [(*self._arguments(tree, part, w), names[w[0]], names[w[1]]) for w in ways]
                if part == everything:
                    names[part] = str(tree.root)
                else:
                    leaves = ", ".join(str(tree.leaves[i]) for i in part)
                    names[part] = self._define(f"{tree.root} of {leaves}", *made[0])
                self.facts += [("joined", (names[part], *way)) for way in made]

    def _define(self, name: str, join: int, select: int, left: str, right: str) -> str:
        """Adds a stream for some leaves, which the program does not have."""
        joined = f"{name} joined"
        self.definitions.append(StreamDefinition(joined, JOIN.name, join, (left, right)))
        self.definitions.append(StreamDefinition(name, SELECT.name, select, (joined,)))
        return name

    def _arguments(self, tree: Tree, part: LeafSet, way: SideLeaves) -> tuple[int, int]:
        shared = tree.of(way[0]) & tree.of(way[1])
        on = tuple(c for c in tree.columns if c in shared)
        kept = tuple(c for c in tree.columns if c in tree.of(part))
        # the order differs from the program's, so facts about its joins do not apply to these
        join = Args((("how", "inner"), ("on", on), ("suffix", None), ("where", None)))
        select = Args((("columns", kept), ("computed", ())))
        one, other = (
            self.payloads.setdefault(Payload(args), len(self.payloads)) for args in (join, select)
        )
        return one, other


def _ways(tree: Tree, part: LeafSet) -> Iterator[SideLeaves]:
    """The splits into two parts that share a column; the part with the first leaf comes first."""
    first, rest = part[0], part[1:]
    for size in range(len(rest)):
        for more in combinations(rest, size):
            one = (first, *more)
            other = tuple(i for i in rest if i not in more)
            if tree.of(one) & tree.of(other):
                yield one, other


def _is_plain(typed: Typed, node: Node) -> bool:
    """True if it is an inner join of unordered rows by columns."""
    if node.cls != Product(PairedItems.KEY) or node.args["suffix"] is not None:
        return False
    streams = [typed.types[e] for e in (*node.inputs, Endpoint(node.id))]
    return node.args["on"] is not None and all(
        isinstance(s.item, Row) and s.order is Order.NONE for s in streams
    )


def _leaves(typed: Typed, end: Endpoint) -> Iterator[Endpoint]:
    node = typed.graph[end.node]
    if not _is_plain(typed, node):
        yield end
        return
    for stream in node.inputs:
        yield from _leaves(typed, stream)


def _tree(typed: Typed, root: Endpoint, leaves: Sequence[Endpoint]) -> Tree | None:
    """The tree, if columns of one name have one type."""
    types: dict[str, ItemType] = {}
    has = []
    for leaf in leaves:
        item = typed.types[leaf].item
        if not isinstance(item, Row):
            return None
        for column in item.fields:
            if types.setdefault(column.name, column.type) != column.type:
                return None
        has.append(frozenset(item.names))
    output = typed.types[root].item
    return Tree(root, tuple(leaves), output.names, tuple(has)) if isinstance(output, Row) else None
