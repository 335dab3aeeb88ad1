"""The three kinds of streams over a range of ticks, and which kind each operator gives.

A row of a stream is one copy of an item. An *event* (E) is there in its tick only; a row of a *history* (H) is there
from its tick on, for ever; a *general* row (G) is there from its tick until, but not at, the tick `until`.
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What the rows of a stream say about the ticks at which they are there."""

    E = "event"
    H = "history"
    G = "general"

    def __repr__(self) -> str:
        return f"Kind.{self.name}"
