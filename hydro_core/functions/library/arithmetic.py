"""What `+` and its like give of two types.

Integers of any width compute as 64 bits. Decimals compute as Python's do, with 28 digits; the type
of a result has room for every result of exact operands, as far as 38 digits go: digits after the
point are dropped first, and what comes out is rounded to them, half to even. A quotient has at
least 6 of them.
"""

from __future__ import annotations

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    ExprType,
    Mixed,
    Place,
    SetOf,
    join,
    number,
    part,
)
from hydro_core.functions.tree import Const, Expr
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

MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
TEXTS = (STRING, BINARY)


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
        raise no_such(op, left, right, _cure(op, left, right), place)
    return found


def no_such(
    op: str, left: ExprType, right: ExprType, cure: str | None, place: Place
) -> TypeProblem:
    """The problem that values of two types do not meet."""
    return TypeProblem(f"there is no `{left} {op} {right}`", cure, place=place)


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
    if TIMEDELTA in (left, right) or left in MOMENTS:
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
        case "%" if left in TEXTS:
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
        case _ if left == right and left in TEXTS:
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
            return left if left in TEXTS else None


def _times(op: str, left: ExprType, right: ExprType) -> ExprType | None:
    if left == right == TIMEDELTA:
        return {"+": TIMEDELTA, "-": TIMEDELTA, "%": TIMEDELTA, "/": DOUBLE, "//": LONG}.get(op)
    if op in ("+", "-") and left in MOMENTS:
        if right == TIMEDELTA:
            return left
        return TIMEDELTA if op == "-" and left == right else None
    if op == "+" and left == TIMEDELTA and right in MOMENTS:
        return right
    numbers = {"*": (LONG, DOUBLE), "/": (LONG, DOUBLE), "//": (LONG,)}.get(op, ())
    scaled = number(right) in numbers and left == TIMEDELTA
    swapped = op == "*" and number(left) in numbers and right == TIMEDELTA
    return TIMEDELTA if scaled or swapped else None


def merged(*rows: Row) -> Row:
    """The row `{**one, **another}`: a later column replaces an earlier one in its place."""
    columns = {f.name: f.type for row in rows for f in row.fields}
    return Row(tuple(Field(name, kind) for name, kind in columns.items()))
