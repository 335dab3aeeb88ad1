"""Searches through several slots: what arrives finds stored rows, and these find others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import pyarrow as pa

from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import (
    DerivedRows,
    ExtremeRows,
    FoundRows,
    LeavingRows,
    Lookup,
    LookupSource,
    MeetingRows,
    PassingRows,
    RowsBefore,
    RowsSinceLate,
    RowsUpToNext,
    derived_rows,
)
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.store.lookups.agreeing import KnownItems, MatchedRows, agreeing_items
from hydro_core.spark.store.lookups.derived import (
    late_items,
    passing_items,
    rows_before,
    up_to_next,
)
from hydro_core.spark.store.lookups.extremes import LeadingRows, extreme_items
from hydro_core.spark.store.values import Column
from hydro_core.types.item import ItemType


class SearchedState(Protocol):
    """What earlier ranges left, as rows are looked up in it."""

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""

    def met(self, slot: StateSlot, met: MatchedRows) -> pa.Table | None:
        """The rows (item, t, …) of a slot that are met; None where it is not searched."""

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> LeadingRows | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""


class StoredSearch:
    """The stored rows that a range can meet, of the slots that can be searched."""

    def __init__(
        self,
        plan: TickPlan,
        needed: Mapping[str, RowDemand],
        state: SearchedState,
    ) -> None:
        self._plan, self._needed, self._state = plan, needed, state
        self._is_tick = False
        self._tables: dict[FoundRows, pa.Table] = {}
        """What steps have found."""
        self._derived = derived_rows(one for wanted in needed.values() for one in wanted.found)

    def rows(
        self, arrived: Mapping[str, tuple[Column, ItemType]], *, is_tick: bool = False
    ) -> Mapping[str, pa.Table]:
        """The rows that are met, by the slots' ids; a slot that is not searched is left out.

        Args:
            arrived: what arrives at the inputs that get something.
            is_tick: whether all of it arrives in one tick.
        """
        known: dict[LookupSource, tuple[Column, ItemType]] = {
            name: (pa.nulls(0), self._plan.typed.of(source.id).item)
            for name, source in self._plan.graph.sources.items()
        }
        known.update(arrived)
        self._is_tick = is_tick
        found: dict[str, pa.Table] = {}
        steps = [rows for rows in self._derived if isinstance(rows, FoundRows)]
        for rows in self._derived:
            if isinstance(rows, FoundRows):
                self._take_whole(self._needed.keys() - found.keys(), steps, known, found)
            items = self._items(rows, known, found)
            if items is not None:
                known[rows] = items
        self._take_whole(self._needed.keys() - found.keys(), (), known, found)
        return found

    def _items(
        self, rows: DerivedRows, known: KnownItems, found: Mapping[str, pa.Table]
    ) -> tuple[Column, ItemType] | None:
        """The items of rows that are told from known ones; None where these are not all known."""
        match rows:
            case FoundRows():
                return self._stored(rows, known, found)
            case LeavingRows():
                return self._leaving(rows)
            case RowsBefore(of):
                return rows_before(rows, self._tables[of], known[of][1]) if of in known else None
            case PassingRows(of, filters):
                return passing_items(filters, *known[of]) if of in known else None
            case MeetingRows(of, partners):
                by = [of, *(one.by for one in partners)]
                all_known = known.keys() >= set(by)
                return agreeing_items(*known[of], partners, known) if all_known else known.get(of)
            case RowsSinceLate(of, tails):
                told = of in known and tails in known and self._is_tick
                return late_items(rows, *known[of], *known[tails]) if told else known.get(of)
            case RowsUpToNext(of, stored):
                return up_to_next(rows, *known[of], known.get(stored)) if of in known else None
            case ExtremeRows(slot, beside=beside):
                items = self._extreme(rows, known) if _are_known(beside, known) else None
                return None if items is None else (items, self._plan.slot(slot).item)

    def _stored(
        self, rows: FoundRows, known: KnownItems, found: Mapping[str, pa.Table]
    ) -> tuple[Column, ItemType] | None:
        table = self._of_step(rows, known, found)
        if table is None:
            return None
        self._tables[rows] = table
        return table[ITEM].combine_chunks(), self._plan.slot(rows.slot).item

    def _leaving(self, rows: LeavingRows) -> tuple[Column, ItemType] | None:
        """The items that leave a window; None in a range of several ticks."""
        slot = self._plan.slot(rows.slot)
        tick = self._state.ticks(slot)[1] + 1 - rows.ticks
        if not self._is_tick:
            return None
        table = self._state.met(
            slot, MatchedRows(RowDemand(frozenset(), True), slot.item, {}, (tick, tick))
        )
        return None if table is None else (table[ITEM].combine_chunks(), slot.item)

    def _extreme(self, rows: ExtremeRows, known: KnownItems) -> Column | None:
        slot = self._plan.slot(rows.slot)
        changing = MatchedRows(RowDemand(rows.beside), slot.item, known, self._state.ticks(slot))
        return extreme_items(
            rows,
            slot.item,
            lambda one, count: self._state.lead(slot, one, count),
            lambda needed, found: self._met(slot.id, needed, found),
            changing,
        )

    def _take_whole(
        self,
        slots: Collection[str],
        steps: Collection[FoundRows],
        known: KnownItems,
        found: dict[str, pa.Table],
    ) -> None:
        """Searches the slots of which all lookups can be made, those alone that a step goes to."""
        used = {step.slot for step in steps}
        for slot in sorted(slots):
            if (used and slot not in used) or not _are_known(self._needed[slot].found, known):
                continue
            rows = self._met(slot, self._needed[slot], known)
            if rows is not None:
                found[slot] = rows

    def _of_step(
        self, step: FoundRows, known: KnownItems, found: Mapping[str, pa.Table]
    ) -> pa.Table | None:
        needed = RowDemand(frozenset([step.found]))
        if not _are_known(needed.found, known):
            return None
        if step.slot in found and step.found in self._needed[step.slot].found:
            slot = self._plan.slot(step.slot)
            return MatchedRows(needed, slot.item, known, self._state.ticks(slot)).of(
                found[step.slot]
            )
        return self._met(step.slot, needed, known)

    def _met(self, name: str, needed: RowDemand, known: KnownItems) -> pa.Table | None:
        slot = self._plan.slot(name)
        asked = [one for one in needed.found if len(known[one.by][0])]
        if len(asked) == 1 and not needed.last_tick:
            there = self._tables.get(FoundRows(name, asked[0]))
            if there is not None:
                return there
        return self._state.met(slot, MatchedRows(needed, slot.item, known, self._state.ticks(slot)))


def _are_known(lookups: Collection[Lookup], known: KnownItems) -> bool:
    return all(one.by in known for one in lookups)
