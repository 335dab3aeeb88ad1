"""Joins on keys of other names: the right side is renamed, and the key has one name.

`a -> join(right=b, on={"id": "ref"})` is `a -> join(right=c, on="id")` with
`c = b -> rename(id="ref")`, so whoever comes later knows one form of a join. A column of the right
that has the name of a left key already makes way: it gets the suffix of the join, under which it
comes out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.inputs import sides_of_key
from hydro_core.catalog.itemwise import RENAME
from hydro_core.catalog.spec import Args
from hydro_core.ir.builder import free_name
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.types.item import ItemType, Row
from hydro_core.types.stream import StreamType


def with_one_name(typed: Typed) -> Typed:
    """The program in which the key columns of every join have one name on both sides.

    >>> from hydro_core.compile import compile_text
    >>> program = '''a = source("id long"); b = source("ref long, v long")
    ... a -> join(right=b, on={"id": "ref"}) -> out'''
    >>> [node.op.name for node in compile_text(program).graph]
    ['source', 'source', 'rename', 'join', 'sink']
    """
    if not any(_has_names_apart(node) for node in typed.graph):
        return typed
    graph, taken = typed.graph, set(typed.graph.nodes)
    nodes = [made for node in graph for made in _of_one_name(typed, node, taken)]
    types = dict(typed.types)
    for node in nodes:
        if node.id not in graph.nodes:
            right = typed.types[node.inputs[0]]
            item = node.op.result(node.args, (right.item,))
            types[Endpoint(node.id)] = StreamType(item, right.order, right.single)
    return Typed(Graph.of(nodes, graph.name, graph.warnings), types)


def _has_names_apart(node: Node) -> bool:
    """Whether it does; a condition looks at the columns under the names that they have."""
    if node.args.get("where") is not None:
        return False
    return any(arg.kind == "key" and _pairs(node.args[arg.name]) for arg in node.op.args)


def _pairs(on: tuple[str, ...] | tuple[tuple[str, str], ...] | None) -> bool:
    return any(not isinstance(name, str) for name in on or ())


def _of_one_name(typed: Typed, node: Node, taken: set[NodeId]) -> Iterator[Node]:
    """The node, after one that renames what enters on the right where it joins other names."""
    if not _has_names_apart(node):
        yield node
        return
    left, right = node.inputs
    on, of_right = sides_of_key(node.args["on"])
    args = node.args.with_(on=on)
    renames = _renames(typed.types[right].item, on, of_right, node.args["suffix"])
    if "since" in args:
        called = {old: new for new, old in renames}
        args = args.with_(since=called.get(args["since"], args["since"]))
    if renames:
        name = free_name(f"{node.id}_right", taken)
        taken.add(name)
        yield Node(name, RENAME, Args((("renames", renames),)), (right,), node.span)
        right = Endpoint(name)
    yield replace(node, args=args, inputs=(left, right))


def _renames(
    item: ItemType, on: Collection[str], of_right: Collection[str], suffix: str | None
) -> tuple[tuple[str, str], ...]:
    """The new name and the old one of what a join calls otherwise than the right side does."""
    keys = [(new, old) for new, old in zip(on, of_right, strict=True) if new != old]
    names = item.names if isinstance(item, Row) else ()
    others = set(names) - set(of_right)
    # Of rows that are only asked for nobody sees how they are called; the others have a suffix.
    away = {name: free_name(name + (suffix or ""), names) for name in others & set(on)}
    return (*keys, *((new, old) for old, new in sorted(away.items())))
