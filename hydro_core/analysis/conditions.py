"""Joins with a condition, as plans have them: made of joins without one.

The pairs of a join with a condition are a filter of the pairs of equal keys. Whether a row has a
match depends on what it is and on the other side, so the rows that have one are those that are in
some pair: they are found by their columns, and a row stays, or is padded, that is not among them.

    pairs = left -> join(right=others, on=key) -> filter(condition)
    left -> join(right=pairs, on=all of the left's columns, how="anti") -> padded

So who plans, optimizes or runs a program knows no conditions: how pairs and matches change, what
they look up, and by what they are cut, holds for these as well. What a program means is not defined
by this: the reference goes by the definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from hydro_core.analysis.bounds import (
    SharedParts,
    bounds_of,
    column,
    equal_columns,
    shared_parts,
)
from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.combine import JOIN, UNION
from hydro_core.catalog.inputs import KEPT, sides_of_key
from hydro_core.catalog.io import NULL
from hydro_core.catalog.itemwise import FILTER, IDENTITY, RENAME, SELECT, WITH_COLUMNS
from hydro_core.catalog.spec import Args, OpSpec
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Make
from hydro_core.functions.views import ITEM, applied, row_view
from hydro_core.ir.builder import free_name
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.types.common import common_type
from hydro_core.types.item import OPEN, ItemType, Row, nullable


def without_conditions(typed: Typed) -> Typed:
    """The program, in which no join has a condition; a node keeps its name.

    >>> from hydro_core.compile import compile_text
    >>> program = '''a = source("k long, v long"); b = source("k long, w long")
    ... a -> join(right=b, on="k", where=lambda l, r: l.v < r.w) -> out'''
    >>> [node.op.name for node in without_conditions(compile_text(program).typed).graph]
    ['source', 'source', 'join', 'filter', 'sink']
    """
    graph = typed.graph
    if not any(map(_has_condition, graph)):
        return typed
    taken = set(graph.nodes)
    nodes = [made for node in graph for made in _without_condition(typed, node, taken)]
    return infer(Graph.of(nodes, graph.name, graph.warnings), typed.schemas)


def bounds_seen(typed: Typed) -> Iterator[str]:
    """What the conditions of joins say of how far apart rows are that match, for people."""
    for node in filter(_has_condition, typed.graph):
        sides = tuple(typed.types[end].item for end in node.inputs)
        for bounds in bounds_of(node.args["where"], *sides):
            yield f"`{node.id}` brings together rows with {bounds}"


def _has_condition(node: Node) -> bool:
    return node.op is JOIN and node.args.get("where") is not None


def _without_condition(typed: Typed, node: Node, taken: set[NodeId]) -> Iterator[Node]:
    left, right = (
        (typed.types[end].item for end in node.inputs) if _has_condition(node) else (OPEN, OPEN)
    )
    if OPEN in (left, right):
        yield node
    elif isinstance(left, Row) and isinstance(right, Row):
        output = typed.types[Endpoint(node.id)].item
        yield from _Expansion(node, (left, right), output, taken).nodes()
    else:
        yield _without_pairs(node, left)


def _without_pairs(node: Node, left: ItemType) -> Node:
    """The join where a side never has an item: no row has a match, and none of the right stays."""
    how, read = node.args["how"], node.inputs[:1]
    if how == "anti":
        return node.with_(op=IDENTITY, args=Args(), inputs=read)
    if how == "semi" and isinstance(left, Row):
        never = function_of(Const(False), (ITEM,))
        return node.with_(op=FILTER, args=Args((("f", never),)), inputs=read)
    return node.with_(op=NULL, args=Args(), inputs=())


@dataclass(frozen=True, slots=True)
class _Side:
    """An input of the join."""

    read: Endpoint
    row: Row
    called: Mapping[str, str]
    """What its columns are called in the pairs: there they have the values that they have here."""
    becomes: Mapping[str, str]
    """What its columns are called in the output."""


@dataclass(slots=True)
class _Expansion:
    """The nodes that stand for a join with a condition."""

    node: Node
    rows: tuple[Row, Row]
    output: ItemType
    taken: set[NodeId]
    made: list[Node] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """The nodes, the last of which is called as the join."""
        how = self.node.args["how"]
        pairs, sides = self._pairs()
        if how in ("semi", "anti"):
            self._matched(pairs, sides[0], how)
        else:
            parts = [self._joined(pairs, sides)]
            parts += [self._padded(pairs, sides[i]) for i in sorted(KEPT[how])]
            if len(parts) > 1:
                self._add("parts", UNION, {}, *parts)
        last = self.made.pop()
        return [*self.made, replace(last, id=self.node.id)]

    def _add(self, name: str, op: OpSpec, args: Mapping[str, Any], *reads: Endpoint) -> Endpoint:
        free = free_name(f"{self.node.id}_{name}", self.taken)
        self.taken.add(free)
        given = {arg.name: args.get(arg.name, arg.default) for arg in op.args}
        node = Node(free, op, Args(tuple(given.items())), reads, self.node.span)
        self.made.append(node)
        return Endpoint(free)

    def _pairs(self) -> tuple[Endpoint, tuple[_Side, _Side]]:
        """The pairs that match, and the sides as they stand in them."""
        keys = sides_of_key(self.node.args["on"] or ())
        names = {*self.rows[0].names, *self.rows[1].names}
        sides = (self._side(0, keys, names), self._side(1, keys, names))
        if keys[0]:
            key = keys[0]
            reads = [self._keyed(side, own, key) for side, own in zip(sides, keys, strict=True)]
        else:
            parts = _shared_parts(self.node.args["where"], *self.rows)
            key = tuple(_new_name("key", names) for _ in parts)
            reads = [self._with_parts(side, i, key, parts) for i, side in enumerate(sides)]
        joined = self._add("met", JOIN, {"on": key, "how": "inner"}, *reads)
        views = tuple(row_view(side.row, side.called) for side in sides)
        item = Row(tuple(replace(f, name=s.called[f.name]) for s in sides for f in s.row.fields))
        condition = applied(self.node.args["where"], Make("tuple", views), item)
        return self._add("pairs", FILTER, {"f": condition}, joined), sides

    def _side(self, i: int, keys: tuple[tuple[str, ...], ...], names: set[str]) -> _Side:
        """An input, its columns under names that no other column of the pairs has."""
        row, own, other = self.rows[i], keys[i], keys[1 - i]
        called, becomes = {}, {}
        for name in row.names:
            if name in own:
                at = own.index(name)
                becomes[name] = keys[0][at]
                mine, theirs = row.column(name), self.rows[1 - i].column(other[at])
                as_it_is = mine == theirs or mine == common_type(mine, theirs)  # type: ignore[arg-type]
                called[name] = keys[0][at] if as_it_is else _new_name(name, names)
            else:
                clashes = i == 1 and name in {*self.rows[0].names, *keys[0]}
                becomes[name] = name + (self.node.args["suffix"] or "") if clashes else name
                called[name] = _new_name(name, names) if clashes else name
        return _Side(self.node.inputs[i], row, called, becomes)

    def _keyed(self, side: _Side, own: tuple[str, ...], key: tuple[str, ...]) -> Endpoint:
        """The rows of a side as they are joined: each column under its name in the pairs."""
        read, names = side.read, list(zip(own, key, strict=True))
        computed = [
            (side.called[name], column(name))
            for name, joined in names
            if side.called[name] != joined
        ]
        if computed:
            read = self._add("keyed", WITH_COLUMNS, {"computed": tuple(computed)}, read)
        return self._renamed(read, dict(side.called) | dict(names))

    def _with_parts(
        self, side: _Side, i: int, key: tuple[str, ...], parts: Sequence[SharedParts]
    ) -> Endpoint:
        """The rows with what rows that match have in common; a row of the left may stand for
        several.
        """
        made = [part.right if i else part.left for part in parts]
        computed = (tuple(zip(key, functions, strict=True)) for functions in product(*made))
        reads = [self._add("keyed", WITH_COLUMNS, {"computed": of}, side.read) for of in computed]
        read = self._add("stretches", UNION, {}, *reads) if len(reads) > 1 else reads[0]
        return self._renamed(read, side.called)

    def _renamed(self, read: Endpoint, names: Mapping[str, str]) -> Endpoint:
        """The rows with other names for columns: the new by the old."""
        renames = tuple((new, old) for old, new in names.items() if new != old)
        return self._add("named", RENAME, {"renames": renames}, read) if renames else read

    def _joined(self, pairs: Endpoint, sides: tuple[_Side, _Side]) -> Endpoint:
        """The pairs as rows of the output."""
        on = sides_of_key(self.node.args["on"] or ())
        left, right = sides
        columns = {name: name for name in on[0]}
        columns |= {left.called[n]: left.becomes[n] for n in left.row.names if n not in on[0]}
        columns |= {right.called[n]: right.becomes[n] for n in right.row.names if n not in on[1]}
        there = {*left.called.values(), *right.called.values(), *on[0]}
        if there != set(columns) or not on[0]:
            pairs = self._add("row", SELECT, {"columns": tuple(columns)}, pairs)
        return self._renamed(pairs, columns)

    def _matched(self, pairs: Endpoint, side: _Side, how: str) -> Endpoint:
        """The rows of a side that are, or are not, in a pair."""
        own = tuple(side.called[name] for name in side.row.names)
        found = self._add("part", SELECT, {"columns": own}, pairs)
        found = self._renamed(found, {new: old for old, new in side.called.items()})
        return self._add(how, JOIN, {"on": side.row.names, "how": how}, side.read, found)

    def _padded(self, pairs: Endpoint, side: _Side) -> Endpoint:
        """The rows of a side that are in no pair, the columns of the other null."""
        assert isinstance(self.output, Row)
        alone = self._renamed(self._matched(pairs, side, "anti"), side.becomes)
        nulls = [f for f in self.output.fields if f.name not in side.becomes.values()]
        if nulls:
            null = [function_of(Const(None), (ITEM,), returns=nullable(f.type)) for f in nulls]
            computed = tuple((f.name, fn) for f, fn in zip(nulls, null, strict=True))
            alone = self._add("padded", WITH_COLUMNS, {"computed": computed}, alone)
        return self._add("row", SELECT, {"columns": self.output.names}, alone)


def _new_name(name: str, names: set[str]) -> str:
    """A name that no column has, noted as taken."""
    free = free_name(name, names)
    names.add(free)
    return free


def _shared_parts(condition: Fn, left: Row, right: Row) -> Sequence[SharedParts]:
    """By what rows that match are brought together: equal columns, else one that is near another,
    else all of them.
    """
    equal = equal_columns(condition, left, right)
    if equal:
        return [SharedParts((column(mine),), (column(theirs),)) for mine, theirs in equal]
    near = (shared_parts(bounds, left) for bounds in bounds_of(condition, left, right))
    found = min(filter(None, near), key=lambda parts: len(parts.left), default=None)
    anything = (function_of(Const(0), (ITEM,)),)
    return [found or SharedParts(anything, anything)]
