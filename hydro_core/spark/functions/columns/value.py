"""What a sub-expression of a function is while it is compiled: a column, and what is known of its
values.

Two things make a column of Spark and a value of Python differ, and each is written down here. Null
may stand for None (`nullable`), or for what Spark cannot tell (`doubtful`): an operand was None, a
result passed 64 bits, a divisor was 0. And evaluating it may fail the job (`safe` is False), so it
must be evaluated exactly where Python does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.kinds import Place
from hydro_core.types.item import BOOLEAN, LONG, ItemType

MAX_SIZE = 3_000
"""Beyond so many parts an expression is slower to plan and compile than Python is to run."""


class NotCompilable(Exception):  # noqa: N818 - it is an answer: this function runs in Python
    """Why a function cannot be a Spark column that gives exactly Python's result."""

    def __init__(self, reason: str, place: Place = (0, 0)) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place


@dataclass(frozen=True, slots=True)
class Duration:
    """The type of a timedelta: a long of microseconds. No item has it."""

    def __str__(self) -> str:
        return "timedelta"


@dataclass(frozen=True, slots=True)
class Generator:
    """The type of what is no item and only a builtin or an operator reads: sets and dicts."""

    kind: str

    def __str__(self) -> str:
        return self.kind


DURATION = Duration()
ValueType = ItemType | Duration | Generator


@dataclass(frozen=True, slots=True)
class ColumnValue:
    column: Column
    type: ValueType
    nullable: bool = True
    doubtful: bool = False
    """It is never None; null says that Python must be asked. What is doubtful is not nullable."""
    safe: bool = True
    size: int = 1
    parts: tuple[ColumnValue, ...] | None = None
    """The fields, where a tuple or row is made in the function; `structs.whole` joins them."""
    constant: tuple[Any] | None = None
    """The Python value, in a tuple of one, where it is constant."""
    mixed: bool = False
    """It is an int for some items and a float for others: a double, its ints within 53 bits."""
    path: tuple[str, ...] | None = None
    """Where in the parameters it stands, if nothing is computed."""

    @property
    def may_fail(self) -> bool:
        return self.doubtful or not self.safe

    def with_(self, **changes: Any) -> ColumnValue:
        return replace(self, **changes)


def computed(
    column: Column, item: ValueType, *of: ColumnValue, safe: bool = False, **more: Any
) -> ColumnValue:
    """A value that is never None, computed from others of which null is no doubt."""
    size = 1 + sum(v.size for v in of)
    if size > MAX_SIZE:
        raise NotCompilable("it is too large an expression")
    more.setdefault("nullable", False)
    return ColumnValue(column, item, safe=safe and all(v.safe for v in of), size=size, **more)


def strict(
    column: Column, item: ValueType, *of: ColumnValue, doubtful: bool = False
) -> ColumnValue:
    """What Python computes of values that must not be None; null where one of them is null."""
    doubtful = doubtful or any(v.nullable or v.doubtful for v in of)
    return computed(column, item, *of, safe=True, doubtful=doubtful)


def boolean(column: Column, *of: ColumnValue, safe: bool = True) -> ColumnValue:
    return computed(column, BOOLEAN, *of, safe=safe)


def long(column: Column, *of: ColumnValue, safe: bool = False) -> ColumnValue:
    """An integer that surely has 64 bits."""
    return computed(column, LONG, *of, safe=safe)
