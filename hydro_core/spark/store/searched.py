"""Searches through several slots: what arrives finds stored rows, and these find others.

Which rows of a tick come late: not after all that is stored of their keys.

Spark decides; here fewer rows are looked up. So a row that is equal to the last one in its order
counts as late, and where nobody tells what comes first all rows do.

What passes of a batch: asked here, so that fewer stored rows are looked up by it.

The program's filters are asked again by Spark, which decides. So it does no harm where one is not
asked, or fails: then more rows are found.

The numbers before those of stored rows of a key: by these the rows before them are found.

Between which places the left rows of an as-of join stand that may find a new right row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.fn import Fn
from hydro_core.plan.found_rows import (
    FIRST,
    LAST,
    ROW,
    DerivedRows,
    ExtremeRows,
    FoundRows,
    Lookup,
    LookupSource,
    MeetingRows,
    NotBefore,
    PassingRows,
    RowsBefore,
    RowsSinceLate,
    RowsUpToNext,
    derived_rows,
)
from hydro_core.plan.lookups import Needed
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.frames.column_names import COUNT, ITEM
from hydro_core.spark.store.agreeing import Agreeing, KnownItems, Met, agreeing_items
from hydro_core.spark.store.between import place_numbers
from hydro_core.spark.store.extremes import Leading, extreme_items
from hydro_core.spark.store.passing_columns import may_pass
from hydro_core.spark.store.snapshots import groups
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import LONG, Field, FieldPath, ItemType, Row, Tuple, at
from hydro_core.types.values import Struct, canonical

if TYPE_CHECKING:
    from hydro_core.spark.store.values import Column


COMPARED = 20_000
"""Of more rows all places are taken: comparing one takes some microseconds."""
_LEAST, _MOST = -(2**63), 2**63 - 1


def up_to_next(
    rows: RowsUpToNext, items: Column, item: ItemType, stored: tuple[Column, ItemType] | None
) -> tuple[Column, ItemType]:
    """The right rows with the first and the last place of the left rows that may find them.

    Args:
        rows: what they are compared by.
        items: the rows that come, as a column.
        item: their type.
        stored: the stored rows of their keys, and their type; None where they are not known.
    """
    of_stored, of_new = rows.place
    items = items.filter(leaf_of(items, item, of_new).is_valid()) if len(items) else items
    bounds: Sequence[tuple[int, int]] = [(_LEAST, _MOST)] * len(items)
    if stored is not None and len(items) and len(items) + len(stored[0]) <= COMPARED:
        known = defaultdict[Hashable, list[int]](list)
        for key, place in _places(*stored, [own for own, _ in rows.keys], of_stored):
            known[key].append(place)
        for of_key in known.values():
            of_key.sort()
        coming = _places(items, item, [new for _, new in rows.keys], of_new)
        bounds = [_bounds(known.get(key, []), place, rows.forward) for key, place in coming]
    parts = [pa.array([b[i] for b in bounds], pa.int64()) for i in (0, 1)]
    found = pa.StructArray.from_arrays([_column(items), *parts], [ROW, FIRST, LAST])
    return found, Row((Field(ROW, item), Field(FIRST, LONG), Field(LAST, LONG)))


def _bounds(stored: list[int], place: int, forward: bool) -> tuple[int, int]:
    """From the row on to before the next one; backwards where the left rows are before it."""
    if forward:
        before = bisect_left(stored, place)
        return (stored[before - 1] + 1 if before else _LEAST), place
    behind = bisect_right(stored, place)
    return place, (stored[behind] - 1 if behind < len(stored) else _MOST)


def _places(
    items: Column, item: ItemType, keys: Sequence[FieldPath], place: FieldPath
) -> Iterator[tuple[Hashable, int]]:
    """The key of each item that has a place, and the place."""
    if not len(items):
        return
    leaf = leaf_of(items, item, place)
    parts = zip(*(leaf_of(items, item, path).to_pylist() for path in keys), strict=True)
    for key, number, there in zip(
        parts, place_numbers(leaf).tolist(), leaf.is_valid().to_pylist(), strict=True
    ):
        if there:
            yield canonical(Struct(key)), number


def _column(items: Column) -> Column:
    """The items as one array."""
    return items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items


def rows_before(before: RowsBefore, log: pa.Table, item: ItemType) -> tuple[Column, ItemType]:
    """Pairs of a number and a stored row, and their type.

    Args:
        before: which numbers these are.
        log: changes of stored rows (item, n, …) with all those of the same items.
        item: the type of the items.
    """
    import numpy as np

    of = Tuple((LONG, item))
    items, known = groups(log, [(ITEM, item)])
    counts = np.zeros(len(known), np.int64)
    np.add.at(counts, items, log[COUNT].to_numpy())
    there = pa.array(known[counts > 0], pa.int64())
    rows: Column = log.take(there)[ITEM].combine_chunks()
    leaves = {f"k{i}": leaf_of(rows, item, path) for i, path in enumerate(before.keys)}
    types = [(f"k{i}", at(item, path) or item) for i, path in enumerate(before.keys)]
    keys, _ = groups(pa.table(leaves), types)
    numbers = leaf_of(rows, item, before.number).to_numpy(zero_copy_only=False)
    by_number = np.lexsort((numbers, keys))
    _, firsts = np.unique(keys[by_number], return_index=True)
    least = by_number[firsts]
    places = np.repeat(least, before.count)
    back = np.tile(np.arange(1, before.count + 1), len(least))
    wanted = numbers[places] - back
    is_one = wanted > 0
    taken = rows.take(pa.array(places[is_one], pa.int64()))
    numbered = pa.array(wanted[is_one], pa.int64())
    return pa.StructArray.from_arrays([numbered, taken], names=["_1", "_2"]), of


ASKED = 20_000
"""Of more rows all are taken where they are asked one by one: it takes some microseconds each."""


def passing_items(filters: Iterable[Fn], items: Column, item: ItemType) -> tuple[Column, ItemType]:
    """The items that may pass all filters, and their type.

    Args:
        filters: pure functions of items.
        items: the items, as a column; one without items may have any type.
        item: their type.
    """
    asked: list[Fn] = []
    for fn in filters if len(items) else ():
        passing = may_pass(fn, items, item)
        if passing is None:
            asked.append(fn)
        else:
            items = items.filter(passing)
    if not len(items) or len(items) > ASKED or not asked:
        return items, item
    places = [i for i, x in enumerate(from_arrow(items, item)) if _may_pass(asked, x)]
    return items.take(pa.array(places, pa.int64())), item


def _may_pass(filters: Sequence[Fn], item: Any) -> bool:
    for fn in filters:
        try:
            if not call_item(fn, item):
                return False
        except Exception:  # noqa: BLE001 - whatever the function raises, Spark's task tells it
            return True
    return True


def late_items(
    late: RowsSinceLate, items: Column, item: ItemType, tails: Column, of_tails: ItemType
) -> tuple[Column, ItemType]:
    """Those of some items that come late, and their type.

    Args:
        late: what they are compared by.
        items: the items, as a column.
        item: their type.
        tails: the last stored rows of keys.
        of_tails: their type.
    """
    if not len(tails) or not len(items):
        return items.slice(0, 0), item
    # At or before the last one is: the other way round, not before it.
    since = NotBefore(_turned(late.orders), not late.descending)
    of_their_keys = Agreeing(item, tails, of_tails, Lookup("tails", _turned(late.keys), since))
    places = of_their_keys.places(lambda path: leaf_of(items, item, path), len(items))
    return items.take(pa.array(places, pa.int64())), item


def _turned(
    pairs: Iterable[tuple[FieldPath, FieldPath]],
) -> tuple[tuple[FieldPath, FieldPath], ...]:
    return tuple((theirs, own) for own, theirs in pairs)


class SearchedState(Protocol):
    """What earlier ranges left, as rows are looked up in it."""

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""

    def met(self, slot: StateSlot, met: Met) -> pa.Table | None:
        """The rows (item, t, …) of a slot that are met; None where it is not searched."""

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> Leading | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""


class StoredSearch:
    """The stored rows that a range can meet, of the slots that can be searched."""

    def __init__(
        self,
        plan: TickPlan,
        needed: Mapping[str, Needed],
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
            case FoundRows(slot):
                table = self._of_step(rows, known, found)
                if table is None:
                    return None
                self._tables[rows] = table
                return table[ITEM].combine_chunks(), self._plan.slot(slot).item
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

    def _extreme(self, rows: ExtremeRows, known: KnownItems) -> Column | None:
        slot = self._plan.slot(rows.slot)
        changing = Met(Needed(rows.beside), slot.item, known, self._state.ticks(slot))
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
            if (used and slot not in used) or not _is_ready(self._needed[slot], known):
                continue
            rows = self._met(slot, self._needed[slot], known)
            if rows is not None:
                found[slot] = rows

    def _of_step(
        self, step: FoundRows, known: KnownItems, found: Mapping[str, pa.Table]
    ) -> pa.Table | None:
        needed = Needed(frozenset([step.found]))
        if not _is_ready(needed, known):
            return None
        if step.slot in found and step.found in self._needed[step.slot].found:
            slot = self._plan.slot(step.slot)
            return Met(needed, slot.item, known, self._state.ticks(slot)).of(found[step.slot])
        return self._met(step.slot, needed, known)

    def _met(self, name: str, needed: Needed, known: KnownItems) -> pa.Table | None:
        slot = self._plan.slot(name)
        asked = [one for one in needed.found if len(known[one.by][0])]
        if len(asked) == 1 and not needed.last_tick:
            there = self._tables.get(FoundRows(name, asked[0]))
            if there is not None:
                return there
        return self._state.met(slot, Met(needed, slot.item, known, self._state.ticks(slot)))


def _is_ready(needed: Needed, known: KnownItems) -> bool:
    return _are_known(needed.found, known)


def _are_known(lookups: Collection[Lookup], known: KnownItems) -> bool:
    return all(one.by in known for one in lookups)
