"""What Python's builtins give, where it depends on what they are given."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation

from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    ZONE,
    DictOf,
    ExprType,
    computed_of,
    is_open,
    join,
    joined,
    number,
    part,
)
from hydro_core.functions.library.entry import CallSite, CallTyping
from hydro_core.functions.library.operators import binary, is_ordered
from hydro_core.functions.tree import Bind, Expr, Make, Op
from hydro_core.types.common import as_decimal, fit_decimal, type_of
from hydro_core.types.item import (
    BINARY,
    DATE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Row,
    Tuple,
)


def of_abs(site: CallSite) -> ExprType:
    """`abs(x)`."""
    site.count(1, 1)
    kind = site.args[0]
    found = kind if is_open(kind) or kind == TIMEDELTA else number(kind)
    if found is None:
        raise site.problem(f"`abs` takes a number, not {kind}")
    return found


def of_parts(gives: Callable[[ExprType], ExprType], least: int = 1) -> CallTyping:
    """What is made of the parts of a value, by their type."""

    def rule(site: CallSite) -> ExprType:
        site.count(least, 1)
        return gives(site.elements() if site.args else NULL)

    return rule


def array_of(element: ExprType) -> ExprType:
    """An array of parts of the type."""
    return Array(part(element))


def of_tuple(site: CallSite) -> ExprType:
    """`tuple(xs)`."""
    site.count(0, 1)
    if not site.args:
        return Tuple(())
    element, kind = site.elements(), site.args[0]
    if isinstance(kind, Tuple):
        return kind
    length = _length(site.exprs[0])
    if length is None:
        return computed_of(kind)
    return Tuple((part(element),) * length)


def _length(expr: Expr) -> int | None:
    """How many elements there surely are, None where it depends on the item."""
    match expr:
        case _ if isinstance(expr.type, Tuple):
            return len(expr.type.fields)
        case Op("sorted" | "list" | "reversed" | "enumerate", (source, *_)):
            return _length(source)
        case Op("zip", (_, *_) as sources):
            lengths = [_length(source) for source in sources]
            return None if None in lengths else min(n for n in lengths if n is not None)
        case Make("list") if expr.fields is not None:
            return len(expr.fields)
        case Bind("list" | "generator", value=source, conditions=()):
            return _length(source)
        case _:
            return None


def of_dict(site: CallSite) -> ExprType:
    """`dict(x)`."""
    site.count(0, 1)
    kind = site.args[0] if site.args else Row(())
    if isinstance(kind, Row | DictOf) or is_open(kind):
        return computed_of(kind) if is_open(kind) else kind
    pair = site.elements()
    match pair:
        case Tuple((key, value)):
            return DictOf(key, value)
        case Array(element):
            return DictOf(element, element)
        case _ if is_open(pair):
            return computed_of(pair)
        case _:
            raise site.problem(f"`dict` takes pairs, not {pair}")


def of_enumerate(site: CallSite) -> ExprType:
    """`enumerate(xs)`."""
    site.count(1, 2)
    return Array(Tuple((LONG, part(site.elements()))))


def of_zip(site: CallSite) -> ExprType:
    """`zip(xs, ys)`."""
    parts = tuple(part(site.elements(i)) for i in range(len(site.args)))
    return Array(Tuple(parts)) if parts else Array(NULL)


def of_number(result: ExprType) -> CallTyping:
    """`int(x)`, `float(x)`."""

    def rule(site: CallSite) -> ExprType:
        site.count(0, 2 if site.name == "int" else 1)
        kind = site.args[0] if site.args else LONG
        if not is_open(kind) and kind not in (STRING, BINARY) and number(kind) is None:
            raise site.problem(f"`{site.name}` takes a number or a string, not {kind}")
        return result

    return rule


def of_extreme(site: CallSite) -> ExprType:
    """`min` and `max`."""
    if not site.args:
        raise site.problem(f"`{site.name}` takes at least one argument")
    kinds = site.args if len(site.args) > 1 else (site.elements(),)
    result = joined(kinds, site.place)
    ordered = kinds if len(kinds) > 1 else kinds * 2
    if "key" in site.keywords:
        ordered = (site.apply("key", (result,)),) * 2
    _check_order(site, ordered)
    return join(result, site.keywords.get("default", NULL), site.place)


def _check_order(site: CallSite, kinds: tuple[ExprType, ...]) -> None:
    for kind in kinds:
        if not is_ordered(kinds[0], kind):
            both = f"{kinds[0]} and {kind} have" if kinds[0] != kind else f"{kind} has"
            raise site.problem(f"`{site.name}` compares, but {both} no order")


def of_sorted(site: CallSite) -> ExprType:
    """`sorted(xs)`."""
    site.count(1, 1)
    element = site.elements()
    key = site.apply("key", (element,)) if "key" in site.keywords else element
    _check_order(site, (key, key))
    return Array(part(element))


def of_sum(site: CallSite) -> ExprType:
    """`sum(xs)`."""
    site.count(1, 2)
    element = site.elements()
    start = site.args[1] if len(site.args) > 1 else site.keywords.get("start", LONG)
    if is_open(element):
        return ANY if element == ANY else start
    total = start
    for _ in range(40):
        wider = join(
            total, binary("+", total, element, (site.exprs[0],) * 2, site.place), site.place
        )
        if wider == total:
            break
        total = wider
    return total


def of_round(site: CallSite) -> ExprType:
    """`round(x, n)`."""
    site.count(1, 2)
    kind, digits = site.args[0], site.constant(1)
    if is_open(kind):
        return computed_of(kind)
    found = number(kind)
    if found is None:
        raise site.problem(f"`round` takes a number, not {kind}")
    if len(site.args) == 1 or digits is None or found == LONG:
        return LONG
    if isinstance(found, Decimal) and isinstance(digits, int):
        return fit_decimal(found.precision - found.scale + 1, max(0, min(digits, found.scale)))
    return found


def of_decimal(site: CallSite) -> ExprType:
    """`Decimal(x)`."""
    site.count(0, 1)
    value = site.constant(0)
    kind = site.args[0] if site.args else LONG
    if isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return type_of(DecimalValue(value))
        except InvalidOperation:
            raise site.problem(f"{value!r} is not a decimal number") from None
    if isinstance(kind, Decimal):
        return kind
    return as_decimal(LONG) if number(kind) == LONG else Decimal(38, 18)


def of_date(site: CallSite) -> ExprType:
    """`date(y, m, d)`."""
    if len(site.args) + len(site.keywords) != 3:
        raise site.problem("`date` takes a year, a month and a day")
    return DATE


def of_datetime(site: CallSite) -> ExprType:
    """`datetime(…)`."""
    zone = site.keywords.get("tzinfo", site.args[7] if len(site.args) > 7 else NULL)
    return TIMESTAMP_NTZ if zone == NULL else TIMESTAMP if zone == ZONE else ANY


def of_strptime(site: CallSite) -> ExprType:
    """`datetime.strptime(text, form)`."""
    form = site.constant(1)
    if not isinstance(form, str):
        return ANY
    return TIMESTAMP if "%z" in form else TIMESTAMP_NTZ


def of_combine(site: CallSite) -> ExprType:
    """`datetime.combine(day, time)`."""
    return TIMESTAMP if len(site.args) + len(site.keywords) > 2 else ANY
