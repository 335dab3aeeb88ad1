"""Operators as entries of the library: what they compute, their types, what they cost as constants.

Integers of any width compute as 64 bits. Decimals compute as Python's do, with 28 digits; the type
of a result has room for every result of exact operands, as far as 38 digits go: digits after the
point are dropped first, and what comes out is rounded to them, half to even. A quotient has at
least 6 of them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from decimal import Decimal as DecimalValue
from itertools import pairwise
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    ExprType,
    MatchOf,
    Mixed,
    Place,
    SetOf,
    computed_of,
    is_open,
    join,
    joined,
    number,
    part,
)
from hydro_core.functions.library.entry import (
    CallCost,
    CallSite,
    CallTyping,
    LibraryFunction,
    TotalityRule,
)
from hydro_core.functions.library.meanings import (
    ARITHMETIC,
    COMPARED,
    cut_at,
    flat,
    formatted,
    joined_texts,
    unpacked,
)
from hydro_core.functions.library.typing_parts import index, sliced, unpack
from hydro_core.functions.tree import (
    COMPARISONS,
    FLATTEN,
    MATCHED,
    SLICES,
    UNPACK,
    Const,
    Expr,
    Make,
    Op,
    constant_of,
)
from hydro_core.types.common import as_decimal, fit_decimal
from hydro_core.types.item import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    Row,
    Tuple,
)

_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_TEXTS = (STRING, BINARY)
_ORDERS = ("<", "<=", ">", ">=")
_EQUALITIES = ("==", "!=", "is", "is not")


def binary(
    op: str, left: ExprType, right: ExprType, exprs: tuple[Expr, Expr], place: Place
) -> ExprType:
    """The kind of `left op right`."""
    if any(k == ANY or isinstance(k, Mixed) for k in (left, right)):
        return ANY
    if NULL in (left, right):
        # None computes with nothing: there is no result.
        return NULL
    a, b = number(left), number(right)
    found = _numbers(op, left, right, exprs) if a and b else _others(op, left, right, exprs)
    if found is None:
        raise TypeProblem(f"there is no `{left} {op} {right}`", _cure(op, left, right), place=place)
    return found


def _cure(op: str, left: ExprType, right: ExprType) -> str | None:
    if op == "+" and STRING in (left, right):
        return "make both strings: `str(x)`, or an f-string"
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return "make both decimals: `Decimal(x)`"
    return None


def _numbers(op: str, left: ExprType, right: ExprType, exprs: tuple[Expr, Expr]) -> ExprType | None:
    a, b = number(left), number(right)
    if op in ("&", "|", "^"):
        if left == BOOLEAN and right == BOOLEAN:
            return BOOLEAN
        return LONG if (a, b) == (LONG, LONG) else None
    if op in ("<<", ">>"):
        return LONG if (a, b) == (LONG, LONG) else None
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        if DOUBLE in (a, b):
            return None
        return _decimals(op, _exact(a, exprs[0]), _exact(b, exprs[1]))
    if DOUBLE in (a, b) or op == "/":
        return DOUBLE
    if op == "**":
        power = exprs[1].value if isinstance(exprs[1], Const) else None
        return LONG if isinstance(power, int) and power >= 0 else DOUBLE
    return LONG


def _exact(kind: ExprType | None, expr: Expr) -> Decimal:
    if isinstance(kind, Decimal):
        return kind
    if isinstance(expr, Const):
        return Decimal(max(1, len(str(abs(int(expr.value))))), 0)
    return as_decimal(LONG)


def _decimals(op: str, a: Decimal, b: Decimal) -> ExprType | None:
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    scale = max(a.scale, b.scale)
    match op:
        case "+" | "-":
            return fit_decimal(max(whole_a, whole_b) + 1, scale, scale)
        case "*":
            return fit_decimal(whole_a + whole_b, a.scale + b.scale, max(6, scale))
        case "/":
            return fit_decimal(whole_a + b.scale, max(6, a.scale + b.precision + 1), 6)
        case "//":
            return fit_decimal(whole_a + b.scale, 0)
        case "%":
            return fit_decimal(max(whole_a, whole_b), scale, scale)
        case "**":
            return Decimal(38, 18)
        case _:
            return None


def _others(op: str, left: ExprType, right: ExprType, exprs: tuple[Expr, Expr]) -> ExprType | None:
    if TIMEDELTA in (left, right) or left in _MOMENTS:
        return _times(op, left, right)
    if isinstance(left, SetOf) and isinstance(right, SetOf) and op in ("&", "|", "-", "^"):
        return join(left, right)
    match op:
        case "+":
            return _plus(left, right)
        case "*":
            if number(left) == LONG:
                left, right, exprs = right, left, (exprs[1], exprs[0])
            return _repeated(left, right, exprs[1])
        case "%" if left in _TEXTS:
            return left
        case "|" if isinstance(left, Row) and isinstance(right, Row):
            return merged(left, right)
        case _:
            return None


def _plus(left: ExprType, right: ExprType) -> ExprType | None:
    match left, right:
        case Array(x), Array(y):
            return Array(part(join(x, y)))
        case Tuple(xs), Tuple(ys):
            return Tuple(xs + ys)
        case _ if left == right and left in _TEXTS:
            return left
        case _:
            return None


def _repeated(left: ExprType, right: ExprType, times: Expr) -> ExprType | None:
    if number(right) != LONG:
        return None
    match left:
        case Array():
            return left
        case Tuple(fields):
            if isinstance(times, Const):
                return Tuple(fields * int(times.value))
            return ANY
        case _:
            return left if left in _TEXTS else None


def _times(op: str, left: ExprType, right: ExprType) -> ExprType | None:
    if left == right == TIMEDELTA:
        return {"+": TIMEDELTA, "-": TIMEDELTA, "%": TIMEDELTA, "/": DOUBLE, "//": LONG}.get(op)
    if op in ("+", "-") and left in _MOMENTS:
        if right == TIMEDELTA:
            return left
        return TIMEDELTA if op == "-" and left == right else None
    if op == "+" and left == TIMEDELTA and right in _MOMENTS:
        return right
    numbers = {"*": (LONG, DOUBLE), "/": (LONG, DOUBLE), "//": (LONG,)}.get(op, ())
    scaled = number(right) in numbers and left == TIMEDELTA
    swapped = op == "*" and number(left) in numbers and right == TIMEDELTA
    return TIMEDELTA if scaled or swapped else None


def merged(*rows: Row) -> Row:
    """The row `{**one, **another}`: a later column replaces an earlier one in its place."""
    columns = {f.name: f.type for row in rows for f in row.fields}
    return Row(tuple(Field(name, kind) for name, kind in columns.items()))


def _unary(site: CallSite) -> ExprType:
    (operand,) = site.args
    if is_open(operand):
        return computed_of(operand)
    found = number(operand)
    if site.name == "~x":
        found = LONG if found == LONG else None
    elif operand == TIMEDELTA:
        found = TIMEDELTA
    if found is None:
        raise site.problem(f"there is no `{site.name[0]} {operand}`")
    return found


def _compare(op: str, left: ExprType, right: ExprType, site: CallSite) -> None:
    """Refuses a comparison that fails whatever the values are."""
    if is_open(left) or is_open(right) or op in _EQUALITIES:
        return
    if op in ("in", "not in"):
        if not _may_hold(right, left):
            cure = "a string holds strings only: `str(x) in s`" if right == STRING else None
            raise site.problem(f"there is no `{left} {op} {right}`", cure)
        return
    if not is_ordered(left, right):
        mixed = {left, right} == {TIMESTAMP, TIMESTAMP_NTZ}
        cure = "`.replace(tzinfo=timezone.utc)` gives a timestamp a zone" if mixed else None
        raise site.problem(f"{left} and {right} have no order: `{op}` fails", cure)


def _may_hold(container: ExprType, item: ExprType) -> bool:
    if container == STRING:
        return item == STRING
    if container == BINARY:
        return item == BINARY or number(item) == LONG
    return (
        isinstance(container, Array | Tuple | Row | SetOf) or type(container).__name__ == "DictOf"
    )


def is_ordered(left: ExprType, right: ExprType) -> bool:
    """Whether Python may say which of two values is smaller."""
    if is_open(left) or is_open(right):
        return True
    if number(left) and number(right):
        return True
    match left, right:
        case Tuple(xs), Tuple(ys):
            return all(is_ordered(x, y) or x == y for x, y in zip(xs, ys, strict=False))
        case Array(x), Array(y):
            return is_ordered(x, y)
        case SetOf(), SetOf():
            return True
        case _:
            return left == right and (left in (*_TEXTS, *_MOMENTS, TIMEDELTA))


def _comparison(site: CallSite) -> ExprType:
    """The kind of `a < b <= c`."""
    for op, (left, right) in zip(site.name.split(","), pairwise(site.args), strict=True):
        _compare(op, left, right, site)
    return BOOLEAN


def _compares(node: Op, nulls: Sequence[bool]) -> bool:
    """Whether a comparison, or a chain of them, has a value."""
    operands = pairwise(zip(node.args, nulls, strict=True))
    return all(
        op in _EQUALITIES
        or (op in ("in", "not in") and _is_sequence(right))
        or (op in _ORDERS and not (one or other) and _have_order(left, right))
        for op, ((left, one), (right, other)) in zip(node.name.split(","), operands, strict=True)
    )


def _is_sequence(within: Expr) -> bool:
    constant = isinstance(within, Const) and isinstance(within.value, tuple | list)
    return constant or (isinstance(within, Make) and within.kind == "tuple")


def _have_order(left: Expr, right: Expr) -> bool:
    """Whether any two values of the types can be compared, neither of them null."""
    if any(isinstance(v, DecimalValue) and v.is_nan() for v in map(constant_of, (left, right))):
        return False
    a, b = number(left.type), number(right.type)
    if a is not None and b is not None:
        # a double may be NaN, with which a decimal has no order
        return DOUBLE not in (a, b) or not any(isinstance(n, Decimal) for n in (a, b))
    return left.type == right.type and left.type in (*_TEXTS, *_MOMENTS)


def _arithmetic(site: CallSite) -> ExprType:
    left, right = site.args
    return binary(site.name, left, right, (site.exprs[0], site.exprs[1]), site.place)


def _all_of(site: CallSite) -> ExprType:
    # Every match is true: what is handed on of one that was sought is None.
    *before, last = site.args
    return joined([*(NULL if isinstance(k, MatchOf) else k for k in before), last], site.place)


def _any_of(site: CallSite) -> ExprType:
    return joined(site.args, site.place)


def _index(site: CallSite) -> ExprType:
    base, key = site.args
    return index(base, key, constant_of(site.exprs[1]), site.place)


def _sliced(site: CallSite) -> ExprType:
    given = map(constant_of, site.exprs[1:])
    low, high, step = (next(given) if letter in site.name else None for letter in "lhs")
    return sliced(site.args[0], (low, high, step), site.place)


def _unpacking(site: CallSite) -> ExprType:
    count, star = site.constant(1), site.constant(2)
    return unpack(site.args[0], count, star, site.place, sure=site.name == UNPACK)


def _flattening(site: CallSite) -> ExprType:
    match site.args[0]:
        case Array(Array() as inner):
            return inner
        case Array(inner) if inner == NULL:
            return Array(NULL)
        case kind:
            return computed_of(kind)


def _before(name: str) -> CallCost:
    return lambda limits, args: limits.before(name, *args)


def _knows_nulls(
    function: Any,
    gives: CallTyping,
    cost: CallCost | None = None,
    has_value: TotalityRule | None = None,
) -> LibraryFunction:
    """An operator that says itself what it makes of a null."""
    return LibraryFunction(function, gives, cost=cost, nulls="own", has_value=has_value)


CHAIN = LibraryFunction(None, _comparison, has_value=_compares)
"""A chain of comparisons: each operand is evaluated once, up to the first False."""
OPERATORS: Mapping[str, LibraryFunction] = {
    "-x": LibraryFunction(operator.neg, _unary),
    "+x": LibraryFunction(operator.pos, _unary),
    "~x": LibraryFunction(operator.invert, _unary),
    "not": _knows_nulls(operator.not_, lambda _: BOOLEAN, has_value=lambda *_: True),
    **{
        name: LibraryFunction(function, _arithmetic, cost=_before(name))
        for name, function in ARITHMETIC.items()
    },
    **{name: LibraryFunction(COMPARED[name], _comparison, has_value=_compares) for name in _ORDERS},
    **{
        name: _knows_nulls(COMPARED[name], _comparison, has_value=_compares)
        for name in COMPARISONS
        if name not in _ORDERS
    },
    # These are no functions: not all of their operands are evaluated.
    "and": _knows_nulls(None, _all_of),
    "or": _knows_nulls(None, _any_of),
    "[]": LibraryFunction(operator.getitem, _index),
    **{name: _knows_nulls(cut_at(name), _sliced) for name in SLICES},
    "f-string": _knows_nulls(joined_texts, lambda _: STRING),
    "{}": _knows_nulls(
        formatted, lambda _: STRING, lambda limits, args: limits.before_format(*args[::2])
    ),
    UNPACK: LibraryFunction(unpacked, _unpacking),
    MATCHED: LibraryFunction(None, _unpacking),
    FLATTEN: LibraryFunction(flat, _flattening),
}
"""By the names that they have in trees."""
