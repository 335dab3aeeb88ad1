"""Whether the functions of an operator have a result for an item, and if not why.

Both engines ask it in the same way, so that they lose the same items and say the same of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.failed_call import kind_of, shown, why
from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.types.item import UNKNOWN, ItemType
from hydro_core.types.json import to_json
from hydro_core.types.values import Struct, ValueProblem, conform


class Use(StrEnum):
    """What an operator makes of the results of its functions."""

    ITEM = "item"
    TEST = "test"
    PARTS = "parts"
    PORT = "port"


@dataclass(frozen=True, slots=True)
class FailedCall:
    """Which function fails on an item, and why."""

    fn: Fn
    reason: str


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """The functions of an operator, of which each is called with an item."""

    calls: Sequence[tuple[str, Fn]]
    use: Use
    ports: Sequence[str]
    item: ItemType

    @staticmethod
    def of(args: Mapping[str, Any], item: ItemType) -> CallAttempt:
        """By the arguments of `fitting` or `failing`, whose items are of the type."""
        return CallAttempt(args["calls"], Use(args["use"]), args["ports"], item)

    def on(self, item: Any) -> FailedCall | None:
        """What fails on an item; None: nothing does."""
        for _, fn in self.calls:
            reason = self._reason(fn, item)
            if reason is not None:
                return FailedCall(fn, f"{fn.name}: {reason}")
        return None

    def row(self, item: Any) -> str:
        return json.dumps(to_json(item, self.item), ensure_ascii=False, default=str)

    def result(self, fn: Fn) -> ItemType:
        return result_type(fn, (self.item,), spread=True)

    def _reason(self, fn: Fn, item: Any) -> str | None:
        try:
            found = call_item(fn, item)
            if self.use is Use.TEST:
                bool(found)
                return None
        except Exception as problem:  # noqa: BLE001 - a user's function may raise anything
            return why(kind_of(problem), str(problem))
        if self.use is Use.PORT:
            return self._wrong_port(found)
        if self.use is Use.PARTS and not (found is None or isinstance(found, list | Struct)):
            return f"only arrays and tuples can be spread, not {shown(found)}"
        to = self.result(fn)
        try:
            if to != UNKNOWN:
                conform(found, to)
        except ValueProblem as problem:
            return f"{shown(found)} does not fit the type {to}: {problem}"
        return None

    def _wrong_port(self, port: Any) -> str | None:
        is_label = isinstance(port, str | int) and not isinstance(port, bool)
        if is_label and str(port) in self.ports:
            return None
        return f"there is no port {shown(port)}; there are {', '.join(self.ports)}"
