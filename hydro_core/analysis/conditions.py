"""Joins with a condition or keys of different names, in plans: joins by keys and filters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from math import ceil, floor
from typing import Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.combine import JOIN, UNION
from hydro_core.catalog.itemwise import FILTER, IDENTITY, NULL, RENAME, SELECT, WITH_COLUMNS
from hydro_core.catalog.spec import KEPT, Args, OpSpec, sides_of_key
from hydro_core.functions.constant import constant_value
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Expr, Fn, IfElse, Make, Op, Param, Part, column_of
from hydro_core.functions.views import ITEM, applied, field_of, row_view
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, free_name
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    DATE,
    LONG,
    OPEN,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    ItemType,
    Row,
    Scalar,
    StreamType,
    is_integer,
    nullable,
)

# Bounds in a join condition: pairs of columns that are equal, or whose distance is bounded.
#
# `l.at <= r.at and r.at <= l.at + timedelta(hours=1)` bounds `r.at - l.at` on both sides. Matching
# rows then lie in the same or in neighbouring intervals of time, so the join is by the number of
# the interval and not over all pairs. The bounds are necessary only; the condition still filters
# the pairs.


MOST_PARTS = 4
"""Most intervals in which one row of the left is looked up."""
MOST_STRETCHES = 1 << 60
"""Largest distance between the two columns, in intervals."""
_EPOCHS: Mapping[ItemType, tuple[Any, timedelta]] = {
    DATE: (date(1970, 1, 1), timedelta(days=2)),
    TIMESTAMP: (datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)),
    TIMESTAMP_NTZ: (datetime(1970, 1, 1), timedelta(seconds=1)),
}
"""The origin from which times are counted, and the shortest interval."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the distance of two columns: `low <= r - l <= high`."""

    left: str
    right: str
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        ends = [f"{self.low} <= "] if self.low is not None else []
        ends.append(f"r.{self.right} - l.{self.left}")
        return "".join(ends) + (f" <= {self.high}" if self.high is not None else "")


@dataclass(frozen=True, slots=True)
class SharedParts:
    """Functions of either side's row; a pair of rows can match only if they have an equal value."""

    left: tuple[Fn, ...]
    right: tuple[Fn, ...]
    """For a matching pair, one function of the left has the value of one of the right."""


def column(name: str) -> Fn:
    """The function that gives a column of a row."""
    return function_of(field_of(Param(ITEM), name), (ITEM,))


def equal_columns(condition: Fn, left: ItemType, right: ItemType) -> tuple[tuple[str, str], ...]:
    """The columns of both sides that are equal in each pair that matches."""
    found = [
        (of[0], of[1])
        for form, operator in _compared(condition)
        if operator == "==" and not form.constant and (of := form.apart()) is not None
    ]
    return tuple(dict.fromkeys(pair for pair in found if _are_scalars(left, right, *pair)))


def _are_scalars(left: ItemType, right: ItemType, mine: str, theirs: str) -> bool:
    one, other = (
        side.column(name) if isinstance(side, Row) else None
        for side, name in ((left, mine), (right, theirs))
    )
    both = None if one is None or other is None else common_type(one, other)
    return isinstance(both, Scalar | Decimal)


def bounds_of(condition: Fn, left: ItemType, right: ItemType) -> tuple[Bounds, ...]:
    """Bounds that the condition implies for pairs of columns of one type, one from each side."""
    found: dict[tuple[str, str], Bounds] = {}
    for form, operator in _compared(condition):
        names = form.apart()
        if names is None:
            continue
        of = _measured(left, names[0])
        if of is None or of != _measured(right, names[1]):
            continue
        for one in _of_difference(form, names, operator, of):
            found[names] = _both(found.get(names, one), one)
    return tuple(found.values())


def _of_difference(
    form: _Linear, names: tuple[str, str], operator: str, of: ItemType
) -> Iterator[Bounds]:
    """Bounds that `form <= 0` or `form == 0` implies; the form is the difference of two columns."""
    apart = form.constant or (timedelta() if of in _EPOCHS else 0)
    if isinstance(apart, timedelta) != (of in _EPOCHS):
        return
    upwards = form.columns[0, names[0]] == 1
    if operator == "==":
        value = apart if upwards else -apart
        yield Bounds(*names, low=_whole(value, floor), high=_whole(value, ceil))
    elif upwards:  # l - r + c <= 0
        yield Bounds(*names, low=_whole(apart, floor))
    else:  # r - l + c <= 0
        yield Bounds(*names, high=_whole(-apart, ceil))


def _whole(value: Any, to: Any) -> Any:
    return to(value) if isinstance(value, float) else value


def _measured(item: ItemType, name: str) -> ItemType | None:
    """The type of a column if its distances are exact, else None; all integers are one type."""
    of = item.column(name) if isinstance(item, Row) else None
    if of is not None and is_integer(of):
        return LONG
    return of if of in _EPOCHS else None


def _both(one: Bounds, other: Bounds) -> Bounds:
    lows = [b.low for b in (one, other) if b.low is not None]
    highs = [b.high for b in (one, other) if b.high is not None]
    return Bounds(one.left, one.right, max(lows, default=None), min(highs, default=None))


def shared_parts(bounds: Bounds, left: ItemType) -> SharedParts | None:
    """Interval numbers that rows within the bounds share; None where a bound is missing or too
    wide.
    """
    of = _measured(left, bounds.left)
    if bounds.low is None or bounds.high is None or of is None:
        return None
    least = 2 if of not in _EPOCHS else _EPOCHS[of][1]
    length = max(bounds.high - bounds.low, least)
    first, last = bounds.low // length, bounds.high // length + 1
    if last - first >= MOST_PARTS or max(abs(first), abs(last)) > MOST_STRETCHES:
        return None
    stretches = range(first, max(first, last) + 1)
    return SharedParts(
        tuple(_stretch(bounds.left, of, length, offset) for offset in stretches),
        (_stretch(bounds.right, of, length, 0),),
    )


def _stretch(name: str, of: ItemType, length: Any, offset: int) -> Fn:
    """The number of the interval that holds a column, plus an offset; null of null."""
    value = field_of(Param(ITEM), name)
    since = Op("-", (value, Const(_EPOCHS[of][0]))) if of in _EPOCHS else value
    number: Expr = Op("//", (since, Const(length)))
    if offset:
        number = Op("+", (number, Const(offset)))
    tree = IfElse(Op("is", (value, Const(None))), Const(None), number)
    return function_of(tree, (ITEM,))


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of columns, each with a sign, and of a constant."""

    columns: Mapping[tuple[int, str], int]
    """The sign of a column, by its side and name."""
    constant: Any = 0

    def apart(self) -> tuple[str, str] | None:
        """The columns of left and right, if it is their difference and a constant."""
        ends = sorted(self.columns)
        if [side for side, _ in ends] != [0, 1] or sum(int(n) for n in self.columns.values()) != 0:
            return None
        return ends[0][1], ends[1][1]

    def __neg__(self) -> _Linear:
        return _Linear({c: -sign for c, sign in self.columns.items()}, -self.constant)

    def plus(self, other: _Linear) -> _Linear | None:
        """The sum; None where a column is in both."""
        if self.columns.keys() & other.columns.keys():
            return None
        constant = self.constant or other.constant
        if self.constant and other.constant:
            constant = self.constant + other.constant
        return _Linear({**self.columns, **other.columns}, constant)


def _compared(condition: Fn) -> Iterator[tuple[_Linear, str]]:
    """Linear forms that are at most 0 (`<=`) or equal 0 (`==`) where the condition holds; others
    are skipped.
    """
    if condition.tree is None or len(condition.params) != 2:
        return
    for compare in _conjuncts(condition.tree):
        operand, *others = compare.args
        for operator, following in zip(compare.name.split(","), others, strict=True):
            # A number added to a distance of times has no type: `_linear` raises a TypeError.
            with suppress(TypeError):
                yield from list(_difference(operand, operator, following, condition.params))
            operand = following


def _difference(
    one: Expr, operator: str, other: Expr, params: tuple[str, ...]
) -> Iterator[tuple[_Linear, str]]:
    if operator in (">", ">="):
        one, other, operator = other, one, {">": "<", ">=": "<="}[operator]
    less, more = (_linear(e, params) for e in (_inside(one), other))
    if less is None or more is None or operator not in ("<", "<=", "=="):
        return
    absolute = _inside(one) is not one
    if operator == "==" and absolute:
        return
    signs = (less, -less) if absolute else (less,)
    for form in signs:
        found = form.plus(-more)
        if found is not None:
            yield found, "==" if operator == "==" else "<="


def _inside(tree: Expr) -> Expr:
    """The operand of an absolute value; other trees unchanged."""
    match tree:
        case Op("abs", (inner,), ()):
            return inner
        case _:
            return tree


def _conjuncts(tree: Expr) -> Iterator[Op]:
    match tree:
        case Op("and", values):
            for value in values:
                yield from _conjuncts(value)
        case Op(family="comparison"):
            yield tree
        case _:
            return


def _linear(tree: Expr, params: tuple[str, ...]) -> _Linear | None:
    match tree:
        case Part(Param(name)) if name in params and (column := column_of(tree)) is not None:
            return _Linear({(params.index(name), column): 1})
        case Op("-x", (operand,)):
            found = _linear(operand, params)
            return None if found is None else -found
        case Op("+" | "-" as operator, (left, right)):
            one, other = _linear(left, params), _linear(right, params)
            if one is None or other is None:
                return None
            return one.plus(-other if operator == "-" else other)
        case _:
            value = constant_value(tree)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return _Linear({}, value) if is_number or isinstance(value, timedelta) else None


# Joins on keys of other names: the right side is renamed, and the key has one name.
#
# `a -> join(right=b, on={"id": "ref"})` is `a -> join(right=c, on="id")` with `c = b ->
# rename(id="ref")`, so later passes know one form of a join. A column of the right that has the
# name of a left key gets the suffix of the join, under which the output has it.


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
    """True if a key of the node has different names on its two sides; false with a condition, which
    reads the columns by their own names.
    """
    if node.args.get("where") is not None:
        return False
    return any(arg.kind == "key" and _pairs(node.args[arg.name]) for arg in node.op.args)


def _pairs(on: tuple[str, ...] | tuple[tuple[str, str], ...] | None) -> bool:
    return any(not isinstance(name, str) for name in on or ())


def _of_one_name(typed: Typed, node: Node, taken: set[NodeId]) -> Iterator[Node]:
    """The node; before it, if its keys have different names, a rename of its right input."""
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
    """New and old name of each column of the right that the join names differently."""
    keys = [(new, old) for new, old in zip(on, of_right, strict=True) if new != old]
    names = item.names if isinstance(item, Row) else ()
    others = set(names) - set(of_right)
    # A semijoin has no suffix and drops the right columns, so any free name will do.
    away = {name: free_name(name + (suffix or ""), names) for name in others & set(on)}
    return (*keys, *((new, old) for old, new in sorted(away.items())))


# Joins with a condition, as plans have them: expanded to joins without one.
#
# The pairs of a join with a condition are a filter of the pairs of equal keys. A row's match
# depends on its value and on the other side alone, so rows with a match are those that occur in
# some pair: a semijoin on all columns finds them, an antijoin the rows that are dropped or padded.
#
#     pairs = left -> join(right=others, on=key) -> filter(condition)
#     left -> join(right=pairs, on=all of the left's columns, how="anti") -> padded
#
# So planning, optimizing and running a program need no conditions: updates, lookups and
# partitioning of pairs and matches follow from these operators. This expansion is no definition:
# the reference interpreter follows the language page.


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
    """Bounds of matching rows that the conditions of joins imply, as sentences for people."""
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
    """Names of its columns in the pairs, where they have unchanged values."""
    becomes: Mapping[str, str]
    """Names of its columns in the output."""


@dataclass(slots=True)
class _Expansion:
    """The nodes that replace a join with a condition."""

    node: Node
    rows: tuple[Row, Row]
    output: ItemType
    taken: set[NodeId]
    made: list[Node] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """The nodes; the last one has the name of the join."""
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
        """The matching pairs, and the sides with the names of their columns in the pairs."""
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
        """The rows of a side before the join: each column under its name in the pairs."""
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
        """The rows with the columns of their shared parts; a row of the left may occur several
        times.
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
        """The rows of a side that occur in a pair (`semi`), or in none (`anti`)."""
        own = tuple(side.called[name] for name in side.row.names)
        found = self._add("part", SELECT, {"columns": own}, pairs)
        found = self._renamed(found, {new: old for old, new in side.called.items()})
        return self._add(how, JOIN, {"on": side.row.names, "how": how}, side.read, found)

    def _padded(self, pairs: Endpoint, side: _Side) -> Endpoint:
        """The rows of a side that occur in no pair, with nulls for the columns of the other."""
        assert isinstance(self.output, Row)
        alone = self._renamed(self._matched(pairs, side, "anti"), side.becomes)
        nulls = [f for f in self.output.fields if f.name not in side.becomes.values()]
        if nulls:
            null = [function_of(Const(None), (ITEM,), returns=nullable(f.type)) for f in nulls]
            computed = tuple((f.name, fn) for f, fn in zip(nulls, null, strict=True))
            alone = self._add("padded", WITH_COLUMNS, {"computed": computed}, alone)
        return self._add("row", SELECT, {"columns": self.output.names}, alone)


def _new_name(name: str, names: set[str]) -> str:
    """A name that no column has; it is added to `names`."""
    free = free_name(name, names)
    names.add(free)
    return free


def _shared_parts(condition: Fn, left: Row, right: Row) -> Sequence[SharedParts]:
    """Shared parts by which matching rows are joined: equal columns, else one pair of near columns,
    else a constant, which pairs all rows.
    """
    equal = equal_columns(condition, left, right)
    if equal:
        return [SharedParts((column(mine),), (column(theirs),)) for mine, theirs in equal]
    near = (shared_parts(bounds, left) for bounds in bounds_of(condition, left, right))
    found = min(filter(None, near), key=lambda parts: len(parts.left), default=None)
    anything = (function_of(Const(0), (ITEM,)),)
    return [found or SharedParts(anything, anything)]
