"""How long stored rows matter: until a time of theirs is so long before the end of a tick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Node
from hydro_core.types.moments import MICROSECOND, since_epoch

LONGEST = 1 << 60
"""Longer than between any two moments, in microseconds."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """Rows matter as long as the time in a column is later than a tick's end minus a length."""

    column: str
    micros: int
    """The length, in microseconds."""

    @staticmethod
    def of(node: Node) -> TimeBound | None:
        """That of an operator whose rows leave by their time."""
        if node.spec.state is not State.RECENT:
            return None
        length: timedelta = node.args["for_"]
        return TimeBound(node.args["by"], min(length // MICROSECOND, LONGEST))

    def since(self, end: datetime) -> int:
        """The time, in microseconds since 1970, up to which rows are gone at a tick's end."""
        return since_epoch(end) - self.micros

    @property
    def shown(self) -> str:
        """What it says, for people."""
        return f"`{self.column}` is within {timedelta(microseconds=self.micros)} of the tick's end"


def longer(bounds: Iterable[TimeBound | None]) -> TimeBound | None:
    """The bound of rows that several look at: the longest of one column; None: there is none."""
    known = list(bounds)
    found = [bound for bound in known if bound is not None]
    if len(found) < len(known) or len({bound.column for bound in found}) != 1:
        return None
    return max(found, key=lambda bound: bound.micros)
