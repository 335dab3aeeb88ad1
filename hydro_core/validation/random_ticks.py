"""Random ticks of a program.

Random items follow the inputs' types and take constants that stand in the program's functions, so
that filters let some of them through; few different values, so that keys meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as DecimalValue
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from hydro_core.compile import Compiled
from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import Const
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import Array, Decimal, ItemType, Row, Scalar, Tuple, is_integer
from hydro_core.types.values import RowItem, Struct, ValueProblem, conform

InputKey = TypeVar("InputKey")
TickInputs = Sequence[TickInput]
MAX_TICKS = 6
MAX_BATCH = 4
NULLS = 0.08
_START, _DAY = datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=1)
"""Ticks are days, near the random times."""


def random_ticks(program: Compiled, rng: Random) -> TickInputs:
    """A few ticks of a few random items for every input."""
    items = {name: stream.item for name, stream in program.typed.inputs.items()}
    batches = random_batches(items, rng, constants_of(program))
    starts = [_START + number * _DAY for number in range(len(batches) + 1)]
    return [TickInput(b, *ends) for b, ends in zip(batches, pairwise(starts), strict=True)]


def random_batches(
    inputs: Mapping[InputKey, ItemType], rng: Random, constants: Sequence[Any], nulls: float = NULLS
) -> Sequence[Mapping[InputKey, list[Any]]]:
    """A few ticks of a few random items for every input, by any keys; so many scalars are null."""
    return [
        {
            key: [
                random_item(item, rng, constants, nulls) for _ in range(rng.randint(0, MAX_BATCH))
            ]
            for key, item in inputs.items()
        }
        for _ in range(rng.randint(1, MAX_TICKS))
    ]


def random_item(
    item: ItemType, rng: Random, constants: Sequence[Any] = (), nulls: float = NULLS
) -> Any:
    """An item of this type, a constant now and then where one fits."""
    match item:
        case Tuple(parts):
            return Struct(random_item(p, rng, constants, nulls) for p in parts)
        case Row(columns):
            return RowItem({c.name: random_item(c.type, rng, constants, nulls) for c in columns})
        case Array(element):
            return [random_item(element, rng, constants, nulls) for _ in range(rng.randint(0, 2))]
        case _ if rng.random() < nulls:
            return None
        case _:
            fitting = [c for c in constants if _fits(c, item)] if rng.random() < 0.4 else []
            return conform(rng.choice(fitting), item) if fitting else _scalar(item, rng)


def _scalar(item: ItemType, rng: Random) -> Any:
    small = rng.randint(0, 3)
    match item:
        case Decimal(_, scale):
            return DecimalValue(small).scaleb(-scale)
        case Scalar("boolean"):
            return rng.random() < 0.5
        case Scalar("float" | "double"):
            return float(small)
        case Scalar("string" | "binary" as name):
            return "abcd"[small] if name == "string" else b"abcd"[small : small + 1]
        case Scalar("date"):
            return date(2024, 1, 1 + small)
        case Scalar("timestamp"):
            return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=small)
        case Scalar("timestamp_ntz"):
            return datetime(2024, 1, 1) + timedelta(hours=small)
        case _:
            return small


def _fits(constant: Any, item: ItemType) -> bool:
    if constant is None or isinstance(constant, bool) != (item == Scalar("boolean")):
        return False
    if is_integer(item) and not isinstance(constant, int):
        return False
    try:
        conform(constant, item)
    except ValueProblem:
        return False
    return True


def constants_of(program: Compiled) -> tuple[Any, ...]:
    """The constants that stand in the program's functions."""
    return tuple(
        found for node in program.graph for value in node.args.values() for found in _in(value)
    )


def _in(value: Any) -> Iterator[Any]:
    if isinstance(value, Const):
        yield from value.value if isinstance(value.value, (tuple, list)) else (value.value,)
    elif isinstance(value, Fn):
        yield from _in(value.tree)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _in(part)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _in(getattr(value, part.name))
