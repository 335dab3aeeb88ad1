"""What a correction did: which ticks, which rows were read for them, and what became of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..quality.changed import Changed


@dataclass(frozen=True, slots=True)
class RowsRead:
    """How many rows of an input were read, and how many before; None: that is not known."""

    rows: int
    before: int | None

    def __str__(self) -> str:
        before = "" if self.before is None else f", {self.before:,} before"
        return f"{self.rows:,} row(s) read{before}"


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """Ticks that were computed again by one commit."""

    ticks: str
    """The ticks, in words."""
    commit: int
    """The commit's number in the ledger."""
    inputs: Mapping[str, RowsRead]
    outputs: Mapping[str, Changed]
    """How the rows of all these ticks differ from those that had been published."""

    def __str__(self) -> str:
        return f"commit {self.commit} computed {self.ticks} again from what was landed by then"

    @property
    def lines(self) -> list[str]:
        """A line for each input and output."""
        told = (*self.inputs.items(), *self.outputs.items())
        width = max((len(name) for name, _ in told), default=0)
        return [f"  {name:<{width}}  {what}" for name, what in told]

    def metadata_of(self, asset: str) -> dict[str, Any]:
        """What the UI shows of it on an asset."""
        changed = self.outputs.get(asset)
        return {"correction": str(self), **(changed.metadata if changed else {})}
