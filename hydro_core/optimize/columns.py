"""Columns: unread ones are pruned, and compared programs get one order of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    ByKey,
    DistinctItems,
    ExternalItems,
    History,
    ItemEffect,
    KeyMatch,
    Linear,
    MatchCondition,
    OverTime,
    PairedItems,
    PerItem,
    PerKey,
    PerPosition,
    PreviousTick,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
)
from hydro_core.catalog.group import aggregates
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.spec import Aggregate, Args, State, functions_of
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Bind, Fn, Make, Param, Part, nodes
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    add_node,
    components,
    is_cycle,
    outputs,
    predecessors,
)
from hydro_core.types.item import Row

# Dead columns: a column that no reader needs is dropped before it is stored.
#
# The columns that are read follow from the outputs backwards, as a least fixpoint. An operator that
# reads whole rows (a comparison, a sort, an output) reads all of them, and so does a function
# without a tree or one that forwards its row. A sum prunes all its inputs alike.


ReadColumns = frozenset[str] | None
"""The columns that are read; None: all of them."""
NONE: frozenset[str] = frozenset()


def without_dead_columns(typed: Typed, *, everywhere: bool = False) -> Graph:
    """The graph with a `select` before every history that stores unread columns.

    With `everywhere` it has one also before every aggregate, as far up as operators only add or
    drop columns: as if there were a history. A function that computes an unread column is then not
    called.
    """
    needed = _needed(typed)
    work = _ColumnPruning(typed, needed, dict(typed.graph.nodes), everywhere)
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
    """The columns read from all histories of one stream: they share one table."""
    result: ReadColumns = NONE
    for node in typed.graph.readers(read.node):
        if _stores(node) and read in node.inputs:
            result = _join(result, needed[Endpoint(node.id)])
    return result


@dataclass(slots=True)
class _ColumnPruning:
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
        """True if a row-wise operator forwards these columns under their names and renames none."""
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
        """True if the stream itself is pruned to these columns."""
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
        return Endpoint(add_node(self.nodes, Node(name, SELECT, args, (end,), source.span)))


def _stores(node: Node) -> bool:
    """True if the node stores rows of many ticks unchanged."""
    return node.spec.state in (State.HISTORY, State.WINDOW, State.RECENT)


def _needed(typed: Typed) -> Mapping[Endpoint, ReadColumns]:
    """By stream: the columns that are read."""
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
            found[end] = frozenset(item.names[:1])  # a row has at least one column
    return found


def _join(a: ReadColumns, b: ReadColumns) -> ReadColumns:
    return None if a is None or b is None else a | b


def _reads(typed: Typed, node: Node, own: ReadColumns) -> tuple[ReadColumns, ...]:
    """The columns that a node reads of each input, if `own` is read of its output."""
    everything: tuple[ReadColumns, ...] = (None,) * len(node.inputs)
    items = [i for e in node.inputs if isinstance(i := typed.types[e].item, Row)]
    if len(items) < len(node.inputs):
        return everything
    match node.cls:
        case Window(timed=True):
            return (_join(own, frozenset([node.args["by"]])),)
        case Sum() | History() | Window() | PreviousTick():
            return (own,) * len(items)
        case PerItem(gives) if gives is not ItemEffect.RESULT and _asks_functions_alone(node):
            asked = _all_of(functions_of(node.args))
            keeps = gives in (ItemEffect.SAME, ItemEffect.SOME)
            return (_join(own, asked) if keeps else asked,)
        case Projection() as cls:
            return (_behind_columns(node, cls, items[0], own),)
        case ByKey() | RunningResult() if aggregates(node.cls):
            return (columns_of_aggregate(node.args),) * len(items)
        case Product(meets=PairedItems.KEY) | KeyMatch(compares=MatchCondition.KEYS):
            return _of_sides(node, own, items)
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return everything
        case _:
            assert_never(node.cls)


def _asks_functions_alone(node: Node) -> bool:
    """True if the node's output depends on the item through its functions alone."""
    return all(arg.kind == "function" for arg in node.op.args)


def _behind_columns(node: Node, cls: Projection, item: Row, own: ReadColumns) -> ReadColumns:
    """The columns read of the row to give `own`: sources of these columns, and arguments of
    functions.
    """
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
    if isinstance(node.cls, KeyMatch):
        return (_join(own, keys), keys)
    if own is None:
        return (None, None)
    return tuple(keys | (own & frozenset(item.names)) for item in items)


def columns_of_aggregate(args: Args) -> ReadColumns:
    """The columns of its rows that an aggregate reads; None if it may read all."""
    return _all_of([*(args["by"] or ()), *_arguments(args["aggregates"])])


def _arguments(aggregates: Iterable[tuple[str, Aggregate]]) -> Iterable[str | Fn]:
    return (argument for _, a in aggregates for argument in a.arguments)


def _all_of(parts: Iterable[str | Fn]) -> ReadColumns:
    result: ReadColumns = NONE
    for part in parts:
        result = _join(result, columns_of(part) if isinstance(part, Fn) else frozenset({part}))
    return result


def columns_of(fn: Fn) -> ReadColumns:
    """The columns of its row that a function reads; None if it may read others."""
    if fn.tree is None or len(fn.params) != 1:
        return None
    row, parts = Param(fn.params[0]), list(nodes(fn.tree))
    asked = [p.step for p in parts if isinstance(p, Part) and p.base == row]
    columns = frozenset(step for step in asked if isinstance(step, str))
    is_hidden = any(isinstance(p, Bind) and row.name in p.names for p in parts)
    is_whole = len(asked) < parts.count(row) or any(isinstance(step, int) for step in asked)
    return None if is_hidden or is_whole else columns


# One order of columns for compared programs, since the order of named parts has no meaning.
#
# `aggregate(n=count(), total=sum("v"))` and the same with `total` first give rows that differ only
# in the order of columns. In the variant built here, named parts and columns have one order, as far
# down as streams are read by column names. Where the order may matter, a `select` restores a
# stream's own: at outputs, sorts, and functions of whole rows. Streams that feed themselves keep
# their order.


_KEYS = frozenset({"columns", "key"})
"""Kinds of arguments that name columns in an order without meaning."""
Ranks = Mapping[str, int]
"""The positions of columns in the common order, by their names."""


def ranks_of(programs: Iterable[Typed]) -> Ranks:
    """The common order: columns in the order in which the programs name them first."""
    found: dict[str, int] = {}
    for typed in programs:
        for stream in typed.types.values():
            for name in stream.item.names if isinstance(stream.item, Row) else ():
                found.setdefault(name, len(found))
    return found


def with_columns_in_order(
    typed: Typed, ranks: Ranks
) -> tuple[Graph, Mapping[Endpoint, Endpoint]] | None:
    """The program with named parts and input columns in the common order; None if it has that
    already.

    The second part gives, by stream, a stream of the result with the columns in the program's
    order.
    """
    work = _Work(typed, ranks)
    reads = predecessors(typed.graph)
    for group in components(reads):
        cyclic = is_cycle(group, reads)
        for name in group:
            # members of a cycle read streams that are not added yet
            work.add(typed.graph[name], as_written=cyclic)
    if work.nodes == dict(typed.graph.nodes):
        return None
    return typed.graph.with_nodes(work.nodes.values()), dict(work.streams())


class _StreamColumns(NamedTuple):
    """The stream's endpoint in the result, and its columns there."""

    end: Endpoint
    names: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    typed: Typed
    ranks: Ranks
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    at: dict[Endpoint, _StreamColumns] = field(default_factory=dict)
    """By stream of rows: its endpoint and columns in the result."""
    given_back: dict[Endpoint, Endpoint] = field(default_factory=dict)
    """By stream: its endpoint with the program's order of columns, where a `select` restores
    that.
    """

    def add(self, node: Node, *, as_written: bool) -> None:
        """Adds the node, with its named parts in order or unchanged."""
        if not as_written and self._goes_by_names(node) and self._in_order(node):
            return
        inputs = tuple(map(self.restored, node.inputs))
        self.nodes[node.id] = node.with_(inputs=inputs)
        for end in outputs(node):
            row = self.row(end)
            if row is not None:
                self.at[end] = _StreamColumns(end, row.names)

    def streams(self) -> Iterator[tuple[Endpoint, Endpoint]]:
        """The streams that exist with their own order of columns, each with its endpoint there."""
        for end in self.typed.types:
            placed, row = self.at.get(end), self.row(end)
            if placed is None or row is None:
                yield end, end
            elif placed.names == row.names:
                yield end, placed.end
            elif end in self.given_back:
                yield end, self.given_back[end]

    def row(self, end: Endpoint) -> Row | None:
        """The row type of a stream of the program; None if its items are no rows."""
        stream = self.typed.types.get(end)
        return stream.item if stream is not None and isinstance(stream.item, Row) else None

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names in the common order."""
        return tuple(sorted(names, key=lambda name: (self.ranks.get(name, len(self.ranks)), name)))

    def restored(self, end: Endpoint) -> Endpoint:
        """The stream with its columns in the program's order."""
        row = self.row(end)
        return end if row is None or end not in self.at else self._columns(end, row.names)

    def aligned(self, end: Endpoint) -> _StreamColumns:
        """The stream with its columns in the common order."""
        names = self.sorted(self.at[end].names)
        return _StreamColumns(self._columns(end, names), names)

    def _columns(self, end: Endpoint, names: tuple[str, ...]) -> Endpoint:
        placed, own = self.at[end], self.row(end)
        if placed.names == names or own is None:
            return placed.end
        name = self._name(end, names == own.names)
        span = self.typed.graph[end.node].span
        args = Args((("columns", names), ("computed", ())))
        self.nodes.setdefault(name, Node(name, SELECT, args, (placed.end,), span))
        if names == own.names:
            self.given_back[end] = Endpoint(name)
        return Endpoint(name)

    def _name(self, end: Endpoint, is_own: bool) -> NodeId:
        """The program's name for a stream with the program's columns, and another name for any
        other.
        """
        return str(end) if is_own else f"{end} in order"

    def _goes_by_names(self, node: Node) -> bool:
        """True if the node reads rows and refers to their columns by names only."""
        if any(end not in self.at for end in node.inputs):
            return False
        by_name = all(columns_of(fn) is not None for fn in functions_of(node.args))
        return by_name and all(arg.kind != "order" for arg in node.op.args)

    def _in_order(self, node: Node) -> bool:  # noqa: PLR0911 - a closed set
        """Adds the node with its named parts in order; false if it depends on more than these."""
        match node.cls:
            case ExternalItems():
                return self._source(node)
            case Projection():
                return self._projection(node, node.cls)
            case PerItem(gives) if gives in (ItemEffect.SAME, ItemEffect.SOME, ItemEffect.ROUTED):
                return self._as_its_input(node, self.at[node.inputs[0]])
            case PerItem(ItemEffect.ONE):
                return self._made_row(node)
            case ByKey() | RunningResult() if aggregates(node.cls):
                return self._aggregate(node)
            case Product(meets=PairedItems.KEY):
                return self._product(node)
            case Sum() | KeyMatch(compares=MatchCondition.ITEMS):
                return self._aligned(node)
            case (
                KeyMatch()
                | DistinctItems()
                | History()
                | Window()
                | PreviousTick()
                | TickDifference(signed=False)
            ):
                return self._as_its_input(node, self.at[node.inputs[0]])
            case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
                return False
            case _:
                assert_never(node.cls)

    def _source(self, node: Node) -> bool:
        row = self.row(Endpoint(node.id))
        if row is None or not isinstance(node.args.get("name"), str):
            return False
        fields = {f.name: f for f in row.fields}
        names = self.sorted(fields)
        item = Row(tuple(fields[name] for name in names))
        self._put(node.with_(args=node.args.with_(schema=item)), names)
        return True

    def _projection(self, node: Node, cls: Projection) -> bool:
        """A row of columns and computed ones, as a `select` that names each in order."""
        (read,), own = node.inputs, self.row(Endpoint(node.id))
        before = self.row(read)
        if own is None or before is None:
            return False
        placed, names = self.at[read], self.sorted(own.names)
        made = cls.columns(node.args, before.names)
        plain = all(of == name for name, of in made.items())
        if plain and names == placed.names:
            self.at[Endpoint(node.id)] = placed
        elif placed == _StreamColumns(read, before.names) and names == own.names:
            self._put(node, names)
        else:
            computed = tuple((name, _column(made[name])) for name in names)
            args = Args((("columns", ()), ("computed", computed)))
            self._put(node.with_(op=SELECT, args=args, inputs=(placed.end,)), names)
        return True

    def _made_row(self, node: Node) -> bool:
        fn = node.args["f"]
        if not isinstance(fn.tree, Make) or fn.tree.kind != "row" or fn.returns is not None:
            return False
        parts = fn.tree.fields
        if parts is None or len(parts) != len(fn.tree.parts):
            return False
        names = self.sorted(map(str, parts))
        tree = Make("row", tuple(parts[name] for name in names), names)
        made = fn if names == tuple(parts) else function_of(tree, fn.params, like=fn)
        read = self.at[node.inputs[0]].end
        self._put(node.with_(args=node.args.with_(f=made), inputs=(read,)), names)
        return True

    def _aggregate(self, node: Node) -> bool:
        given: Mapping[str, Aggregate] = dict(node.args["aggregates"])
        by, names = node.args["by"], self.sorted(given)
        keys = None if by is None else self.sorted(by)
        made = tuple((name, _counted(given[name])) for name in names)
        args = node.args.with_(by=keys, aggregates=made)
        inputs = tuple(self.at[end].end for end in node.inputs)
        self._put(node.with_(args=args, inputs=inputs), (*(keys or ()), *names))
        return True

    def _product(self, node: Node) -> bool:
        """The key, then the columns of either side: those of the second may get a suffix."""
        on, own = node.args["on"], self.row(Endpoint(node.id))
        if not _are_names(on) or own is None:
            return False
        keys, taken = self.sorted(on), {*on}
        names = list(keys)
        for end in node.inputs:
            rest = [name for name in self.at[end].names if name not in on]
            names += [
                f"{name}{node.args['suffix'] or ''}" if name in taken else name for name in rest
            ]
            taken |= {*rest}
        inputs = tuple(self.at[end].end for end in node.inputs)
        self._put(node.with_(args=node.args.with_(on=keys), inputs=inputs), tuple(names))
        return True

    def _aligned(self, node: Node) -> bool:
        """Items of several streams that are added up or compared, so all have one order of
        columns.
        """
        placed = [self.aligned(end) for end in node.inputs]
        names = placed[0].names
        if any(other.names != names for other in placed):
            return False
        self._put(node.with_(inputs=tuple(p.end for p in placed)), names)
        return True

    def _as_its_input(self, node: Node, placed: _StreamColumns) -> bool:
        """The items are those of the first input; other inputs are read by column names."""
        by_name = {
            arg.name: self.sorted(node.args[arg.name])
            for arg in node.op.args
            if arg.kind in _KEYS and _are_names(node.args[arg.name])
        }
        inputs = (placed.end, *(self.at[end].end for end in node.inputs[1:]))
        self._put(node.with_(args=node.args.with_(**by_name), inputs=inputs), placed.names)
        return True

    def _put(self, node: Node, names: tuple[str, ...]) -> None:
        """Adds a node that gives rows with these columns."""
        ends = outputs(node)
        own = self.row(ends[0])
        name = self._name(Endpoint(node.id), own is not None and own.names == names)
        self.nodes[name] = node.with_(id=name)
        for end in ends:
            self.at[end] = _StreamColumns(Endpoint(name, end.port), names)


def _are_names(columns: tuple[object, ...] | None) -> bool:
    """True if there are columns, with the same names on either side."""
    return bool(columns) and all(isinstance(name, str) for name in columns or ())


def _column(of: str | Fn) -> Fn:
    return of if isinstance(of, Fn) else function_of(Part(Param(ITEM), of), (ITEM,))


def _counted(aggregate: Aggregate) -> Aggregate:
    """The aggregate; one that counts distinct rows has its columns sorted, since it ignores their
    order.
    """
    columns = aggregate.arguments
    if not AGGREGATES[aggregate.function].over_distinct or not all(
        isinstance(c, str) for c in columns
    ):
        return aggregate
    return replace(aggregate, arguments=tuple(sorted(map(str, columns))))
