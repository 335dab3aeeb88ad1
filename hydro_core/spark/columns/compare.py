"""Python's comparisons and truth on Spark.

`==` is never null and never fails: None equals None, NaN does not equal NaN, values of different
kinds differ. `<` and its kin fail on None. An int is compared with a float exactly, not as two
floats.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column

from hydro_core.spark.columns import moments, structs
from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.integers import as_long, either, is_int, literal
from hydro_core.spark.columns.numbers import is_decimal, is_float, is_number
from hydro_core.spark.columns.scope import Scope
from hydro_core.spark.columns.value import (
    DURATION,
    NotCompilable,
    Value,
    boolean,
    refuse_loss,
)
from hydro_core.spark.types import spark_type
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    BOOLEAN,
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
_FLOAT_BITS = 53
_EXACT = 2**_FLOAT_BITS


def truth(scope: Scope, value: Value) -> Value:
    """`bool(value)`."""
    if value.type == UNKNOWN:
        refuse_loss(value)
        return boolean(F.lit(False))
    if value.wide is not None:
        return boolean(either(scope, (value,), lambda x: x != 0), value, safe=False)
    column = _truth(value)
    if value.nullable:
        column = F.coalesce(column, F.lit(False))
    return boolean(column, value)


def equal(scope: Scope, a: Value, b: Value) -> Value:
    """`a == b`."""
    moments.refuse_long(a, b)
    if UNKNOWN in (a.type, b.type):
        refuse_loss(a, b)
        return boolean(_is_none(a) & _is_none(b), a, b)
    if is_number(a) and is_number(b):
        return _equal_numbers(scope, _unmixed(a), _unmixed(b))
    if (
        isinstance(a.type, Tuple)
        and isinstance(b.type, Tuple)
        and structs.arity(a) == structs.arity(b)
    ):
        return _equal_fields(scope, a, b, structs.fields_of(scope, a), structs.fields_of(scope, b))
    if isinstance(a.type, Row) and isinstance(b.type, Row) and _same_names(a.type, b.type):
        theirs = dict(zip(b.type.names, structs.fields_of(scope, b), strict=True))
        pairs = [theirs[name] for name in a.type.names]
        return _equal_fields(scope, a, b, structs.fields_of(scope, a), pairs)
    if a.type == b.type and not (isinstance(a.type, Tuple | Row) or a.mixed or b.mixed):
        if isinstance(a.type, Array) and holds_float(a.type):
            raise NotCompilable("arrays of floats are compared")
        plain = not (a.nullable or b.nullable)
        column = a.column == b.column if plain else a.column.eqNullSafe(b.column)
        return boolean(column, a, b)
    if isinstance(a.type, Array) and isinstance(b.type, Array):
        to = common_type(a.type, b.type)
        if to is not None and structs.fits(a.type, to) and structs.fits(b.type, to):
            return equal(scope, _as(a, to), _as(b, to))
    if a.mixed or b.mixed or isinstance(a.type, Array) or isinstance(b.type, Array):
        raise NotCompilable(f"{a.type} and {b.type} are compared")
    refuse_loss(a, b)
    return boolean(_is_none(a) & _is_none(b), a, b)


def order(scope: Scope, op: str, a: Value, b: Value) -> Value:
    """`a < b` and its kin."""
    moments.refuse_long(a, b)
    if is_number(a) and is_number(b):
        return _order_numbers(scope, op, _unmixed(a), _unmixed(b))
    if isinstance(a.type, Tuple) and isinstance(b.type, Tuple):
        return _order_tuples(scope, op, a, b)
    if a.type != b.type or not (isinstance(a.type, Scalar) or a.type == DURATION):
        raise NotCompilable(f"`{op}` between {a.type} and {b.type}")
    x, y = scope.need(a, "an operand").column, scope.need(b, "an operand").column
    return boolean(_apply(op, x, y), a, b, safe=not (a.nullable or b.nullable))


def is_none(value: Value) -> Value:
    """`value is None`."""
    if not value.nullable:
        refuse_loss(value)
    return boolean(_is_none(value), value)


def negation(value: Value) -> Value:
    """`not value`, of a truth value."""
    return value.with_(column=~value.column, constant=None, path=None)


def _is_none(value: Value) -> Column:
    if not value.nullable:
        return F.lit(False)
    return F.lit(True) if value.type == UNKNOWN else value.column.isNull()


def _truth(value: Value) -> Column:  # noqa: C901, PLR0911 - a closed set of cases
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
            refuse_loss(*value.parts)
            return F.lit(True)
        case _ if value.type == DURATION:
            return value.column != 0
        case _ if isinstance(value.type, ItemType):
            return value.column.isNotNull()
        case _:
            raise NotCompilable(f"the truth of {value.type}")


def _equal_numbers(scope: Scope, a: Value, b: Value) -> Value:
    if is_float(a) and is_float(b):
        x, y = a.column, b.column
        same = (x == y) & ~F.isnan(x) if _may_be_nan(a) and _may_be_nan(b) else x == y
    elif is_decimal(a) or is_decimal(b):
        if is_float(a) or is_float(b):
            raise NotCompilable("a decimal and a float are compared")
        same = _decimal_of(scope, a) == _decimal_of(scope, b)
    elif is_float(a) or is_float(b):
        number, real = (b, a) if is_float(a) else (a, b)
        same = _int_with_float(scope, "==", number, real)
    elif a.wide is not None or b.wide is not None:
        if a.nullable or b.nullable:
            raise NotCompilable("None or an integer that may pass 64 bits is compared")
        return boolean(either(scope, (a, b), lambda x, y: x == y), a, b, safe=False)
    elif a.type == b.type == BOOLEAN:
        same = a.column == b.column
    else:
        same = as_long(a).column == as_long(b).column
    if not (a.nullable or b.nullable):
        return boolean(same, a, b)
    # An operand that is None makes the comparison null.
    if not (a.nullable and b.nullable):
        return boolean(F.coalesce(same, F.lit(False)), a, b)
    return boolean(F.coalesce(same, a.column.isNull() & b.column.isNull()), a, b)


def _order_numbers(scope: Scope, op: str, a: Value, b: Value) -> Value:
    if is_int(a) and is_int(b):
        if a.wide is None and b.wide is None:
            x, y = as_long(a), as_long(b)
            compared = _apply(
                op, scope.need(x, "an operand").column, scope.need(y, "an operand").column
            )
            return boolean(compared, a, b, safe=not (a.nullable or b.nullable))
        return boolean(either(scope, (a, b), lambda x, y: _apply(op, x, y)), a, b, safe=False)
    if is_decimal(a) or is_decimal(b):
        if is_float(a) or is_float(b):
            raise NotCompilable("a decimal and a float are compared")
        left, right = scope.need(a, "an operand"), scope.need(b, "an operand")
        compared = _apply(op, _decimal_of(scope, left), _decimal_of(scope, right))
        return boolean(compared, a, b, safe=False)
    a, b = scope.need(a, "an operand"), scope.need(b, "an operand")
    if is_float(a) and is_float(b):
        return boolean(_order_floats(op, a, b), a, b)
    if is_float(a):
        return boolean(_int_with_float(scope, _FLIP[op], b, a), a, b)
    return boolean(_int_with_float(scope, op, a, b), a, b)


def _order_floats(op: str, a: Value, b: Value) -> Column:
    # To Spark NaN is the largest number, to Python every comparison with it is False.
    large = b if op in ("<", "<=") else a
    compared = _apply(op, a.column, b.column)
    return compared & ~F.isnan(large.column) if _may_be_nan(large) else compared


def _int_with_float(scope: Scope, op: str, number: Value, real: Value) -> Column:
    """`number op real`, exactly."""
    if number.wide is not None:
        raise NotCompilable("a float and an integer that may pass 64 bits are compared")
    x, d = as_long(number).column, real.column.cast("double")
    compared = _apply(op, x.cast("double"), d)
    if _may_be_nan(real):
        compared = compared & ~F.isnan(d)
    if real.constant is not None and abs(real.constant[0]) < _EXACT:
        return compared
    if number.constant is not None and abs(number.constant[0]) < _EXACT:
        return compared
    # Only where both are equal as floats may the integer have been rounded to make them so.
    inside = _apply(op, x, F.when(d < 2.0**63, d.cast("long")).otherwise(literal(2**63 - 1)))
    beyond = F.lit({"==": False, "<": True, "<=": True, ">": False, ">=": False}[op])
    return F.when(
        (x.cast("double") == d) & (F.abs(d) >= float(_EXACT)),
        F.when(d < 2.0**63, inside).otherwise(beyond),
    ).otherwise(compared)


def _unmixed(value: Value) -> Value:
    if value.mixed > _FLOAT_BITS:
        raise NotCompilable("an operand is an int for some items and a float for others")
    return value.with_(mixed=0)


def _as(value: Value, to: ItemType) -> Value:
    return value.with_(column=value.column.cast(spark_type(to)), type=to, path=None, constant=None)


def _may_be_nan(value: Value) -> bool:
    return value.constant is None or value.constant[0] != value.constant[0]


def _decimal_of(scope: Scope, value: Value) -> Column:
    if isinstance(value.type, Decimal):
        if value.type.precision - value.type.scale > 28 or value.type.scale > 18:
            raise NotCompilable(f"{value.type} is compared")
        return value.column
    if value.wide is not None:
        raise NotCompilable("a decimal and an integer that may pass 64 bits are compared")
    return as_long(value).column.cast("decimal(20,0)")


def _same_names(a: Row, b: Row) -> bool:
    return set(a.names) == set(b.names)


def _equal_fields(
    scope: Scope, a: Value, b: Value, mine: list[Value], theirs: list[Value]
) -> Value:
    if holds_float(a.type) or holds_float(b.type):
        raise NotCompilable("tuples or rows with floats are compared")
    _refuse_computed(a, b)
    fields = [equal(scope, x, y) for x, y in zip(mine, theirs, strict=True)]
    same = reduce(lambda x, y: x & y, [f.column for f in fields], F.lit(True))
    both = boolean(same, *fields)
    if not (a.nullable or b.nullable):
        return both
    missing, other = _is_none(a), _is_none(b)
    return boolean(F.when(missing | other, missing & other).otherwise(same), both)


def _refuse_computed(*values: Value) -> None:
    """All fields are computed before the first comparison, which may already decide."""
    if not all(part.safe for value in values for part in value.parts or ()):
        raise NotCompilable("tuples or rows with computed fields are compared")


def _order_tuples(scope: Scope, op: str, a: Value, b: Value) -> Value:
    if (
        structs.arity(a) != structs.arity(b)
        or not structs.arity(a)
        or holds_float(a.type)
        or holds_float(b.type)
    ):
        raise NotCompilable(f"`{op}` between {a.type} and {b.type}")
    _refuse_computed(a, b)
    a, b = (
        scope.need(structs.whole(scope, a), "an operand"),
        scope.need(structs.whole(scope, b), "an operand"),
    )
    pairs = list(zip(structs.fields_of(scope, a), structs.fields_of(scope, b), strict=True))
    last = order(scope, op, *pairs[-1])
    # The last pair decides where all before are equal; equal last pairs may hold None.
    equal_last = equal(scope, *pairs[-1])
    column = F.when(equal_last.column, F.lit(op in ("<=", ">="))).otherwise(last.column)
    values = [last, equal_last]
    for x, y in reversed(pairs[:-1]):
        same, before = equal(scope, x, y), order(scope, op, x, y)
        column = F.when(same.column, column).otherwise(before.column)
        values += [same, before]
    return boolean(column, *values, safe=False)


def holds_float(item: object) -> bool:
    """Whether a float stands anywhere in items of this type."""
    match item:
        case Scalar("float" | "double"):
            return True
        case Array(element):
            return holds_float(element)
        case Tuple() | Row():
            return any(holds_float(child) for _, child in children(item))
        case _:
            return False


def _apply(op: str, x: Column, y: Column) -> Column:
    match op:
        case "==":
            return x == y
        case "<":
            return x < y
        case "<=":
            return x <= y
        case ">":
            return x > y
        case _:
            return x >= y
