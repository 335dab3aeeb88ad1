"""The kinds that calls of the builtins give.

Each entry gets a `CallSite`: the kinds of the arguments, and a way to ask for the kind of a `key=`
function's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.kinds import (
    ANY,
    NULL,
    TIMEDELTA,
    ZONE,
    DictOf,
    ExprType,
    SetOf,
    computed_of,
    constant_of,
    elements,
    is_open,
    join,
    joined,
    number,
    part,
)
from hydro_core.functions.tree import Call, Comprehension, Expr, MakeList, Place, Spread
from hydro_core.functions.typing_operators import binary, is_ordered
from hydro_core.functions.typing_parts import unpack
from hydro_core.types.common import as_decimal, fit_decimal, type_of
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
    Row,
    Tuple,
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that is typed."""

    name: str
    args: tuple[ExprType, ...]
    exprs: tuple[Expr, ...]
    keywords: Mapping[str, ExprType]
    apply: Callable[[str | int, tuple[ExprType, ...]], ExprType]
    place: Place
    known: Mapping[int, ExprType] = field(default_factory=dict)
    """The kinds of the expressions within the arguments, by their identity."""

    def problem(self, message: str, help: str | None = None) -> TypeProblem:  # noqa: A002
        """A problem with this call."""
        return TypeProblem(message, help, place=self.place)

    def count(self, least: int, most: int) -> None:
        """Refuses a wrong number of arguments."""
        given = len(self.args)
        if not least <= given <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.problem(f"`{self.name}` takes {wanted} arguments, not {given}")

    def elements(self, position: int = 0) -> ExprType:
        """What a loop over an argument gives."""
        found = elements(self.args[position])
        if found is None:
            raise self.problem(
                f"`{self.name}` goes through the parts of a value; {self.args[position]} has none"
            )
        return found

    def constant(self, position: int) -> Any:
        """An argument's value where it is constant, `...` where it is not, or is not given."""
        return constant_of(self.exprs[position]) if position < len(self.exprs) else ...


def call(site: CallSite) -> ExprType:
    """The kind of the call's result."""
    rule = _RULES.get(site.name)
    return ANY if rule is None else rule(site)


def _fixed(result: ExprType, least: int, most: int) -> Callable[[CallSite], ExprType]:
    def rule(site: CallSite) -> ExprType:
        site.count(least, most)
        return result

    return rule


def _abs(site: CallSite) -> ExprType:
    site.count(1, 1)
    kind = site.args[0]
    found = kind if is_open(kind) or kind == TIMEDELTA else number(kind)
    if found is None:
        raise site.problem(f"`abs` takes a number, not {kind}")
    return found


def _over(site: CallSite) -> ExprType:
    site.count(1, 1)
    site.elements()
    return BOOLEAN


def _len(site: CallSite) -> ExprType:
    site.count(1, 1)
    site.elements()
    return LONG


def _list(site: CallSite) -> ExprType:
    site.count(0, 1)
    return Array(part(site.elements())) if site.args else Array(NULL)


def _reversed(site: CallSite) -> ExprType:
    site.count(1, 1)
    return Array(part(site.elements()))


def _set(site: CallSite) -> ExprType:
    site.count(0, 1)
    return SetOf(site.elements()) if site.args else SetOf(NULL)


def _tuple(site: CallSite) -> ExprType:
    site.count(0, 1)
    if not site.args:
        return Tuple(())
    element, kind = site.elements(), site.args[0]
    if isinstance(kind, Tuple):
        return kind
    length = _length(site.exprs[0], site.known)
    if length is None:
        return computed_of(kind)
    return Tuple((part(element),) * length)


def _length(expr: Expr, known: Mapping[int, ExprType]) -> int | None:
    """How many elements there surely are, None where it depends on the item."""
    kind = known.get(id(expr))
    match expr:
        case _ if isinstance(kind, Tuple):
            return len(kind.fields)
        case Call("sorted" | "list" | "reversed" | "enumerate", (source, *_)):
            return _length(source, known)
        case Call("zip", (_, *_) as sources):
            lengths = [_length(source, known) for source in sources]
            return None if None in lengths else min(n for n in lengths if n is not None)
        case MakeList(_, "list") if not any(isinstance(p, Spread) for p in expr.parts):
            return len(expr.parts)
        case Comprehension(conditions=()) if expr.kind != "set":
            return _length(expr.source, known)
        case _:
            return None


def _dict(site: CallSite) -> ExprType:
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


def _enumerate(site: CallSite) -> ExprType:
    site.count(1, 2)
    return Array(Tuple((LONG, part(site.elements()))))


def _zip(site: CallSite) -> ExprType:
    parts = tuple(part(site.elements(i)) for i in range(len(site.args)))
    return Array(Tuple(parts)) if parts else Array(NULL)


def _number(result: ExprType) -> Callable[[CallSite], ExprType]:
    def rule(site: CallSite) -> ExprType:
        site.count(0, 2 if site.name == "int" else 1)
        kind = site.args[0] if site.args else LONG
        if not is_open(kind) and kind not in (STRING, BINARY) and number(kind) is None:
            raise site.problem(f"`{site.name}` takes a number or a string, not {kind}")
        return result

    return rule


def _extreme(site: CallSite) -> ExprType:
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


def _sorted(site: CallSite) -> ExprType:
    site.count(1, 1)
    element = site.elements()
    key = site.apply("key", (element,)) if "key" in site.keywords else element
    _check_order(site, (key, key))
    return Array(part(element))


def _sum(site: CallSite) -> ExprType:
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


def _round(site: CallSite) -> ExprType:
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


def _decimal(site: CallSite) -> ExprType:
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


def _date(site: CallSite) -> ExprType:
    if len(site.args) + len(site.keywords) != 3:
        raise site.problem("`date` takes a year, a month and a day")
    return DATE


def _datetime(site: CallSite) -> ExprType:
    zone = site.keywords.get("tzinfo", site.args[7] if len(site.args) > 7 else NULL)
    return TIMESTAMP_NTZ if zone == NULL else TIMESTAMP if zone == ZONE else ANY


def _strptime(site: CallSite) -> ExprType:
    form = site.constant(1)
    if not isinstance(form, str):
        return ANY
    return TIMESTAMP if "%z" in form else TIMESTAMP_NTZ


def _combine(site: CallSite) -> ExprType:
    return TIMESTAMP if len(site.args) + len(site.keywords) > 2 else ANY


def _unpack(site: CallSite) -> ExprType:
    count, star = site.constant(1), site.constant(2)
    return unpack(site.args[0], count, star, site.place, sure=site.name == "(unpack)")


def _flatten(site: CallSite) -> ExprType:
    match site.args[0]:
        case Array(Array() as inner):
            return inner
        case Array(inner) if inner == NULL:
            return Array(NULL)
        case kind:
            return computed_of(kind)


_RULES: Mapping[str, Callable[[CallSite], ExprType]] = {
    "abs": _abs,
    "all": _over,
    "any": _over,
    "bool": _fixed(BOOLEAN, 0, 1),
    "dict": _dict,
    "enumerate": _enumerate,
    "float": _number(DOUBLE),
    "int": _number(LONG),
    "len": _len,
    "list": _list,
    "max": _extreme,
    "min": _extreme,
    "range": _fixed(Array(LONG), 1, 3),
    "reversed": _reversed,
    "round": _round,
    "set": _set,
    "sorted": _sorted,
    "str": _fixed(STRING, 0, 3),
    "sum": _sum,
    "tuple": _tuple,
    "zip": _zip,
    "date": _date,
    "datetime": _datetime,
    "timedelta": _fixed(TIMEDELTA, 0, 7),
    "timezone": _fixed(ZONE, 1, 2),
    "Decimal": _decimal,
    "date.fromisoformat": _fixed(DATE, 1, 1),
    "date.fromordinal": _fixed(DATE, 1, 1),
    "date.fromisocalendar": _fixed(DATE, 3, 3),
    # What names no zone is meant in UTC, as it is in data.
    "datetime.fromisoformat": _fixed(TIMESTAMP, 1, 1),
    "datetime.fromordinal": _fixed(TIMESTAMP_NTZ, 1, 1),
    "datetime.fromtimestamp": _fixed(TIMESTAMP, 1, 2),
    "datetime.strptime": _strptime,
    "datetime.combine": _combine,
    "Decimal.from_float": _fixed(Decimal(38, 18), 1, 1),
    "float.fromhex": _fixed(DOUBLE, 1, 1),
    "int.from_bytes": _fixed(LONG, 1, 2),
    "(unpack)": _unpack,
    "(matched)": _unpack,
    "(flatten)": _flatten,
}
