"""Random ticks for programs, and plans compared with their programs on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as DecimalValue
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from hydro_core.compile import CompiledProgram
from hydro_core.errors import DataError
from hydro_core.functions.tree import Const, Fn
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import Array, Decimal, ItemType, Order, Row, Scalar, Tuple, is_integer
from hydro_core.types.values import RowItem, Struct, ValueProblem, canonical, conform, sort_key

InputKey = TypeVar("InputKey")
TickInputs = Sequence[TickInput]
MAX_TICKS = 6
MAX_BATCH = 4
NULLS = 0.08
_START, _DAY = datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=1)
"""Ticks are days, near the random times."""


def random_ticks(program: CompiledProgram, rng: Random) -> TickInputs:
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


def constants_of(program: CompiledProgram) -> tuple[Any, ...]:
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


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A tick at which plan and program differ, with all ticks up to it."""

    ticks: TickInputs
    output: str
    tick: int
    program: Sequence[Any]
    plan: Sequence[Any]

    def __str__(self) -> str:
        batches = [dict(t.batches) for t in self.ticks]
        return (
            f"the plan gives {list(self.plan)} as {self.output} in tick {self.tick}, the program"
            f" {list(self.program)}; the ticks are {batches}"
        )


def validate(plan: CompiledProgram, program: CompiledProgram, ticks: TickInputs) -> Mismatch | None:
    """Where the plan differs from the program on these ticks; None where it does not.

    Where the program fails, the plan only has to agree up to there.
    """
    wanted, _ = outputs_before_failure(program, ticks)
    got, _ = outputs_before_failure(plan, ticks[: len(wanted)])
    failed: Outputs = {name: ["(the plan failed)"] for name in program.typed.outputs}
    got += [failed] * (len(wanted) - len(got))
    found = first_difference(program, wanted, got)
    if found is None:
        return None
    tick, name = found
    return Mismatch(ticks[: tick + 1], name, tick, wanted[tick][name], got[tick][name])


def first_difference(
    program: CompiledProgram, wanted: Sequence[Outputs], got: Sequence[Outputs]
) -> tuple[int, str] | None:
    """The first tick at which two runs differ, as far as both go, and in which output."""
    for tick, (expected, given) in enumerate(zip(wanted, got, strict=False)):
        for name, items in expected.items():
            ordered = program.typed.outputs[name].order is Order.TOTAL
            if not same_items(items, given[name], ordered):
                return tick, name
    return None


def validate_randomly(
    plan: CompiledProgram, program: CompiledProgram, runs: int, seed: int = 0
) -> Mismatch | None:
    for number in range(runs):
        ticks = random_ticks(program, Random(f"{seed}/{number}"))  # noqa: S311 - nothing is secret
        found = validate(plan, program, ticks)
        if found is not None:
            return found
    return None


def outputs_before_failure(
    compiled: CompiledProgram, ticks: TickInputs, settings: Settings | None = None
) -> tuple[list[Outputs], DataError | None]:
    """The outputs of the ticks before the first that fails, and how it does."""
    found: list[Outputs] = []
    try:
        for tick in run_ticks(compiled.typed, compiled.strata, ticks, settings):
            found.append(tick)  # noqa: PERF402 - what came before a failure is kept
    except DataError as error:
        return found, error
    return found, None


def same_items(a: Sequence[Any], b: Sequence[Any], ordered: bool) -> bool:
    """True if these are the same bag of items; the same list if `ordered`."""
    left, right = list(map(canonical, a)), list(map(canonical, b))
    if left == right or (not ordered and Counter(left) == Counter(right)):
        return True
    if len(a) != len(b):
        return False
    if not ordered:
        a, b = sorted(a, key=sort_key), sorted(b, key=sort_key)
    return all(map(_alike, a, b))


def _alike(x: Any, y: Any) -> bool:
    """Whether two values differ in the last bits of floating-point numbers at most.

    Sums of these depend on the order of the additions, which is the plan's.
    """
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[name], y[name]) for name in x)
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(_alike, x, y))
    return bool(canonical(x) == canonical(y))
