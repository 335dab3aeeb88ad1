"""Parts of values on Spark: fields by name and place, elements, entries of dicts, `in`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.tree import Bind, Const, Expr, Make, Part, Spread, field_in
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import arrays, compare, integers, strings, structs
from hydro_core.spark.functions.columns.structs import constant
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    Generator,
    NotCompilable,
    boolean,
    computed,
    is_item,
)
from hydro_core.types.common import common_types
from hydro_core.types.item import BOOLEAN, LONG, STRING, UNKNOWN, Array, Row, Tuple

_MAX_ENTRIES = 2_000
_INT = 2**31 - 1


def part(scope: ColumnScope, base: ColumnValue, node: Part) -> ColumnValue:
    """A field; or else the part that `base[step]` names."""
    table = None if node.by_name else table_of(base)
    field = field_in(base.type, node)
    if field is not None and (table is None or isinstance(field.step, str)):
        return structs.field_at(scope, base, field.place)
    if isinstance(base.type, Tuple) and (node.by_name or isinstance(node.step, int)):
        raise NotCompilable(f"the tuple has no field {node.step}")
    if node.by_name:
        raise NotCompilable(f"the row has no column {node.step}")
    return indexed(scope, base, constant(node.step))


def indexed(scope: ColumnScope, base: ColumnValue, index: ColumnValue) -> ColumnValue:
    """`base[index]`, where the index names no field."""
    table = table_of(base)
    if table is not None:
        return entry(scope, table, index)
    match base.type:
        case Tuple():
            return arrays.element(scope, arrays.of_tuple(scope, base), index)
        case Array():
            return arrays.element(scope, base, index)
        case _ if base.type == STRING:
            return strings.character(scope, base, index)
        case _:
            raise NotCompilable(f"an index into {base.type}")


def cut(scope: ColumnScope, base: ColumnValue, bounds: Sequence[ColumnValue | None]) -> ColumnValue:
    if isinstance(base.type, Tuple):
        return _cut_tuple(scope, base, bounds)
    low, high, step = bounds
    if not (isinstance(base.type, Array) or base.type == STRING):
        raise NotCompilable(f"a slice of {base.type}")
    value = scope.need(base)
    if step is not None and step.constant not in ((None,), (1,)):
        if step.constant == (-1,) and low is None and high is None:
            return computed(F.reverse(value.column), base.type, value, safe=True)
        raise NotCompilable("a slice with a step")
    size = F.length(value.column) if base.type == STRING else F.size(value.column)
    start, end = _bound(scope, low, size, F.lit(0)), _bound(scope, high, size, size)
    count = F.greatest(end - start, F.lit(0))
    if base.type != STRING:
        column = F.slice(value.column, start + 1, count)
    elif high is None:
        column = F.substr(value.column, start + 1)
    else:
        column = F.substr(value.column, start + 1, count)
    known = [b for b in (low, high) if b is not None]
    return computed(column, base.type, value, value, *known, safe=all(b.safe for b in known))


def table_of(value: ColumnValue) -> dict[Any, Any] | None:
    """The constant dict of a value, None if it is none: one with names is a row, too."""
    if value.constant is not None and isinstance(value.constant[0], dict):
        return value.constant[0]
    if isinstance(value.type, Row) and value.parts is not None:
        known = [part.constant for part in value.parts]
        if all(known):
            return dict(zip(value.type.names, (k[0] for k in known if k), strict=True))
    return None


def entry(
    scope: ColumnScope, table: dict[Any, Any], key: ColumnValue, default: Sequence[ColumnValue] = ()
) -> ColumnValue:
    """`table[key]` of a constant dict, or `table.get(key, default)`."""
    if not table or len(table) > _MAX_ENTRIES:
        raise NotCompilable("a dict that is empty or very large")
    values = [*map(constant, table.values()), *default]
    types = [v.type for v in values if is_item(v.type)]
    if len(types) < len(values):
        raise NotCompilable("a dict of values that are no items")
    to = common_types(types)
    if to is None:
        raise NotCompilable("a dict of values of several types")
    scope.use(*default)
    columns = [structs.cast(scope, v, to) for v in values]
    other = columns.pop() if default else scope.ask()
    column = _chosen(scope, list(table), columns, key, other)
    nullable = any(v.nullable for v in values)
    whole = computed(column, to, key, *default, nullable=nullable)
    return whole.with_(size=key.size + len(table))


def spread(scope: ColumnScope, parts: Sequence[Expr | Spread]) -> list[ColumnValue]:
    values: list[ColumnValue] = []
    for part in parts:
        if not isinstance(part, Spread):
            values.append(scope.compile(part))
            continue
        value = scope.compile(part.value)
        if not isinstance(value.type, Tuple):
            raise NotCompilable("`*` of anything but a tuple")
        values += structs.fields_of(scope, structs.present(scope, value))
    return values


def row(scope: ColumnScope, node: Make) -> ColumnValue:
    """`{"a": x, **r}`: a later field replaces an earlier one in its position."""
    fields: dict[str, ColumnValue] = {}
    for name, part in zip(node.names, node.parts, strict=True):
        if isinstance(part, Spread):
            value = scope.compile(part.value)
            if not isinstance(value.type, Row):
                raise NotCompilable("`**` of anything but a row")
            values = structs.fields_of(scope, structs.present(scope, value))
            new = dict(zip(value.type.names, values, strict=True))
        else:
            new = {str(name): scope.compile(part)}
        scope.use(*(fields[name] for name in new if name in fields))
        fields |= new
    return structs.make_row(fields)


def container(scope: ColumnScope, node: Expr) -> ColumnValue:
    """The operand after `in`: the elements of a display are not made into an array first."""
    if isinstance(node, Make) and node.kind != "row":
        return structs.make_tuple(spread(scope, node.parts))
    if isinstance(node, Const) and isinstance(node.value, list | set | frozenset | dict):
        if not all(v is None or isinstance(v, bool | int | float | str) for v in node.value):
            raise NotCompilable("`in` a constant of tuples")
        return structs.make_tuple([constant(v) for v in node.value])
    if isinstance(node, Bind) and node.kind == "set":
        return scope.compile(replace(node, kind="list"))
    return scope.compile(node)


def contains(scope: ColumnScope, within: ColumnValue, value: ColumnValue) -> ColumnValue:
    if within.type == STRING:
        return strings.contains(scope, within, value)
    if isinstance(within.type, Array):
        array, value, is_it = sought(scope, within, value)
        return boolean(F.exists(array.column, is_it), array, value)
    if isinstance(within.type, Row):
        raise NotCompilable("`in` a row")
    if isinstance(within.type, Generator) or not isinstance(within.type, Tuple):
        raise NotCompilable(f"`in` {within.type}")
    fields = structs.fields_of(scope, structs.present(scope, within))
    # All elements are computed before the first comparison; without elements the value alone.
    scope.use(*fields, *(() if fields else (value,)))
    plain = _literals(fields, value)
    if plain is not None:
        found = value.column.isin(plain) if plain else F.lit(False)
        return boolean(F.coalesce(found, F.lit(False)) if value.nullable else found, value)
    # Constants other than NaN cannot be identical to the value without being equal.
    if any(compare.holds_float(f.type) and compare.may_be_nan(f) for f in fields):
        value = compare.not_nan(scope, value)
    tests = [compare.equal(scope, field, value) for field in fields]
    found = reduce(lambda a, b: a | b, [t.column for t in tests], F.lit(False))
    return boolean(found, *tests)


def sought(
    scope: ColumnScope, base: ColumnValue, value: ColumnValue
) -> tuple[ColumnValue, ColumnValue, Callable[[Column], Column]]:
    """An array, the sought value, and a test that an element is that value: a NaN may be
    identical.
    """
    array = scope.need(base)
    scope.use(value)
    if compare.holds_float(array.type) or compare.holds_float(value.type):
        value = compare.not_nan(scope, value)
    return array, value, lambda e: compare.equal(scope, arrays.item(array, e), value).column


def _cut_tuple(
    scope: ColumnScope, value: ColumnValue, bounds: Sequence[ColumnValue | None]
) -> ColumnValue:
    known = [(None,) if bound is None else bound.constant for bound in bounds]
    if any(k is None or not (k[0] is None or type(k[0]) is int) for k in known):
        raise NotCompilable("a tuple is cut at a computed place")
    fields = structs.fields_of(scope, structs.present(scope, value))
    kept = fields[slice(*(k[0] for k in known if k is not None))]
    scope.use(*(f for f in fields if not any(f is k for k in kept)))
    return structs.make_tuple(kept)


def _bound(scope: ColumnScope, value: ColumnValue | None, size: Column, default: Column) -> Column:
    """A bound of a slice as an int between 0 and the size."""
    if value is None or value.constant == (None,):
        return default
    if not integers.is_int(value):
        raise NotCompilable(f"a slice by {value.type}")
    if value.nullable:
        return F.when(value.column.isNull(), default).otherwise(_inside(value, size))
    if value.constant is not None:
        number = max(-_INT, min(_INT, int(value.constant[0])))
        if number >= 0:
            return F.least(F.lit(number), size)
        return F.greatest(size + F.lit(number), F.lit(0))
    return _inside(value, size)


def _inside(value: ColumnValue, size: Column) -> Column:
    number = integers.as_long(value).column
    limit = F.when(number > _INT, _INT).when(number < -_INT, -_INT).otherwise(number).cast("int")
    return F.when(limit < 0, F.greatest(limit + size, F.lit(0))).otherwise(F.least(limit, size))


def _literals(fields: list[ColumnValue], value: ColumnValue) -> list[Any] | None:
    """The constants, if all are of the value's kind and a plain IN decides."""
    kind = str if value.type == STRING else int if value.type == LONG else None
    constants = [f.constant for f in fields]
    if kind is None or not all(c is not None and type(c[0]) is kind for c in constants):
        return None
    return [c[0] for c in constants if c is not None]


def _chosen(
    scope: ColumnScope, keys: list[Any], columns: list[Column], key: ColumnValue, default: Column
) -> Column:
    plain = _literals([constant(k) for k in keys], key)
    if plain is not None and len(keys) > 8 and not key.nullable:
        pairs = [
            c
            for k, v in zip(keys, columns, strict=True)
            for c in (F.lit(k) if isinstance(k, str) else integers.literal(k), v)
        ]
        table = F.create_map(*pairs)
        is_there = F.map_contains_key(table, key.column)
        return F.when(is_there, F.try_element_at(table, key.column)).otherwise(default)
    if (
        not all(k is None or isinstance(k, bool | int | str) for k in keys)
        or key.mixed
        or key.type == UNKNOWN
    ):
        raise NotCompilable("a dict with keys of another kind")
    if compare.holds_float(key.type) or key.type == BOOLEAN:
        raise NotCompilable("a dict that is read by a float or a boolean")
    chosen: Any = F
    for k, column in zip(keys, columns, strict=True):
        chosen = chosen.when(compare.equal(scope, key, constant(k)).column, column)
    found: Column = chosen.otherwise(default)
    return found
