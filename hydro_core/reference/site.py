"""The call of a definition: node, types, tick, keys of its items, and failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from hydro_core.catalog.spec import Args
from hydro_core.errors import DataError
from hydro_core.functions.call import (
    call_accumulate,
    call_item,
    call_pair,
    cure,
    kind_of,
    shown,
    why,
)
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.reference.bag import fits
from hydro_core.types.common import common_type
from hydro_core.types.item import UNKNOWN, Field, ItemType, Row, StreamType, Tuple
from hydro_core.types.values import RowItem, Struct, ValueProblem, canonical, conform

# Keys and fields of items: the first field of a tuple, or columns of a row.
#
# A null item has null fields.


def field(item: Any, step: int | str) -> Any:
    """A field of a tuple or row."""
    return None if item is None else item[step]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns `names` of a row as a key; with no names, the first field of a tuple.

    Keys are compared as items of type `compared`, where two inputs have the same key in different
    numeric types.
    """

    names: tuple[str, ...] = ()
    compared: ItemType = UNKNOWN

    def __call__(self, item: Any) -> Hashable:
        """Equal for items of equal keys."""
        return _compared(self.value(item), self.compared)

    def common(self, item: Any) -> Any:
        """The key as an item of the type in which keys are compared."""
        value = self.value(item)
        return value if self.compared == UNKNOWN else conform(value, self.compared)

    def value(self, item: Any) -> Any:
        """The key: one field, or a tuple of columns."""
        if not self.names:
            return field(item, 0)
        return Struct(field(item, name) for name in self.names)


@dataclass(frozen=True, slots=True)
class WholeItem:
    """The item itself as a key, compared as an item of type `compared`."""

    compared: ItemType = UNKNOWN

    def __call__(self, item: Any) -> Hashable:
        """Equal for equal items."""
        return _compared(item, self.compared)


def _compared(key: Any, to: ItemType) -> Hashable:
    return canonical(key if to == UNKNOWN else conform(key, to))


def key_of(site: Site) -> Columns:
    """The key of a keyed operator's items: the columns of `by`, else the first field."""
    return Columns(tuple(site.args.get("by") or ()))


def key_type(item: ItemType, columns: tuple[str, ...]) -> ItemType:
    """The type of `Columns(columns).value` of such items; unknown for items of an unknown type."""
    match item:
        case Tuple(fields) if not columns and fields:
            return fields[0]
        case Row() if columns:
            return Tuple(tuple(item.column(name) or UNKNOWN for name in columns))
        case _:
            return UNKNOWN


def compared_as(a: ItemType, b: ItemType) -> ItemType:
    """The type in which keys of two types are compared; unknown: without conversion."""
    return UNKNOWN if a == b else common_type(a, b) or UNKNOWN


def columns_of(item: ItemType) -> tuple[Field, ...]:
    return item.fields if isinstance(item, Row) else ()


def keyed_result(key: Columns, item: Any, acc: Any) -> Any:
    """`(k, acc)` for the key of `item` and its accumulator, or a row of the columns of both."""
    if not key.names:
        return Struct((field(item, 0), acc))
    columns = {name: field(item, name) for name in key.names}
    if acc is None:
        # The result has one column or several, all null; the conversion to the output's type adds
        # them.
        return RowItem(columns)
    return RowItem({**columns, **(acc if isinstance(acc, dict) else {"value": acc})})


# The site of a definition's call: node, types and tick; it raises failures.


@dataclass(frozen=True, slots=True)
class Moment:
    """The running tick: its number, its input batches, and its times if ticks have any."""

    tick: int
    batches: Mapping[str, Iterable[Any]] = dataclasses.field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """One node at one tick."""

    node: Node
    inputs: tuple[StreamType, ...]
    output: ItemType
    moment: Moment

    @property
    def args(self) -> Args:
        """The node's arguments."""
        return self.node.args

    def call(self, fn: Fn, item: Any) -> Any:
        """`fn(item)`, the item's fields where the function has several parameters."""
        return self._try(fn, call_item, (item,))

    def accumulate(self, fn: Fn, acc: Any, item: Any) -> Any:
        """`fn(acc, item)`."""
        return self._try(fn, call_accumulate, (acc, item))

    def combine(self, fn: Fn, a: Any, b: Any) -> Any:
        """`fn(a, b)` of two items of one stream."""
        return self._try(fn, call_pair, (a, b))

    def fit(self, item: Any, to: ItemType, fn: Fn | None = None) -> Any:
        """The item as one of type `to`: a long becomes a double where a double is expected."""
        if fits(to)(item):
            return item
        try:
            return conform(item, to)
        except ValueProblem as problem:
            self.fail(
                f"{shown(item)} does not fit the type {to}: {problem}",
                f"let the function give a value of type {to}, or say another: `returns=…`",
                fn=fn,
            )

    def fail(self, what: str, cure: str, fn: Fn | None = None) -> NoReturn:
        """Fails the tick."""
        span = (fn.span if fn is not None else None) or self.node.span
        operator = self.node.op.called
        where = f"`{operator}` in tick {self.moment.tick}"
        raise DataError.of("runtime", f"{where}: {what}", span, operator, help=cure)

    def _try(self, fn: Fn, call: Callable[..., Any], items: tuple[Any, ...]) -> Any:
        try:
            return call(fn, *items)
        except Exception as problem:  # noqa: BLE001 - a user's function may raise anything
            given = " and ".join(map(shown, items))
            kind, reason = kind_of(problem), str(problem)
            self.fail(f"{named(fn)} fails on {given}: {why(kind, reason)}", cure(kind, reason), fn)


def named(fn: Fn) -> str:
    """The function and its location, as a message names it."""
    place = f" (line {fn.span.line})" if fn.span else ""
    return f"the function {fn.name}{place}"
