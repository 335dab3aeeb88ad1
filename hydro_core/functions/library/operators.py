"""Operators as entries of the library: results, types, and costs as constants."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal as DecimalValue
from itertools import pairwise
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    DictOf,
    ExprType,
    MatchOf,
    MixedType,
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
from hydro_core.functions.library.entry import (
    GROWTH,
    AggregateStep,
    CallSite,
    CallTyping,
    Cost,
    Members,
    Operation,
    check_format,
    check_made,
    width_of,
)
from hydro_core.functions.library.regex import group_kind
from hydro_core.functions.tree import (
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

# Types of the results of operators: `+` and its like, subscripts and slices, and unpacking.
#
# Integers of any width compute with 64 bits. Decimals compute as Python's do, with 28 digits; the
# type of a result fits every result of exact operands, up to 38 digits: digits after the point are
# dropped first, and the result is rounded to them, half to even. A quotient has at least 6 of them.


MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
TEXTS = (STRING, BINARY)


def binary(
    op: str, left: ExprType, right: ExprType, exprs: tuple[Expr, Expr], place: Place
) -> ExprType:
    """The kind of `left op right`."""
    if any(k == ANY or isinstance(k, MixedType) for k in (left, right)):
        return ANY
    if NULL in (left, right):
        # None computes with nothing: the operation has no result.
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
    """The type of `a op b` of two decimals; None if no type fits."""
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
    """The row `{**one, **another}`: a later column replaces an earlier one in its position."""
    columns = {f.name: f.type for row in rows for f in row.fields}
    return Row(tuple(Field(name, kind) for name, kind in columns.items()))


def column(row: Row, name: str, place: Place) -> ExprType:
    """The type of a column that must exist."""
    found = row.column(name)
    if found is not None:
        return found
    raise TypeProblem(
        f"there is no column `{name}`; the columns are {', '.join(row.names) or 'none'}",
        near(name, row.names),
        place=place,
    )


def near(name: str, names: Iterable[str]) -> str | None:
    """The help for an unknown name, if a similar one exists."""
    folded = {n.lower(): n for n in names}
    found = difflib.get_close_matches(name.lower(), folded, 1, 0.5)
    return f"did you mean `{folded[found[0]]}`?" if found else None


def field(fields: tuple[Any, ...], position: int, place: Place) -> ExprType:
    """The type of the field at a position, which may count from the end."""
    if -len(fields) <= position < len(fields):
        found: ExprType = fields[position]
        return found
    some = f"it has {len(fields)}" if fields else "it has none"
    which = position + 1 if position >= 0 else position
    raise TypeProblem(f"the tuple has no field {which}: {some}", place=place)


def index(base: ExprType, key: ExprType, constant: Any, place: Place) -> ExprType:
    """The type of `base[key]`; `constant` is the value of a constant key, else `...`."""
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
    """The tuple of targets of an unpacked value; `sure` unless a pattern may not match."""
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
    if isinstance(base, Row) or element is None or isinstance(base, MixedType):
        if not sure:
            return Tuple((part(ANY),) * count)
        cure = "name its columns: `r.a`" if isinstance(base, Row) else None
        raise TypeProblem(f"{base} is not unpacked into its values", cure, place=place)
    found = [part(element)] * count
    if star is not None:
        found[star] = Array(part(element))
    return Tuple(tuple(found))


# Operators as entries of the library: their results, types, and costs as constants.


_ORDERS = ("<", "<=", ">", ">=")
_EQUALITIES = ("==", "!=", "is", "is not")


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
    """Refuses a comparison that fails for all values."""
    if is_open(left) or is_open(right) or op in _EQUALITIES:
        return
    if op in ("in", "not in"):
        if not _may_hold(right, left):
            cure = "a string holds strings only: `str(x) in s`" if right == STRING else None
            raise no_such(op, left, right, cure, site.place)
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
    return isinstance(container, Array | Tuple | Row | SetOf | DictOf)


def is_ordered(left: ExprType, right: ExprType) -> bool:
    """True if Python may order two values of the types."""
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
            return left == right and (left in (*TEXTS, *MOMENTS, TIMEDELTA))


def _comparison(site: CallSite) -> ExprType:
    for op, (left, right) in zip(site.name.split(","), pairwise(site.args), strict=True):
        _compare(op, left, right, site)
    return BOOLEAN


def _compares(node: Op, nulls: Sequence[bool]) -> bool:
    """True if a comparison, or a chain of them, has a value."""
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
    """True if any two values of the types, neither of them null, can be compared."""
    if any(isinstance(v, DecimalValue) and v.is_nan() for v in map(constant_of, (left, right))):
        return False
    a, b = number(left.type), number(right.type)
    if a is not None and b is not None:
        # A double may be NaN, which has no order with a decimal.
        return DOUBLE not in (a, b) or not any(isinstance(n, Decimal) for n in (a, b))
    return left.type == right.type and left.type in (*TEXTS, *MOMENTS)


def _arithmetic(site: CallSite) -> ExprType:
    left, right = site.args
    return binary(site.name, left, right, (site.exprs[0], site.exprs[1]), site.place)


def _all_of(site: CallSite) -> ExprType:
    # A successful match is true; a failed one is None.
    *before, last = site.args
    return joined([*(NULL if isinstance(k, MatchOf) else k for k in before), last], site.place)


def _index(site: CallSite) -> ExprType:
    base, key = site.args
    return index(base, key, constant_of(site.exprs[1]), site.place)


def _sliced(site: CallSite) -> ExprType:
    base, given = site.args[0], map(constant_of, site.exprs[1:])
    bounds = [next(given) if letter in site.name else None for letter in "lhs"]
    if is_open(base):
        return computed_of(base)
    if isinstance(base, Tuple):
        return ANY if ... in bounds else Tuple(base.fields[slice(*bounds)])
    if not isinstance(base, Array) and base not in TEXTS:
        raise site.problem(f"{base} has no parts: `[…:…]` fails")
    return base


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


# Operations that are no function of Python's own.


def formatted(value: Any, conversion: str, spec: str) -> str:
    """A value of an f-string, by its conversion: `!r`, `!s`, `!a` or none.

    >>> formatted(1.5, "", ">5"), formatted("a", "r", ">5")
    ('  1.5', "  'a'")
    """
    check_made(width_of(spec), "format")
    text = format(CONVERSIONS[conversion](value), spec)
    check_made(len(text), "format")
    return text


MOST_BITS = 1_000_000
"""Bits of an integer in intermediate results: larger ones take long, and memory."""


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and not -2 < base < 2:
        _check_bits(base.bit_length() * exponent)
    return base**exponent


def _shifted(number: Any, bits: Any) -> Any:
    if isinstance(number, int) and isinstance(bits, int) and number:
        _check_bits(number.bit_length() + bits)
    return number << bits


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    elif isinstance(left, int) or isinstance(right, int):
        times, value = (left, right) if isinstance(left, int) else (right, left)
        if isinstance(value, _SEQUENCES):
            check_made(len(value) * times, "*")
    return left * right


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, _SEQUENCES) and isinstance(right, _SEQUENCES):
        check_made(len(left) + len(right), "+")
    return left + right


def _remainder(left: Any, right: Any) -> Any:
    if not isinstance(left, str | bytes):
        return left % right
    form = left if isinstance(left, str) else left.decode("latin-1")
    widths = right if isinstance(right, tuple) and "*" in form else ()
    check_made(width_of(form) + sum(abs(n) for n in widths if isinstance(n, int)), "%")
    text = left % right
    check_made(len(text), "%")
    return text


def _check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise OverflowError(f"an integer of more than {MOST_BITS:,} bits")


_SEQUENCES = (str, bytes, list, tuple)
GROWING: Mapping[str, Callable[[Any, Any], Any]] = {
    "**": _power,
    "<<": _shifted,
    "*": _product,
    "+": _sum,
    "%": _remainder,
}
"""Operators whose result may be much larger than their operands: bounded at run time, since a
result beyond 64 bits fails in any case, and must do so in time.
"""
CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda value: value,
    "r": repr,
    "s": str,
    "a": ascii,
}


def cut_at(name: str) -> Callable[..., Any]:

    def cut(value: Any, *bounds: Any) -> Any:
        given = iter(bounds)
        return value[slice(*(next(given) if letter in name else None for letter in "lhs"))]

    return cut


def unpacked(value: Any, count: int, star: int | None) -> tuple[Any, ...]:
    """`a, b, *c = value`, as a tuple of the targets."""
    parts = list(value)
    if star is None:
        if len(parts) != count:
            raise ValueError(f"{len(parts)} values to unpack, where {count} are expected")
        return tuple(parts)
    if len(parts) < count - 1:
        raise ValueError(f"{len(parts)} values to unpack, where at least {count - 1} are expected")
    end = len(parts) - (count - star - 1)
    return (*parts[:star], parts[star:end], *parts[end:])


def flat(lists: Any) -> list[Any]:
    """One list of several."""
    return [element for inner in lists for element in inner]


def _knows_nulls(
    gives: ExprType | CallTyping, function: Any = None, cost: Cost | None = None
) -> Operation:
    """An operator that defines its result for nulls."""
    return Operation(gives, None, function, cost=cost, nulls="own")


def _computes(
    name: str,
    function: Callable[[Any, Any], Any],
    syntax: type[ast.AST],
    step: AggregateStep | None = None,
) -> Operation:
    """An operator of two operands: a null among them fails."""
    return Operation(
        *(_arithmetic, None, function),
        cost=lambda limits, args: limits.before(name, *args),
        syntax=syntax,
        step=step,
    )


def _compares_values(function: Callable[[Any, Any], Any], syntax: type[ast.AST]) -> Operation:
    """A comparison that defines its result for nulls."""
    return Operation(_comparison, None, function, nulls="own", has_value=_compares, syntax=syntax)


def _orders(
    function: Callable[[Any, Any], Any], syntax: type[ast.AST], step: AggregateStep
) -> Operation:
    """A comparison of two values that have an order: a null among them fails."""
    return Operation(_comparison, None, function, has_value=_compares, syntax=syntax, step=step)


CHAIN = Operation(_comparison, has_value=_compares)
"""A chain of comparisons: each operand is evaluated once, up to the first False."""
_ARITHMETIC: Mapping[str, tuple[Callable[[Any, Any], Any], type[ast.AST], AggregateStep | None]] = {
    "+": (operator.add, ast.Add, "plus"),
    "-": (operator.sub, ast.Sub, "minus"),
    "*": (operator.mul, ast.Mult, None),
    "/": (operator.truediv, ast.Div, None),
    "//": (operator.floordiv, ast.FloorDiv, None),
    "%": (operator.mod, ast.Mod, None),
    "**": (operator.pow, ast.Pow, None),
    "&": (operator.and_, ast.BitAnd, None),
    "|": (operator.or_, ast.BitOr, None),
    "^": (operator.xor, ast.BitXor, None),
    "<<": (operator.lshift, ast.LShift, None),
    ">>": (operator.rshift, ast.RShift, None),
}
OPERATORS: Members = {
    "-x": Operation(_unary, None, operator.neg, syntax=ast.USub),
    "+x": Operation(_unary, None, operator.pos, syntax=ast.UAdd),
    "~x": Operation(_unary, None, operator.invert, syntax=ast.Invert),
    "not": Operation(
        *(BOOLEAN, None, operator.not_),
        nulls="own",
        has_value=lambda *_: True,
        syntax=ast.Not,
    ),
    **{name: _computes(name, *meaning) for name, meaning in _ARITHMETIC.items()},
    "<": _orders(operator.lt, ast.Lt, "least"),
    "<=": _orders(operator.le, ast.LtE, "least"),
    ">": _orders(operator.gt, ast.Gt, "greatest"),
    ">=": _orders(operator.ge, ast.GtE, "greatest"),
    "==": _compares_values(operator.eq, ast.Eq),
    "!=": _compares_values(operator.ne, ast.NotEq),
    "in": _compares_values(lambda a, b: a in b, ast.In),
    "not in": _compares_values(lambda a, b: a not in b, ast.NotIn),
    "is": _compares_values(operator.is_, ast.Is),
    "is not": _compares_values(operator.is_not, ast.IsNot),
    # These are no functions: not all of their operands are evaluated.
    "and": Operation(_all_of, nulls="own", syntax=ast.And),
    "or": Operation(lambda site: joined(site.args, site.place), nulls="own", syntax=ast.Or),
    "[]": Operation(_index, None, operator.getitem),
    **{name: _knows_nulls(_sliced, cut_at(name)) for name in SLICES},
    "f-string": _knows_nulls(STRING, lambda *texts: "".join(texts)),
    "{}": _knows_nulls(
        *(STRING, formatted),
        cost=lambda limits, args: limits.foresee(
            check_format(args[2]) + GROWTH * limits.weight(args[0])
        ),
    ),
    UNPACK: Operation(_unpacking, None, unpacked),
    MATCHED: Operation(_unpacking),
    FLATTEN: Operation(_flattening, None, flat),
}
"""Operators by their names in trees."""
SYNTAX: Mapping[str, type[ast.AST]] = {
    name: entry.syntax for name, entry in OPERATORS.items() if entry.syntax is not None
}
