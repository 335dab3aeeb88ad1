"""One order of columns where programs are compared: that of named parts means nothing by itself.

`aggregate(n=count(), total=sum("v"))` and the same with `total` first give rows that are equal but
for the order of their columns. So in the program that is made here named parts stand in one order,
and so do columns, as far down as streams are read by the names of columns. Where the order may
matter, a `select` gives a stream its own back: at outputs, sorts, functions of whole rows. What
feeds itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.classes import (
    Before,
    ByKey,
    Distinct,
    Ends,
    Given,
    Growth,
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
from hydro_core.catalog.spec import Aggregate, Args, functions_of
from hydro_core.catalog.variants import Compares, Gives, Meets
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Make, Param, Part
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import components, is_cycle, outputs, predecessors
from hydro_core.optimize.columns import columns_of
from hydro_core.types.item import Row

_KEYS = frozenset({"columns", "key"})
"""Kinds of arguments that name columns whose order means nothing."""
Ranks = Mapping[str, int]
"""The places of columns in the one order, by their names."""


def ranks_of(programs: Iterable[Typed]) -> Ranks:
    """The order in which the programs name columns: what is written so stays as it is."""
    found: dict[str, int] = {}
    for typed in programs:
        for stream in typed.types.values():
            for name in stream.item.names if isinstance(stream.item, Row) else ():
                found.setdefault(name, len(found))
    return found


def with_columns_in_order(
    typed: Typed, ranks: Ranks
) -> tuple[Graph, Mapping[Endpoint, Endpoint]] | None:
    """The program with its named parts, and the columns of its inputs, in one order, and where the
    streams are in it that have their columns in their own; None where they are.
    """
    work = _Work(typed, ranks)
    reads = predecessors(typed.graph)
    for group in components(reads):
        cyclic = is_cycle(group, reads)
        for name in group:
            # what comes round is not there yet
            work.add(typed.graph[name], as_written=cyclic)
    if work.nodes == dict(typed.graph.nodes):
        return None
    return typed.graph.with_nodes(work.nodes.values()), dict(work.streams())


class _Placed(NamedTuple):
    """Where a stream is, and its columns there."""

    end: Endpoint
    names: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    typed: Typed
    ranks: Ranks
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    at: dict[Endpoint, _Placed] = field(default_factory=dict)
    """Where the streams of rows are."""
    given_back: dict[Endpoint, Endpoint] = field(default_factory=dict)
    """Where those are that have their own order again."""

    def add(self, node: Node, *, as_written: bool) -> None:
        """Adds the node, its named parts in order, or just as it stands."""
        if not as_written and self._goes_by_names(node) and self._in_order(node):
            return
        inputs = tuple(map(self.restored, node.inputs))
        self.nodes[node.id] = node.with_(inputs=inputs)
        for end in outputs(node):
            row = self.row(end)
            if row is not None:
                self.at[end] = _Placed(end, row.names)

    def streams(self) -> Iterator[tuple[Endpoint, Endpoint]]:
        """The streams that have their columns in their own order somewhere, and where."""
        for end in self.typed.types:
            placed, row = self.at.get(end), self.row(end)
            if placed is None or row is None:
                yield end, end
            elif placed.names == row.names:
                yield end, placed.end
            elif end in self.given_back:
                yield end, self.given_back[end]

    def row(self, end: Endpoint) -> Row | None:
        """The items of a stream of the program, if they are rows."""
        stream = self.typed.types.get(end)
        return stream.item if stream is not None and isinstance(stream.item, Row) else None

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names in the one order."""
        return tuple(sorted(names, key=lambda name: (self.ranks.get(name, len(self.ranks)), name)))

    def restored(self, end: Endpoint) -> Endpoint:
        """The stream with its columns as the program has them."""
        row = self.row(end)
        return end if row is None or end not in self.at else self._columns(end, row.names)

    def aligned(self, end: Endpoint) -> _Placed:
        """The stream with its columns in the one order."""
        names = self.sorted(self.at[end].names)
        return _Placed(self._columns(end, names), names)

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
        """What is as in the program is called as in the program, and nothing else is."""
        return str(end) if is_own else f"{end} in order"

    def _goes_by_names(self, node: Node) -> bool:
        """Whether it gets rows, and takes their columns by their names where it asks for some."""
        if any(end not in self.at for end in node.inputs):
            return False
        by_name = all(columns_of(fn) is not None for fn in functions_of(node.args))
        return by_name and all(arg.kind != "order" for arg in node.op.args)

    def _in_order(self, node: Node) -> bool:  # noqa: PLR0911 - a closed set
        """Adds the node with its named parts in order, if these are all that it goes by."""
        match node.cls:
            case Given():
                return self._source(node)
            case Projection():
                return self._projection(node, node.cls)
            case PerItem(gives) if gives in (Gives.SAME, Gives.SOME, Gives.ROUTED):
                return self._as_its_input(node, self.at[node.inputs[0]])
            case PerItem(Gives.ONE):
                return self._made_row(node)
            case ByKey() | Running() if aggregates(node.cls):
                return self._aggregate(node)
            case Product(meets=Meets.KEY):
                return self._product(node)
            case Sum() | Matching(compares=Compares.ITEMS):
                return self._aligned(node)
            case Matching() | Distinct() | History() | Window() | Before() | Growth(signed=False):
                return self._as_its_input(node, self.at[node.inputs[0]])
            case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
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
        """A row of columns and computed ones: each is named in order, whoever names it how."""
        (read,), own = node.inputs, self.row(Endpoint(node.id))
        before = self.row(read)
        if own is None or before is None:
            return False
        placed, names = self.at[read], self.sorted(own.names)
        made = cls.columns(node.args, before.names)
        plain = all(of == name for name, of in made.items())
        if plain and names == placed.names:
            self.at[Endpoint(node.id)] = placed
        elif placed == _Placed(read, before.names) and names == own.names:
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
        """Items of several streams stand beside each other, or are compared."""
        placed = [self.aligned(end) for end in node.inputs]
        names = placed[0].names
        if any(other.names != names for other in placed):
            return False
        self._put(node.with_(inputs=tuple(p.end for p in placed)), names)
        return True

    def _as_its_input(self, node: Node, placed: _Placed) -> bool:
        """The items are those of the first input; others are asked by names."""
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
            self.at[end] = _Placed(Endpoint(name, end.port), names)


def _are_names(columns: tuple[object, ...] | None) -> bool:
    """Whether there are columns, which have the same names on either side."""
    return bool(columns) and all(isinstance(name, str) for name in columns or ())


def _column(of: str | Fn) -> Fn:
    return of if isinstance(of, Fn) else function_of(Part(Param(ITEM), of), (ITEM,))


def _counted(aggregate: Aggregate) -> Aggregate:
    """The aggregate; what counts distinct rows does so whatever the order of their columns."""
    columns = aggregate.arguments
    if not AGGREGATES[aggregate.function].over_distinct or not all(
        isinstance(c, str) for c in columns
    ):
        return aggregate
    return replace(aggregate, arguments=tuple(sorted(map(str, columns))))
