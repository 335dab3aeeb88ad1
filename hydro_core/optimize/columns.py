"""Dead columns: what nobody reads is dropped before it is stored.

Which columns of a stream are read is found from the outputs backwards, the least fixpoint. An
operator that looks at whole rows (a comparison, a sort, an output) reads all of them, and so does a
function that cannot be read or hands its row on. A sum narrows all its parts, so they stay alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    Before,
    ByKey,
    Ends,
    History,
    Linear,
    Matching,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
    Running,
    Sum,
    Window,
)
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.results import aggregates
from hydro_core.catalog.spec import Aggregate, Args, State, functions_of
from hydro_core.catalog.variants import Compares, Gives, Meets
from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import Bind, Param, Part, nodes
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.types.item import Row

ReadColumns = frozenset[str] | None
"""The columns that are read; None is all of them."""
NONE: frozenset[str] = frozenset()


def without_dead_columns(typed: Typed, *, everywhere: bool = False) -> Graph:
    """The graph with a `select` before every history of rows of which some columns are not read.

    With `everywhere` also before every aggregate, and as far up as rows are only widened or
    narrowed: what a history would be stored as, were it there. A function that makes a column which
    nobody reads is then not called.
    """
    needed = _needed(typed)
    work = _Narrowing(typed, needed, dict(typed.graph.nodes), everywhere)
    for node in typed.graph:
        wanted = needed.get(Endpoint(node.id))
        if _stores(node) and wanted is not None:
            wanted = _together(typed, needed, node.inputs[0])
        if wanted is not None and (_stores(node) or isinstance(node.cls, Sum)):
            work.narrow(node, [wanted] * len(node.inputs))
        if everywhere and aggregates(node.cls):
            work.narrow(node, _reads(typed, node, wanted))
    if work.nodes == typed.graph.nodes:
        return typed.graph
    return typed.graph.with_nodes(work.nodes.values())


def _together(typed: Typed, needed: Mapping[Endpoint, ReadColumns], read: Endpoint) -> ReadColumns:
    """What all histories of one stream are read for: they are stored once."""
    result: ReadColumns = NONE
    for node in typed.graph.readers(read.node):
        if _stores(node) and read in node.inputs:
            result = _join(result, needed[Endpoint(node.id)])
    return result


@dataclass(slots=True)
class _Narrowing:
    typed: Typed
    needed: Mapping[Endpoint, ReadColumns]
    nodes: dict[NodeId, Node]
    everywhere: bool

    def narrow(self, node: Node, wanted: Sequence[ReadColumns]) -> None:
        """Makes the node read only these columns of its inputs."""
        inputs = tuple(
            end if columns is None else self._selected(end, columns)
            for end, columns in zip(node.inputs, wanted, strict=True)
        )
        self.nodes[node.id] = self.nodes[node.id].with_(inputs=inputs)

    def _hands_on(self, end: Endpoint, kept: Sequence[str]) -> bool:
        """Whether the stream has these columns as its input has them, row by row."""
        node = self.typed.graph[end.node]
        if not isinstance(node.cls, Projection):
            return False
        item = self.typed.types[node.inputs[0]].item
        if not isinstance(item, Row):
            return False
        made = node.cls.columns(node.args, item.names)
        renames = any(isinstance(of, str) and of != name for name, of in made.items())
        return not renames and all(made.get(name) == name for name in kept)

    def _has_just(self, end: Endpoint, wanted: frozenset[str]) -> bool:
        """Whether the stream is narrowed to these columns itself."""
        node = self.typed.graph[end.node]
        if _stores(node):
            return _together(self.typed, self.needed, node.inputs[0]) == wanted
        return isinstance(node.cls, Sum) and self.needed[end] == wanted

    def _selected(self, end: Endpoint, wanted: frozenset[str]) -> Endpoint:
        item = self.typed.types[end].item
        if not isinstance(item, Row):
            return end
        kept = tuple(n for n in item.names if n in wanted) or item.names[:1]
        while self.everywhere and kept != item.names and self._hands_on(end, kept):
            end = self.typed.graph[end.node].inputs[0]
        if self.typed.types[end].item == Row(tuple(f for f in item.fields if f.name in kept)):
            return end
        if self._has_just(end, wanted):
            return end
        source = self.typed.graph[end.node]
        name = f"{end.node}_{end.port}_read" if end.port else f"{end.node}_read"
        args = Args((("columns", kept), ("computed", ())))
        number = 1
        while name in self.nodes and self.nodes[name].args != args:
            number += 1
            name = f"{end.node}_read_{number}"
        if name not in self.nodes:
            self.nodes[name] = Node(name, SELECT, args, (end,), source.span)
        return Endpoint(name)


def _stores(node: Node) -> bool:
    """Whether the node keeps rows of many ticks as they are."""
    return node.spec.state in (State.HISTORY, State.WINDOW, State.RECENT)


def _needed(typed: Typed) -> Mapping[Endpoint, ReadColumns]:
    """Which columns of every stream are read."""
    found: dict[Endpoint, ReadColumns] = dict.fromkeys(typed.types, NONE)
    changed = True
    while changed:
        changed = False
        for node in typed.graph:
            own = found.get(Endpoint(node.id)) if node.op.outputs == "one" else None
            for end, wanted in zip(node.inputs, _reads(typed, node, own), strict=True):
                both = _join(found[end], wanted)
                if both != found[end]:
                    found[end] = both
                    changed = True
    for end, columns in found.items():
        item = typed.types[end].item
        if columns == NONE and isinstance(item, Row):
            found[end] = frozenset(item.names[:1])  # a row has at least one
    return found


def _join(a: ReadColumns, b: ReadColumns) -> ReadColumns:
    return None if a is None or b is None else a | b


def _reads(typed: Typed, node: Node, own: ReadColumns) -> tuple[ReadColumns, ...]:
    """What a node reads of its inputs, if `own` is read of it."""
    everything: tuple[ReadColumns, ...] = (None,) * len(node.inputs)
    items = [i for e in node.inputs if isinstance(i := typed.types[e].item, Row)]
    if len(items) < len(node.inputs):
        return everything
    match node.cls:
        case Window(timed=True):
            return (_join(own, frozenset([node.args["by"]])),)
        case Sum() | History() | Window() | Before():
            return (own,) * len(items)
        case PerItem(gives) if gives is not Gives.RESULT and _asks_functions_alone(node):
            asked = _all_of(functions_of(node.args))
            keeps = gives in (Gives.SAME, Gives.SOME)
            return (_join(own, asked) if keeps else asked,)
        case Projection() as cls:
            return (_behind_columns(node, cls, items[0], own),)
        case ByKey() | Running() if aggregates(node.cls):
            return (columns_of_aggregate(node.args),) * len(items)
        case Product(meets=Meets.KEY) | Matching(compares=Compares.KEYS):
            return _of_sides(node, own, items)
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return everything
        case _:
            assert_never(node.cls)


def _asks_functions_alone(node: Node) -> bool:
    """Whether nothing but its functions says what the node looks at."""
    return all(arg.kind == "function" for arg in node.op.args)


def _behind_columns(node: Node, cls: Projection, item: Row, own: ReadColumns) -> ReadColumns:
    """What is read of the row to give `own`: what is renamed, dropped or replaced must be there."""
    asked = _all_of([*_named(node), *functions_of(node.args)])
    if cls.only:
        return asked
    if own is None:
        return None
    made = cls.columns(node.args, item.names)
    sources = (source if isinstance(source := made.get(n), str) else n for n in own)
    return _join(frozenset(sources), asked)


def _named(node: Node) -> Iterator[str]:
    """The columns of the row that the arguments name."""
    for arg in node.op.args:
        match arg.kind:
            case "named_columns":
                yield from node.args[arg.name]
            case "renames":
                yield from (old for _, old in node.args[arg.name])


def _of_sides(node: Node, own: ReadColumns, items: list[Row]) -> tuple[ReadColumns, ...]:
    on = node.args["on"]
    if on is None or node.args["suffix"] is not None:
        return (None, None)
    keys = frozenset(on)
    if isinstance(node.cls, Matching):
        return (_join(own, keys), keys)
    if own is None:
        return (None, None)
    return tuple(keys | (own & frozenset(item.names)) for item in items)


def columns_of_aggregate(args: Args) -> ReadColumns:
    """The columns of its rows that an aggregate looks at; None where it may be all."""
    return _all_of([*(args["by"] or ()), *_arguments(args["aggregates"])])


def _arguments(aggregates: Iterable[tuple[str, Aggregate]]) -> Iterable[str | Fn]:
    return (argument for _, a in aggregates for argument in a.arguments)


def _all_of(parts: Iterable[str | Fn]) -> ReadColumns:
    result: ReadColumns = NONE
    for part in parts:
        result = _join(result, columns_of(part) if isinstance(part, Fn) else frozenset({part}))
    return result


def columns_of(fn: Fn) -> ReadColumns:
    """The columns of its row that a function reads; None where it may read others."""
    if fn.tree is None or len(fn.params) != 1:
        return None
    row, parts = Param(fn.params[0]), list(nodes(fn.tree))
    asked = [p.step for p in parts if isinstance(p, Part) and p.base == row]
    columns = frozenset(step for step in asked if isinstance(step, str))
    is_hidden = any(isinstance(p, Bind) and row.name in p.names for p in parts)
    is_whole = len(asked) < parts.count(row) or any(isinstance(step, int) for step in asked)
    return None if is_hidden or is_whole else columns
