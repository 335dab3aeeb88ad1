"""Uses of every entry of the library over one row: operators, builtins, data, methods."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice, product
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.library.operators import OPERATORS
from hydro_core.functions.library.registry import ALL_METHODS, FUNCTIONS
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Const, Expr, Fn, Op, Param, Part
from hydro_core.types.ddl import parse_ddl

DDL = (
    "t string, u string, a long, b long, f double, m decimal(10,2), y binary, d date, "
    "w timestamp, n timestamp_ntz, z array<string>, k array<long>"
)
ITEM = parse_ddl(DDL)
VALUES: dict[str, Any] = {
    "t": "a1", "u": "b", "a": 2, "b": 3, "f": 0.5, "m": Decimal("1.50"), "y": b"xy",
    "d": dt.date(2024, 2, 29), "w": dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC),
    "n": dt.datetime(2024, 2, 29, 1), "z": ["p", "q"], "k": [1, 2],
}  # fmt: skip
"""A row."""
ROW = Param("r")
OPERANDS: Mapping[str, Expr] = {name: Part(ROW, name, True) for name in ITEM.names}  # type: ignore[union-attr]
CONSTANTS = ("x", "day", "%Y-%m-%d", "a long", "UTC", "(x)", "host", "$.a", "1d", 2)
MOST_OPERANDS, MOST_TRIED = 4, 2000
ON_THE_WAY: tuple[Expr, ...] = (
    Op("set", (OPERANDS["z"],)),
    Op("re.search", (Const("(?P<x>a)"), OPERANDS["t"])),
    Op("-", (OPERANDS["w"], OPERANDS["w"])),
    ROW,
)
"""Values that are no items."""


@cache
def uses() -> tuple[Op, ...]:
    """An operation for each entry, of operands that it takes; what only readers make, aside."""
    plain = [name for name in OPERATORS if not name.startswith("(")]
    found: list[Op] = []
    for name in (*plain, "<,<=", *FUNCTIONS, *(f".{method}" for method in sorted(ALL_METHODS))):
        found += islice(filter(_is_typed, islice(_candidates(name), MOST_TRIED)), 1)
    return tuple(found)


def _candidates(name: str) -> Iterator[Op]:
    columns, constants = list(OPERANDS.values()), list(map(Const, CONSTANTS))
    match Op(name, ()).family:
        case "text" | "format":
            form = Op("{}", (OPERANDS["t"], Const(""), Const("")))
            yield form if name == "{}" else Op(name, (Const("<"), form))
        case "unary":
            yield Op(name, (OPERANDS["a"],))
        case "binary" | "and" | "or":
            yield Op(name, (OPERANDS["a"], OPERANDS["b"]))
        case "comparison":
            yield Op(name, (OPERANDS["t"], OPERANDS["u"], OPERANDS["t"])[: 3 if "," in name else 2])
        case "index":
            yield Op(name, (OPERANDS["t"], OPERANDS["a"]))
        case "slice":
            bounds = [OPERANDS["a"] for letter in "lhs" if letter in name]
            yield Op(name, (OPERANDS["t"], *bounds))
        case "method":
            yield from (Op(name, (first,)) for first in (*columns, *ON_THE_WAY))
            for first in ON_THE_WAY:
                yield from (Op(name, (first, other)) for other in (*ON_THE_WAY, *constants))
            yield from _called(name, columns, constants)
        case _:
            yield from _called(name, columns, constants)


def _called(name: str, columns: list[Expr], constants: list[Expr]) -> Iterator[Op]:
    for number in range(1, MOST_OPERANDS + 1):
        yield from (Op(name, (operand,) * number) for operand in columns)
        for constant, operand in product(constants, columns):
            yield Op(name, (constant, *[operand] * (number - 1)))
            yield Op(name, (operand, *[constant] * (number - 1)))
    for first, *rest in product(columns, [*constants, *columns], constants):
        yield Op(name, (first, *rest))


def _is_typed(op: Op) -> bool:
    try:
        result_type(Fn("use", "use", ("r",), _is_typed, op), (ITEM,))
    except TypeProblem:
        return False
    return True
