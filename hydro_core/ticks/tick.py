"""What comes in at a tick, and what goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Outputs = Mapping[str, list[Any]]
"""The items of a tick by the outputs' names."""


@dataclass(frozen=True, slots=True)
class TickInput:
    """A batch of items per input (none is an empty one), and the tick's times if it has any.

    `number` is said where ticks before it are left out.
    """

    batches: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None
    number: int | None = None
