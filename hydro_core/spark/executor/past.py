"""What earlier ticks left, as a range of ticks sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from hydro_core.catalog.forms import Form
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.frames.materialize import Materialize


class Past(Protocol):
    """What earlier ranges left."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The committed rows `item, t[, ord]` of the slot as its form says; of a log `item, t, n`.

        None where there are none.
        """


class NoPast:
    """Before the first tick there is nothing."""

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """Nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Overlay:
    """The past of a tick within a range: what was there before it, and what its ticks so far have
    left.
    """

    before: Past
    materialize: Materialize
    found: Mapping[str, DataFrame] = field(default_factory=dict)

    def rows(self, slot: StateSlot) -> DataFrame | None:
        """The rows of the slot, earlier ones of the range among them."""
        earlier, new = self.before.rows(slot), self.found.get(slot.id)
        if new is None or earlier is None:
            return new if earlier is None else earlier
        return new if slot.form is Form.VALUES else earlier.unionByName(new)

    def after(self, kept: Mapping[StateSlot, DataFrame]) -> Overlay:
        """The past of the next tick."""
        found = dict(self.found)
        for slot, frame in kept.items():
            adds = slot.form is not Form.VALUES and slot.id in found
            rows = found[slot.id].unionByName(frame) if adds else frame
            found[slot.id], _ = self.materialize(rows)
        return Overlay(self.before, self.materialize, found)

    def added(self, slot: StateSlot) -> DataFrame:
        """What the range adds to the slot, or leaves in it."""
        return self.found[slot.id]
