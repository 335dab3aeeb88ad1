"""Python's comparisons and truth on Spark.

`==` never fails: None equals None, NaN does not equal NaN, values of different kinds differ. `<`
and its kin fail on None. An int is compared with a float exactly, not as two floats.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import structs
from hydro_core.spark.functions.columns.integers import EXACT, as_long, is_int
from hydro_core.spark.functions.columns.numbers import is_decimal, is_float, is_number
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    Generator,
    NotCompilable,
    ValueType,
    boolean,
    strict,
)
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    BOOLEAN,
    DOUBLE,
    FLOATS,
    LONG,
    UNKNOWN,
    Array,
    Decimal,
    ItemType,
    Row,
    Scalar,
    Tuple,
    children,
)

_FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`bool(value)`."""
    if value.type == UNKNOWN:
        scope.use(value)
        return boolean(F.lit(False))
    column = _truth(scope, value)
    if value.nullable:
        column = F.coalesce(column, F.lit(False))
    return boolean(column, value).with_(doubtful=value.doubtful)


def equal(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if is_number(a) and is_number(b):
        return _equal_numbers(scope, a.with_(mixed=False), b.with_(mixed=False))
    a, b = scope.sure(a), scope.sure(b)
    if UNKNOWN in (a.type, b.type):
        scope.use(a, b)
        return boolean(_is_none(a) & _is_none(b), a, b)
    are_structs = isinstance(a.type, Tuple | Row) and isinstance(b.type, type(a.type))
    if are_structs and set(structs.names_of(a.type)) == set(structs.names_of(b.type)):
        return _equal_structs(scope, a, b)
    if a.type == b.type and not (isinstance(a.type, Tuple | Row) or a.mixed or b.mixed):
        if isinstance(a.type, Array) and holds_float(a.type):
            a, b = not_nan(scope, a), not_nan(scope, b)
        plain = not (a.nullable or b.nullable)
        column = a.column == b.column if plain else a.column.eqNullSafe(b.column)
        return boolean(column, a, b)
    if isinstance(a.type, Array) and isinstance(b.type, Array):
        to = common_type(a.type, b.type)
        if to is not None and structs.fits(a.type, to) and structs.fits(b.type, to):
            return equal(scope, _as(a, to), _as(b, to))
    if a.mixed or b.mixed or isinstance(a.type, Array) or isinstance(b.type, Array):
        raise NotCompilable(f"{a.type} and {b.type} are compared")
    scope.use(a, b)
    return boolean(_is_none(a) & _is_none(b), a, b)


def order(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if is_number(a) and is_number(b):
        return _order_numbers(scope, op, a.with_(mixed=False), b.with_(mixed=False))
    if isinstance(a.type, Tuple) and isinstance(b.type, Tuple):
        return _order_tuples(scope, op, a, b)
    if a.type != b.type or not isinstance(a.type, Scalar):
        raise NotCompilable(f"`{op}` between {a.type} and {b.type}")
    return strict(_OPERATORS[op](a.column, b.column), BOOLEAN, a, b)


def not_nan(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """A float, or an array of them, for comparison in a list: there a NaN may equal itself."""
    if value.type == LONG or not may_be_nan(value):
        return value
    if is_float(value) and value.constant is None:
        is_nan = F.isnan(value.column)
    elif value.type == Array(DOUBLE):
        is_nan = F.exists(value.column, lambda e: F.isnan(e))  # noqa: PLW0108 - it has one parameter
    else:
        raise NotCompilable(f"{value.type} is compared in a list")
    column = F.when(is_nan, scope.ask()).otherwise(value.column)
    return value.with_(column=column, safe=False, size=2 * value.size + 2, path=None)


def is_none(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    if not value.nullable:
        scope.use(value)
    return boolean(_is_none(value), value)


def negation(value: ColumnValue) -> ColumnValue:
    """`not value`, of a truth value."""
    return value.with_(column=~value.column, constant=None, path=None)


def _is_none(value: ColumnValue) -> Column:
    if not value.nullable:
        return F.lit(False)
    return F.lit(True) if value.type == UNKNOWN else value.column.isNull()


def _truth(scope: ColumnScope, value: ColumnValue) -> Column:  # noqa: PLR0911 - a closed set of cases
    match value.type:
        case Scalar("boolean"):
            return value.column
        case Scalar("string" | "binary"):
            return F.length(value.column) > 0
        case Scalar("float" | "double"):
            return value.column != 0.0
        case Scalar(name) if name not in ("date", "timestamp", "timestamp_ntz"):
            return value.column != 0
        case Decimal():
            return value.column != 0
        case Array():
            return F.size(value.column) > 0
        case Tuple(fields) | Row(fields) if not fields:
            return F.lit(False)
        case Tuple() | Row() if value.parts is not None:
            scope.use(value)
            return F.lit(True)
        case _ if isinstance(value.type, ItemType):
            return value.column.isNotNull()
        case _:
            raise NotCompilable(f"the truth of {value.type}")


def _equal_numbers(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if a.nullable or b.nullable:
        a, b = scope.sure(a), scope.sure(b)
    of: tuple[ColumnValue, ...] = (a, b)
    if is_float(a) and is_float(b):
        if may_be_nan(a) and may_be_nan(b):
            a, b = of = scope.sure(a), scope.sure(b)
            same = (a.column == b.column) & ~F.isnan(a.column)
        else:
            same = a.column == b.column
    elif is_decimal(a) or is_decimal(b):
        same = _decimal_of(a) == _decimal_of(b)
    elif is_float(a) or is_float(b):
        number, real = (b, a) if is_float(a) else (a, b)
        compared = _int_with_float(scope, "==", number, real)
        of, same = (a, b, compared), compared.column
    elif a.type == b.type == BOOLEAN:
        same = a.column == b.column
    else:
        same = as_long(a).column == as_long(b).column
    if not (a.nullable or b.nullable):
        return strict(same, BOOLEAN, *of)
    # An operand that is None makes the comparison null.
    if not (a.nullable and b.nullable):
        return boolean(F.coalesce(same, F.lit(False)), *of)
    return boolean(F.coalesce(same, a.column.isNull() & b.column.isNull()), *of)


def _order_numbers(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if is_int(a) and is_int(b):
        return strict(_OPERATORS[op](as_long(a).column, as_long(b).column), BOOLEAN, a, b)
    if is_decimal(a) or is_decimal(b):
        return strict(_OPERATORS[op](_decimal_of(a), _decimal_of(b)), BOOLEAN, a, b)
    if is_float(a) and is_float(b):
        return _order_floats(scope, op, a, b)
    a, b = scope.need(a), scope.need(b)
    if is_float(a):
        return _int_with_float(scope, _FLIP[op], b, a)
    return _int_with_float(scope, op, a, b)


def _order_floats(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    # For Spark NaN is the largest number, for Python every comparison with it is False.
    large, small = (b, a) if op in ("<", "<=") else (a, b)
    compared = _OPERATORS[op](a.column, b.column)
    if not may_be_nan(large):
        return strict(compared, BOOLEAN, a, b)
    # Null and false would be false.
    sure = scope.need(small)
    a, b = (sure, b) if small is a else (a, sure)
    return strict(_OPERATORS[op](a.column, b.column) & ~F.isnan(large.column), BOOLEAN, a, b, a)


def _int_with_float(
    scope: ColumnScope, op: str, number: ColumnValue, real: ColumnValue
) -> ColumnValue:
    """`number op real`: Python compares exactly, Spark two floats; null where one is null."""
    number, real = scope.sure(number), scope.sure(real)
    x, d = number.column.cast("long").cast("double"), real.column.cast("double")
    compared = _OPERATORS[op](x, d)
    if may_be_nan(real):
        compared = compared & ~F.isnan(d)
    nullable = number.nullable or real.nullable
    if any(v.constant is not None and abs(v.constant[0]) < EXACT for v in (number, real)):
        return boolean(compared, number, real).with_(nullable=nullable)
    # Only where both are equal as floats may the integer have been rounded to make them so.
    large = (x == d) & (F.abs(d) >= float(EXACT))
    column = F.when(large, scope.ask()).otherwise(compared)
    return boolean(column, number, real, number, real, safe=False).with_(nullable=nullable)


def _as(value: ColumnValue, to: ItemType) -> ColumnValue:
    return value.with_(column=value.column.cast(spark_type(to)), type=to, path=None, constant=None)


def may_be_nan(value: ColumnValue) -> bool:
    return value.constant is None or value.constant[0] != value.constant[0]


def _decimal_of(value: ColumnValue) -> Column:
    if is_float(value):
        raise NotCompilable("a decimal and a float are compared")
    if isinstance(value.type, Decimal):
        if value.type.precision - value.type.scale > 28 or value.type.scale > 18:
            raise NotCompilable(f"{value.type} is compared")
        return value.column
    return as_long(value).column.cast("decimal(20,0)")


def _equal_structs(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """Tuples, or rows, whose fields have the same names."""
    if holds_float(a.type) or holds_float(b.type):
        raise NotCompilable("tuples or rows with floats are compared")
    # All fields are computed before the first comparison, which may already decide.
    scope.use(*(a.parts or ()), *(b.parts or ()))
    mine, theirs = (
        dict(zip(structs.names_of(v.type), structs.fields_of(scope, v), strict=True))
        for v in (a, b)
    )
    fields = [equal(scope, x, theirs[name]) for name, x in mine.items()]
    same = reduce(lambda x, y: x & y, [f.column for f in fields], F.lit(True))
    both = boolean(same, *fields)
    if not (a.nullable or b.nullable):
        return both
    missing, other = _is_none(a), _is_none(b)
    return boolean(F.when(missing | other, missing & other).otherwise(same), both)


def _order_tuples(scope: ColumnScope, op: str, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    if (
        structs.arity(a) != structs.arity(b)
        or not structs.arity(a)
        or holds_float(a.type)
        or holds_float(b.type)
    ):
        raise NotCompilable(f"`{op}` between {a.type} and {b.type}")
    scope.use(*(a.parts or ()), *(b.parts or ()))
    a, b = scope.need(structs.whole(scope, a)), scope.need(structs.whole(scope, b))
    pairs = list(zip(structs.fields_of(scope, a), structs.fields_of(scope, b), strict=True))
    last = scope.sure(order(scope, op, *pairs[-1]))
    # The last pair decides where all before are equal; equal last pairs may hold None.
    equal_last = equal(scope, *pairs[-1])
    column = F.when(equal_last.column, F.lit(op in ("<=", ">="))).otherwise(last.column)
    values = [last, equal_last]
    for x, y in reversed(pairs[:-1]):
        same, before = equal(scope, x, y), scope.sure(order(scope, op, x, y))
        column = F.when(same.column, column).otherwise(before.column)
        values += [same, before]
    return boolean(column, *values, safe=False)


def holds_float(item: ValueType) -> bool:
    """True if items of this type contain a float."""
    if isinstance(item, Generator):
        return False
    inner = [item.element] if isinstance(item, Array) else [child for _, child in children(item)]
    return str(item) in FLOATS or any(map(holds_float, inner))
