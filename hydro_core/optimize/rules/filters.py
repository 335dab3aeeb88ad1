"""Rules about filters: which pass which operators, and where a match may be tested early."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.aggregates import COUNT
from hydro_core.catalog.classes import (
    ByKey,
    ItemEffect,
    KeyMatch,
    Linear,
    OverTime,
    PairedItems,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
    StreamEnd,
)
from hydro_core.catalog.spec import Args
from hydro_core.functions.forms import normal_tree, path_of
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.tree import Expr, Fn, Make, Op, Param, Part, column_of
from hydro_core.functions.views import ITEM, MISSING, at_path, row_view, side_view, through
from hydro_core.ir.graph import Endpoint, Node, behind
from hydro_core.optimize.calls import FunctionUses, is_total
from hydro_core.optimize.columns import columns_of
from hydro_core.optimize.load import LoadedProblem
from hydro_core.optimize.rules.aggregates import Found
from hydro_core.types.item import FLOATS, Decimal, ItemType, Row, Scalar

# Filters that may go before operators, as which functions, and filters that may be split in two.


MAX_FILTERS = 60
"""The limit of filters that are analysed, original and moved ones."""


@dataclass(frozen=True, slots=True)
class _MovableFilter:
    """A filter on the items of a stream, from which it may move up."""

    args: Args
    stream: Endpoint
    loaded: LoadedProblem = field(compare=False)

    @property
    def item(self) -> ItemType:
        """The type of the items that it is called with."""
        return self.loaded.typed.types[self.stream].item

    @property
    def there(self) -> bool:
        """True if none of the items is null."""
        return self.stream.node in self.loaded.solid


def earlier_filters(
    loaded: LoadedProblem, nodes: Sequence[Node], uses: FunctionUses
) -> Iterator[Found]:
    """The facts that let filters go before nodes, each used on items of one type.

    The types of the items that the moved filters are called with are added to `uses`.
    """
    typed = loaded.typed
    filters = [n for n in loaded.origins.values() if n.cls == PerItem(ItemEffect.SOME)]
    waiting = deque(_MovableFilter(n.args, n.inputs[0], loaded) for n in filters)
    done: set[_MovableFilter] = set()
    while waiting:
        asked = waiting.popleft()
        args, item = asked.args, asked.item
        fn: Fn = args["f"]
        uses.add(fn, item, there=asked.there)
        if asked in done or len(done) > MAX_FILTERS:
            continue
        done.add(asked)
        for first, second in conjuncts(fn, item):
            parts = (_filter(first), _filter(second))
            yield "conjunct", (args, *parts)
            waiting += [replace(asked, args=part) for part in parts]
        above = behind(typed.graph, [asked.stream.node])
        for node in nodes:
            output = typed.types.get(Endpoint(node.id))
            if node.id not in above or output is None or output.item != item:
                continue
            for fact, moved, side in _before(typed, node, fn, item):
                own = (node.args,) if node.spec.args else ()
                on = _MovableFilter(_filter(moved), node.inputs[side], loaded)
                # with another input it sees items without a partner, too: it needs a value for each
                # of them
                if len(node.inputs) == 1 or is_total(moved, on.item, there=on.there):
                    yield fact, (args, *own, on.args)
                    waiting.append(on)


def _filter(fn: Fn) -> Args:
    return Args((("f", fn),))


def conjuncts(fn: Fn, item: ItemType) -> Iterator[tuple[Fn, Fn]]:
    """The two parts of an `and`, or of a `not` of an `or`, in the order of evaluation.

    If the second has a value for every item, the two are also given in the other order.
    """
    if fn.tree is None or not is_complete(fn.tree):
        return
    match fn.tree:
        case Op("and", (first, *rest)) as both:
            second = rest[0] if len(rest) == 1 else replace(both, args=tuple(rest))
        case Op("not", (Op("or", (first, *rest)) as either,)) as neither:
            first = replace(neither, args=(first,))
            others = rest[0] if len(rest) == 1 else replace(either, args=tuple(rest))
            second = replace(neither, args=(others,))
        case _:
            return
    one, other = _part(fn, first), _part(fn, second)
    yield one, other
    early = _of_columns(other, item) if isinstance(item, Row) else other
    if early is not None and is_total(early, item):
        yield early, one


def _of_columns(fn: Fn, row: Row) -> Fn | None:
    """The function on the row's columns; it gives null for a null row, on which the function itself
    fails.
    """
    if columns_of(fn) is None:
        return None
    return through(fn, row_view(row, {n: n for n in row.names}), row)


def _part(fn: Fn, tree: Expr) -> Fn:
    """A part of a function as a function of its own, at the span of the whole."""
    return replace(function_of(tree, fn.params, like=fn), name=fn.name, over=fn.over)


def _before(typed: Typed, node: Node, fn: Fn, output: ItemType) -> Iterator[tuple[str, Fn, int]]:
    """The facts that let the filter go before the node, each with the moved function and its
    input.
    """
    inputs = tuple(typed.types[e].item for e in node.inputs)
    cls = node.cls
    view: Expr | None
    match cls:
        case Product(meets=PairedItems.ALL | PairedItems.KEY):
            yield from _before_sides(typed, node, cls, fn, output)
            return
        case ByKey(keyed=True) if node.args["by"] and isinstance(output, Row):
            fact, view = "on_keys", row_view(output, {k: k for k in node.args["by"]})
        case PerItem(ItemEffect.ONE):
            fact, view = "composed", _handed_on(node.args["f"], inputs[0])
        case Projection():
            fact, view = "composed", _projected(node, cls, inputs[0], output)
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return
        case _:
            assert_never(cls)
    moved = through(fn, view, inputs[0]) if view else None
    if moved is not None:
        yield fact, moved, 0


def _before_sides(
    typed: Typed, node: Node, cls: Product, fn: Fn, output: ItemType
) -> Iterator[tuple[str, Fn, int]]:
    for side, name in enumerate(("left", "right")):
        # a filter that needs this side cannot go before a join that pads it
        if cls.keeps - {side}:
            continue
        item = typed.types[node.inputs[side]].item
        view = _side(node, cls, output, item, side)
        moved = through(fn, view, item) if view else None
        if moved is not None:
            yield f"{node.op.name}_{name}", moved, side


def _side(node: Node, cls: Product, output: ItemType, item: ItemType, side: int) -> Expr | None:
    if cls.meets is PairedItems.KEY:
        return side_view(output, item, node.args["on"], side == 0)
    whole = Param(ITEM)
    return Make("tuple", (MISSING, whole) if side else (whole, MISSING))


def _projected(node: Node, cls: Projection, item: ItemType, output: ItemType) -> Expr | None:
    """The row of the node's output, with only those columns that are columns of its input."""
    if not isinstance(item, Row) or not isinstance(output, Row):
        return None
    made = cls.columns(node.args, item.names)
    return row_view(output, {name: of for name, of in made.items() if isinstance(of, str)})


def _handed_on(fn: Fn, item: ItemType) -> Expr | None:
    """The result of a function, with only those parts that it forwards unchanged."""
    tree = normal_tree(fn, (item,), partly=True)
    return None if tree is None else _view_of(tree)


def _view_of(tree: Expr) -> Expr | None:
    path = path_of(tree)
    if path is not None:
        return at_path(path)
    if not isinstance(tree, Make) or tree.kind not in ("tuple", "row") or tree.fields is None:
        return None
    views = (_view_of(value) or MISSING for value in tree.fields.values())
    names = tuple(map(str, tree.fields)) if tree.kind == "row" else ()
    return Make(tree.kind, tuple(views), names)


# Semi and anti joins that may go before a comparison with a single item.
#
# Rows that are compared with a changing item, such as a mean of all rows, are compared again in
# each tick. Their matches do not depend on that item, so the matched rows can be stored, and only
# these are compared.


KeySet = frozenset[str]


def first_of_pairs(node: Node) -> bool:
    """True if a node gives the first part of each pair unchanged."""
    if node.cls != PerItem(ItemEffect.ONE):
        return False
    fn = node.args["f"]
    return len(fn.params) == 2 and fn.tree == Param(fn.params[0])


def kept_rows(loaded: LoadedProblem) -> Iterator[tuple[str, Args, Args]]:
    """Streams of rows without duplicates that are compared with a single item.

    Each comes with the aggregate whose keys are the whole rows, and the columns that restore the
    rows.
    """
    typed, graph = loaded.typed, loaded.typed.graph
    for node in loaded.origins.values():
        cls = node.cls
        if not (isinstance(cls, Product) and cls.meets is PairedItems.SINGLE):
            continue
        stream = node.inputs[0]
        item, name = typed.types[stream].item, loaded.names.get(str(stream))
        if name is None or not isinstance(item, Row) or _keys(loaded, graph[stream.node]) is None:
            continue
        count = next(n for n in ("rows", *(f"rows_{i}" for i in range(99))) if n not in item.names)
        kept = Args((("by", item.names), ("aggregates", ((count, COUNT),))))
        yield name, kept, Args((("columns", item.names), ("computed", ())))


def equal_to_single(loaded: LoadedProblem) -> Iterator[tuple[Args, ...]]:
    """Filters of pairs with a single item that require a column of both to be equal.

    Each comes with the semi join that keeps the same rows, and, where the two columns have
    different names, the renaming of the single item's column. The filter and the join agree on
    equality except for NaN.
    """
    typed, graph = loaded.typed, loaded.typed.graph
    for node in loaded.origins.values():
        if node.cls != PerItem(ItemEffect.SOME):
            continue
        pairs = graph[node.inputs[0].node]
        if not (isinstance(pairs.cls, Product) and pairs.cls.meets is PairedItems.SINGLE):
            continue
        columns = _equal_columns(node.args["f"])
        mine, single = (typed.types[e].item for e in pairs.inputs)
        there = all(e.node in loaded.solid for e in pairs.inputs)
        one = typed.types[pairs.inputs[1]].single
        if columns is None or not (there and one and isinstance(mine, Row)):
            continue
        own, other = columns
        if not (isinstance(single, Row) and _are_exact(mine.column(own), single.column(other))):
            continue
        join = Args((("on", (own,)), ("how", "semi"), ("suffix", None), ("where", None)))
        if own == other:
            yield node.args, join
        elif own not in single.names:
            yield node.args, join, Args((("renames", ((own, other),)),))


def _equal_columns(fn: Fn) -> tuple[str, str] | None:
    """The columns of the first and the second part of a pair that a function compares, and nothing
    else.
    """
    match fn.tree:
        case Op("==", (Part(Param(one)) as left, Part(Param(two)) as right)):
            own, other = column_of(left), column_of(right)
            if own is None or other is None:
                return None
            if fn.params == (one, two):
                return own, other
            if fn.params == (two, one):
                return other, own
    return None


def _are_exact(one: ItemType | None, other: ItemType | None) -> bool:
    """True if values of both types are equal in functions exactly if they are equal as keys."""
    if isinstance(one, Scalar):
        return one == other and one.name not in FLOATS
    return isinstance(one, Decimal) and one == other


def _keys(loaded: LoadedProblem, node: Node) -> KeySet | None:
    """Columns that are a key of a node's rows; None if none are known."""
    cls, item = node.cls, loaded.typed.types[Endpoint(node.id)].item
    graph = loaded.typed.graph
    match cls:
        case ByKey(keyed=True):
            by = node.args.get("by") or ()
            return (
                frozenset(by) if by and isinstance(item, Row) and {*by} <= {*item.names} else None
            )
        case PerItem(ItemEffect.SAME | ItemEffect.SOME) | KeyMatch():
            return _keys(loaded, graph[node.inputs[0].node])
        case Projection():
            before = _keys(loaded, graph[node.inputs[0].node])
            of = loaded.typed.types[node.inputs[0]].item
            if before is None or not isinstance(of, Row):
                return None
            made = {
                c: name
                for name, c in cls.columns(node.args, of.names).items()
                if isinstance(c, str)
            }
            return frozenset(made[key] for key in before) if before <= made.keys() else None
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)
