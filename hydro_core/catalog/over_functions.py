"""The functions of `over`: values of a row by its position among the rows of its key.

Each has one entry, with its arguments, its type, and the rows of the key that it looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal as DecimalNumber
from types import MappingProxyType
from typing import Any, Literal

from hydro_core.catalog.aggregates import AGGREGATES, aggregate_type, argument_type
from hydro_core.catalog.spec import Aggregate, Arg, OverFunction, TypeProblem, option
from hydro_core.functions.tree import Fn
from hydro_core.types.common import common_type, type_of
from hydro_core.types.item import DOUBLE, LONG, UNKNOWN, ItemType, Scalar, Unknown, is_numeric
from hydro_core.types.values import ValueProblem, conform

Distance = timedelta | int | float | DecimalNumber
Looked = Literal["before", "peers", "next", "all"]
"""The rows of its key that a function looks at besides its own: those before, these and those equal
in the order, some that follow, or any.
"""

TypeOf = Callable[["OverCall"], ItemType]


@dataclass(frozen=True, slots=True)
class OverCall:
    """A function of `over` with the rows that it is over."""

    function: OverFunction
    row: ItemType
    order: ItemType | None
    """The type of the order, if that is one column or function."""


@dataclass(frozen=True, slots=True)
class OverFunctionSpec:
    """A function of `over`."""

    name: str
    summary: str
    result: TypeOf
    parameters: tuple[Arg, ...] = ()
    looks: Looked = "before"
    needs_order: bool = True

    @property
    def usage(self) -> str:
        """The text of a call."""
        parts = (
            (p.name if p.positional else f"{p.name}=…") if p.required else f"[{p.name}=…]"
            for p in self.parameters
        )
        return f"{self.name}({', '.join(parts)})"


def arguments_of(function: OverFunction) -> Iterator[tuple[Arg, Any]]:
    """The arguments of a function of `over`, each with its entry."""
    return zip(FUNCTIONS[function.function].parameters, function.arguments, strict=True)


def argument(function: OverFunction, name: str) -> Any:
    """An argument of a function of `over` by its name; None if it has none of the name."""
    return next((v for arg, v in arguments_of(function) if arg.name == name), None)


def aggregate_of(function: OverFunction) -> Aggregate | None:
    """The aggregate in the arguments of a function of `over`; None if it has none."""
    found = argument(function, "agg")
    return found if isinstance(found, Aggregate) else None


def looked_at(function: OverFunction) -> Iterator[str | Fn]:
    """The columns and functions of rows that a function of `over` reads."""
    value, of = argument(function, "v"), aggregate_of(function)
    if value is not None:
        yield value
    if of is not None:
        yield from of.arguments


def distance_of(function: OverFunction) -> Distance | None:
    """The distance within which rows count, if the function has one."""
    found: Distance | None = next(
        (v for arg, v in arguments_of(function) if arg.kind == "distance"), None
    )
    return found


def looks_of(function: OverFunction) -> Looked:
    """The rows of its key that the function looks at with these arguments."""
    if argument(function, "peers") or argument(function, "within") is not None:
        return "peers"
    if function.arguments and argument(function, "n") == 0:
        return "before"
    return FUNCTIONS[function.function].looks


def needs_order(function: OverFunction) -> bool:
    """True if it has no meaning without an order."""
    of = aggregate_of(function)
    if of is not None and AGGREGATES[of.function].needs_order:
        return True
    return FUNCTIONS[function.function].needs_order


def over_type(over: OverCall) -> ItemType:
    """The type of the column that a function of `over` gives."""
    distance = distance_of(over.function)
    if distance is not None:
        _check_distance(over, distance)
    return FUNCTIONS[over.function.function].result(over)


def _check_distance(over: OverCall, distance: Distance) -> None:
    name = over.function.function
    if over.order is None:
        raise TypeProblem(
            f"`{name}` measures a distance, and that needs one column to order by",
            'name the one that it is measured in: `order="at"`',
        )
    if isinstance(over.order, Unknown):
        return
    in_time = isinstance(over.order, Scalar) and over.order.name in _TIMES
    if not in_time and not is_numeric(over.order):
        raise TypeProblem(
            f"`{name}` measures a distance, and there is none between items of type {over.order}",
            "order by a number, a date or a timestamp",
        )
    if in_time != isinstance(distance, timedelta):
        wanted = "a timedelta" if in_time else "a number"
        raise TypeProblem(
            f"{_shown(distance)} is no distance between items of type {over.order}",
            f"it must be {wanted}" + (": `timedelta(minutes=30)`" if in_time else ""),
        )


_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def _shown(distance: Distance) -> str:
    return f"timedelta({distance})" if isinstance(distance, timedelta) else f"{distance}"


def _of(item: ItemType) -> TypeOf:
    return lambda over: item


def _aggregated(over: OverCall) -> ItemType:
    return aggregate_type(argument(over.function, "agg"), over.row)


def _shifted(over: OverCall) -> ItemType:
    item = argument_type(argument(over.function, "v"), over.row)
    default = argument(over.function, "default")
    if default is None or isinstance(item, Unknown):
        return item if default is None else common_type(item, type_of(default)) or UNKNOWN
    try:
        conform(default, item)
    except ValueProblem:
        common = common_type(item, type_of(default))
        if common is None:
            raise TypeProblem(
                f"`{over.function.function}` is over {item}, and its default is {default!r}",
                "let the default be a value of the same type",
            ) from None
        return common
    return item


def _ordered_by(over: OverCall) -> ItemType:
    return UNKNOWN if over.order is None else over.order


_AGGREGATE = Arg("agg", "aggregate", required=True)
_SHIFT = (
    Arg("v", "operand", required=True),
    Arg("n", "integer", default=1),
    Arg("default", "value"),
)

_ENTRIES = (
    OverFunctionSpec("row_number", "the row's place, from 1", _of(LONG)),
    OverFunctionSpec("rank", "the place of the first of the rows equal in `order`", _of(LONG)),
    OverFunctionSpec(
        "dense_rank", "how many different values of `order` there are up to this one", _of(LONG)
    ),
    OverFunctionSpec(
        "percent_rank",
        "`rank` less 1, of the rows less 1; 0.0 of one row",
        _of(DOUBLE),
        looks="all",
    ),
    OverFunctionSpec(
        "cume_dist",
        "how many of the rows stand up to the last that is equal in `order`",
        _of(DOUBLE),
        looks="all",
    ),
    OverFunctionSpec(
        "ntile",
        "which of n parts the row is in, from 1; the first ones are the longer",
        _of(LONG),
        (Arg("n", "integer", required=True, least=1),),
        looks="all",
    ),
    OverFunctionSpec(
        "lag", "the value n rows before, the default where there is no such row", _shifted, _SHIFT
    ),
    OverFunctionSpec(
        "lead",
        "the value n rows after, the default where there is no such row",
        _shifted,
        _SHIFT,
        looks="next",
    ),
    OverFunctionSpec(
        "running",
        "the aggregate of the rows from the first one to this one; with `peers` to the last that "
        "is equal in `order`",
        _aggregated,
        (_AGGREGATE, option("peers", "flag", default=False)),
    ),
    OverFunctionSpec(
        "rolling",
        "the aggregate of the last `rows`, this one included, or of those `within` a distance "
        "before this one in `order`, and of its equals",
        _aggregated,
        (
            _AGGREGATE,
            option("rows", "integer", least=1),
            option("within", "distance"),
        ),
    ),
    OverFunctionSpec(
        "whole",
        "the aggregate of all rows of the key",
        _aggregated,
        (_AGGREGATE,),
        looks="all",
        needs_order=False,
    ),
    OverFunctionSpec(
        "session",
        "the `order` of the first row of this row's session, which ends where the next row is "
        "farther than `gap`",
        _ordered_by,
        (option("gap", "distance", required=True),),
    ),
)

FUNCTIONS: Mapping[str, OverFunctionSpec] = MappingProxyType({f.name: f for f in _ENTRIES})
"""The functions of `over` by their names."""
