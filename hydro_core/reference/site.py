"""Where a definition is asked for: node, types and tick; failures are said from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.reference.fit import fits
from hydro_core.types.item import ItemType
from hydro_core.types.stream import StreamType
from hydro_core.types.values import ValueProblem, conform


@dataclass(frozen=True, slots=True)
class Moment:
    """The tick that runs: its number, its input batches, and its times where ticks have some."""

    tick: int
    batches: Mapping[str, Iterable[Any]] = field(default_factory=dict)
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
        """The item as one of type `to`: a long where doubles are due becomes a double."""
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
    """The function and its place, as a message names it."""
    place = f" (line {fn.span.line})" if fn.span else ""
    return f"the function {fn.name}{place}"
