"""What operators give of types: `+` and its like, subscripts and slices, and what is unpacked.

Integers of any width compute as 64 bits. Decimals compute as Python's do, with 28 digits; the type
of a result has room for every result of exact operands, as far as 38 digits go: digits after the
point are dropped first, and what comes out is rounded to them, half to even. A quotient has at
least 6 of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    DictOf,
    ExprType,
    MatchOf,
    Mixed,
    Place,
    SetOf,
    computed_of,
    elements,
    is_open,
    join,
    joined,
    number,
    part,
)
from hydro_core.functions.library.regex import group_kind
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
        return decimals(op, _exact(a, exprs[0]), _exact(b, exprs[1]))
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


def decimals(op: str, a: Decimal, b: Decimal) -> Decimal | None:
    """The type of `a op b` of two decimals; None where there is none."""
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


def column(row: Row, name: str, place: Place) -> ExprType:
    """The kind of a column that must be there."""
    found = row.column(name)
    if found is not None:
        return found
    raise TypeProblem(
        f"there is no column `{name}`; the columns are {', '.join(row.names) or 'none'}",
        near(name, row.names),
        place=place,
    )


def near(name: str, names: Iterable[str]) -> str | None:
    """The cure for a name that is not there, where another is like it."""
    folded = {n.lower(): n for n in names}
    found = difflib.get_close_matches(name.lower(), folded, 1, 0.5)
    return f"did you mean `{folded[found[0]]}`?" if found else None


def field(fields: tuple[Any, ...], position: int, place: Place) -> ExprType:
    """The kind of the field at a position, which may count from the end."""
    if -len(fields) <= position < len(fields):
        found: ExprType = fields[position]
        return found
    some = f"it has {len(fields)}" if fields else "it has none"
    which = position + 1 if position >= 0 else position
    raise TypeProblem(f"the tuple has no field {which}: {some}", place=place)


def index(base: ExprType, key: ExprType, constant: Any, place: Place) -> ExprType:
    """The kind of `base[key]`; `constant` is the key where it is one, else `...`."""
    if is_open(base):
        return computed_of(base)
    match base:
        case Row():
            return _in_row(base, key, constant, place)
        case DictOf(_, value):
            return value
        case Tuple(fields) if isinstance(constant, int):
            return field(fields, constant, place)
        case Tuple(fields):
            found = joined(fields, place)
            _integer(base, key, place)
            return found
        case Array(element):
            _integer(base, key, place)
            return element
        case _ if base in (STRING, BINARY):
            _integer(base, key, place)
            return STRING if base == STRING else LONG
        case MatchOf():
            return group_kind(base, key, constant, place)
        case _:
            raise TypeProblem(f"{base} has no parts: `[…]` fails", place=place)


def _in_row(row: Row, key: ExprType, constant: Any, place: Place) -> ExprType:
    if isinstance(constant, str):
        return column(row, constant, place)
    if not is_open(key) and key != STRING:
        cure = "name the column: " + ", ".join(f'`["{n}"]`' for n in row.names[:3])
        raise TypeProblem(f"the columns of a row have names, not a {key}", cure, place=place)
    return joined((f.type for f in row.fields), place)


def _integer(base: ExprType, key: ExprType, place: Place) -> None:
    if not is_open(key) and number(key) != LONG:
        raise TypeProblem(f"{base} is indexed by whole numbers, not by {key}", place=place)


def unpack(base: ExprType, count: int, star: int | None, place: Place, *, sure: bool) -> ExprType:
    """The tuple of targets that a value is unpacked to; `sure` unless a pattern may not match."""
    if is_open(base):
        return Tuple((part(ANY),) * count) if base != NULL else Tuple((NULL,) * count)
    if isinstance(base, Tuple):
        spare = len(base.fields) - count
        if spare == 0 if star is None else spare >= -1:
            if star is None:
                return base
            end = star + spare + 1
            middle = Array(part(joined(base.fields[star:end])))
            return Tuple((*base.fields[:star], middle, *base.fields[end:]))
        if sure:
            message = f"the tuple has {len(base.fields)} fields, and {count} names stand for them"
            raise TypeProblem(message, place=place)
        return Tuple((part(ANY),) * count)
    element = elements(base)
    if isinstance(base, Row) or element is None or isinstance(base, Mixed):
        if not sure:
            return Tuple((part(ANY),) * count)
        cure = "name its columns: `r.a`" if isinstance(base, Row) else None
        raise TypeProblem(f"{base} is not unpacked into its values", cure, place=place)
    found = [part(element)] * count
    if star is not None:
        found[star] = Array(part(element))
    return Tuple(tuple(found))
