"""Lineage rules: the input fields that each field of an operator's output comes from.

A rule gives a `FieldMap` over the operator's inputs. An entry of a path holds for all paths below
it. An output field `equal`s input fields if in every item it has the value of one of them. It is
`computed` from others that its value depends on otherwise, such as a padded side's, which may be
null. A field in neither comes from no input: a position, a count of rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from hydro_core.catalog.classes import MadeColumns
from hydro_core.catalog.over_functions import looked_at
from hydro_core.catalog.spec import KEPT, Args, LineageRule, sides_of_key
from hydro_core.catalog.type_rules import Types
from hydro_core.functions.lineage import FieldMap, Fields, InputField, ResultUse, field_map
from hydro_core.functions.tree import Expr, Fn
from hydro_core.types.item import FieldPath, ItemType, Row, at, leaves

NO_FIELDS: Fields = frozenset()


def of_first(args: Args, types: Types) -> FieldMap:
    """Every item is an item of the first input."""
    return FieldMap({(): _one(0, ())}, {})


def computed_from_all(args: Args, types: Types) -> FieldMap:
    """Every field may depend on everything."""
    return FieldMap({}, {(): _everything(types)})


def by_function(use: ResultUse = "item") -> LineageRule:
    """The fields of the result of the argument `f` for an item."""

    def rule(args: Args, types: Types) -> FieldMap:
        return field_map(args["f"], types, use=use)

    return rule


def pair_of_inputs(args: Args, types: Types) -> FieldMap:
    """`(x, y)` with x of the first input and y of the second."""
    return FieldMap({("0",): _one(0, ()), ("1",): _one(1, ())}, {})


def padded_pair(args: Args, types: Types) -> FieldMap:
    """`(x, y)`, where either may be missing."""
    return FieldMap({}, {("0",): _all(0, types[0]), ("1",): _all(1, types[1])})


def numbered(args: Args, types: Types) -> FieldMap:
    """`(n, x)` with a number that is no field of any item."""
    return FieldMap({("1",): _one(0, ())}, {("0",): NO_FIELDS})


def commanded(args: Args, types: Types) -> FieldMap:
    """The item of a command `(verb, x)`."""
    return FieldMap({(): _one(0, ("1",))}, {})


def commanded_by_key(args: Args, types: Types) -> FieldMap:
    """`(k, v)` of a command `(verb, k, v)`."""
    return FieldMap({("0",): _one(0, ("1",)), ("1",): _one(0, ("2",))}, {})


def projected(columns: MadeColumns) -> LineageRule:
    """The columns of the row, and the computed ones."""

    def rule(args: Args, types: Types) -> FieldMap:
        equal: dict[FieldPath, Fields] = {}
        computed: dict[FieldPath, Fields] = {}
        made: dict[FieldPath, Expr] = {}
        for name, source in columns(args, _names(types[0])).items():
            if isinstance(source, str):
                equal[name,] = _one(0, (source,))
                continue
            found = field_map(source, types[:1])
            equal |= {(name, *path): fields for path, fields in found.equal.items()}
            computed |= {(name, *path): fields for path, fields in found.computed.items()}
            made |= {(name, *path): form for path, form in found.made.items()}
        return FieldMap(equal, computed, made)

    return rule


def joined(args: Args, types: Types) -> FieldMap:
    """The key is that of the sides that are never padded; a padded side's fields may be null."""
    how = args["how"]
    if how in ("semi", "anti"):
        return of_first(args, types)
    sides = [1 not in KEPT[how], 0 not in KEPT[how]]
    if args["on"] is None and args.get("where") is None:
        return _joined_pairs(types, sides)
    (on, of_right), suffix = sides_of_key(args["on"] or ()), args["suffix"] or ""
    result = _Builder(types)
    for name, other in zip(on, of_right, strict=True):
        result.add((name,), [(0, (name,)), (1, (other,))], sides)
    taken = set(_names(types[0]))
    for name in _names(types[0]):
        if name not in on:
            result.add((name,), [(0, (name,))], sides)
    for name in _names(types[1]):
        if name not in of_right:
            target = name + suffix if name in taken else name
            result.add((target,), [(1, (name,))], sides)
    return result.done()


def _joined_pairs(types: Types, sides: list[bool]) -> FieldMap:
    result = _Builder(types)
    result.add(("0",), [(0, ("0",)), (1, ("0",))], sides)
    result.add(("1", "0"), [(0, ("1",))], sides)
    result.add(("1", "1"), [(1, ("1",))], sides)
    return result.done()


def keyed(args: Args, types: Types) -> FieldMap:
    """The key, and results of its values; the last input is the one with the items."""
    last = len(types) - 1
    by = args["by"]
    if by is None:
        value = _below(last, types[last], ("1",))
        return FieldMap({("0",): _one(last, ("0",))}, {("1",): value})
    keys: dict[FieldPath, Fields] = {(name,): _one(last, (name,)) for name in by}
    return FieldMap(keys, {(): _everything(types)})


def keyed_in_order(args: Args, types: Types) -> FieldMap:
    """The key, and results of its items; the order reads all their fields."""
    key = ((name,) for name in args["by"] or ("0",))
    made = () if args["by"] else ("1",)
    return FieldMap({path: _one(0, path) for path in key}, {made: _everything(types)})


def aggregated(args: Args, types: Types) -> FieldMap:
    """The columns of `by`, and for each aggregate the columns that it reads."""
    last = len(types) - 1
    item = types[last]
    keys: dict[FieldPath, Fields] = {}
    found: dict[FieldPath, Fields] = {}
    for name in args["by"] or ():
        keys[name,] = _one(last, (name,))
    for name, aggregate in args["aggregates"]:
        found[name,] = _all_of(aggregate.arguments, last, item)
    return FieldMap(keys, found)


def overlaid(args: Args, types: Types) -> FieldMap:
    """The row, and for each column of `over` the fields that it depends on: the order, and its
    arguments.
    """
    equal: dict[FieldPath, Fields] = {(name,): _one(0, (name,)) for name in _names(types[0])}
    computed: dict[FieldPath, Fields] = {}
    order = args["order"] or ()
    ordered = _all_of([order] if isinstance(order, Fn) else order, 0, types[0])
    for name, function in args["functions"]:
        computed[name,] = ordered | _all_of(looked_at(function), 0, types[0])
    return FieldMap(equal, computed)


class _Builder:
    """Fields of a join: equal to those of sides that are never padded, else padded."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._equal: dict[FieldPath, Fields] = {}
        self._computed: dict[FieldPath, Fields] = {}
        self._padded: dict[FieldPath, Fields] = {}

    def add(self, path: FieldPath, sources: list[tuple[int, FieldPath]], sides: list[bool]) -> None:
        there = frozenset(InputField(i, source) for i, source in sources if sides[i])
        if there:
            self._equal[path] = there
        else:
            parts = [_below(i, self._types[i], source) for i, source in sources]
            self._computed[path] = frozenset().union(*parts)
            self._padded[path] = frozenset(InputField(i, source) for i, source in sources)

    def done(self) -> FieldMap:
        return FieldMap(self._equal, self._computed, padded=self._padded)


def _all_of(arguments: Iterable[str | Fn], i: int, item: ItemType) -> Fields:
    """The fields that columns and functions of the rows read."""
    found: Fields = NO_FIELDS
    for argument in arguments:
        if isinstance(argument, str):
            found |= _below(i, item, (argument,))
            continue
        looked = field_map(argument, (item,))
        parts = [*looked.equal.values(), *looked.computed.values()]
        found |= {InputField(i, f.path) for part in parts for f in part}
    return found


def _names(item: ItemType) -> tuple[str, ...]:
    return item.names if isinstance(item, Row) else ()


def _one(i: int, path: FieldPath) -> Fields:
    return frozenset([InputField(i, path)])


def _all(i: int, item: ItemType) -> Fields:
    return frozenset(InputField(i, path) for path, _ in leaves(item))


def _below(i: int, item: ItemType, path: FieldPath) -> Fields:
    inner = at(item, path)
    if inner is None:
        return _one(i, path)
    return frozenset(InputField(i, leaf) for leaf, _ in leaves(inner, path))


def _everything(types: Iterable[ItemType]) -> Fields:
    return frozenset(f for i, item in enumerate(types) for f in _all(i, item))
