"""Searches of stored rows: by keys, by extremes, and by rows that other states derive."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.functions.call import call_item
from hydro_core.functions.tree import Fn
from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import (
    FIRST,
    LAST,
    ROW,
    DerivedRows,
    ExtremeRows,
    FieldPairs,
    FoundRows,
    LeavingRows,
    Lookup,
    LookupBounds,
    LookupSource,
    MeetingRows,
    PassingRows,
    RowsBefore,
    RowsSinceLate,
    RowsUpToNext,
    derived_rows,
)
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.frames.column_names import COUNT, ITEM, TICK
from hydro_core.spark.store.lookups.conditions import (
    KnownItems,
    MatchedRows,
    MatchingItems,
    agreeing_items,
    may_pass,
)
from hydro_core.spark.store.schema import Column, Int64s, in_order, leaf_of
from hydro_core.spark.store.snapshots import groups, totals
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.item import DATE, LONG, Field, FieldPath, ItemType, Row, Tuple, at, is_integer
from hydro_core.types.values import Struct, canonical

# Spark decides what a program gives; here fewer rows are looked up. So it does no harm where a
# filter is not asked or fails, where a row that is equal to the last one of its key counts as
# late, or where nobody tells which row is the next one: then more rows are found.


COMPARED = 20_000
"""Of more rows all places are taken: comparing one takes some microseconds."""
_ALL_PLACES = (-(1 << 63), (1 << 63) - 1)

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
    up_to = LookupBounds(last=_turned(late.orders), descending=late.descending)
    of_their_keys = MatchingItems(item, tails, of_tails, Lookup("tails", _turned(late.keys), up_to))
    places = of_their_keys.places(lambda path: leaf_of(items, item, path), len(items))
    return items.take(pa.array(places, pa.int64())), item


def _turned(pairs: FieldPairs) -> FieldPairs:
    return tuple((theirs, own) for own, theirs in pairs)


def rows_before(before: RowsBefore, log: pa.Table, item: ItemType) -> tuple[Column, ItemType]:
    """Pairs of a number and a stored row, and their type.

    Args:
        before: which numbers these are.
        log: changes of stored rows (item, n, …) with all those of the same items.
        item: the type of the items.
    """
    of = Tuple((LONG, item))
    firsts, counts = totals(log, [(ITEM, item)], log[COUNT].to_numpy())
    there = pa.array(firsts[counts > 0], pa.int64())
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
    told = at(item, of_new)
    # A date, a timestamp, or a number.
    of = LONG if told is None or is_integer(told) else told
    items = items.filter(leaf_of(items, item, of_new).is_valid()) if len(items) else items
    bounds: Sequence[tuple[int, int]] = [_ALL_PLACES] * len(items)
    if stored is not None and len(items) and len(items) + len(stored[0]) <= COMPARED:
        known = defaultdict[Hashable, list[int]](list)
        for key, place in _places(*stored, [own for own, _ in rows.keys], of_stored):
            known[key].append(place)
        for of_key in known.values():
            of_key.sort()
        coming = _places(items, item, [new for _, new in rows.keys], of_new)
        bounds = [_bounds(known.get(key, []), place, rows.forward) for key, place in coming]
    parts = [_place_column([one[i] for one in bounds], of) for i in (0, 1)]
    whole = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    found = pa.StructArray.from_arrays([whole, *parts], [ROW, FIRST, LAST])
    return found, Row((Field(ROW, item), Field(FIRST, of), Field(LAST, of)))


def _bounds(stored: list[int], place: int, forward: bool) -> tuple[int, int]:
    """From the row on to before the next one; backwards where the left rows are before it."""
    least, most = _ALL_PLACES
    if forward:
        before = bisect_left(stored, place)
        return (stored[before - 1] + 1 if before else least), place
    behind = bisect_right(stored, place)
    return place, (stored[behind] - 1 if behind < len(stored) else most)


def _places(
    items: Column, item: ItemType, keys: Sequence[FieldPath], place: FieldPath
) -> Iterator[tuple[Hashable, int]]:
    """The key of each item that has a place, and the place as a number."""
    if not len(items):
        return
    of_items = leaf_of(items, item, place)
    numbers = of_items.cast(_numbers_of(at(item, place))).cast(pa.int64()).to_pylist()
    parts = zip(*(leaf_of(items, item, path).to_pylist() for path in keys), strict=True)
    for key, number in zip(parts, numbers, strict=True):
        if number is not None:
            yield canonical(Struct(key)), number


def _numbers_of(of: ItemType | None) -> pa.DataType:
    return pa.int32() if of == DATE else pa.int64()


def _place_column(numbers: Sequence[int], of: ItemType) -> Column:
    stored = _numbers_of(of)
    least, most = -(1 << stored.bit_width - 1), (1 << stored.bit_width - 1) - 1
    fit = [min(max(number, least), most) for number in numbers]
    return pa.array(fit, stored).cast(arrow_type(of))


# Of what came with a great value, most may have gone since. So the first rows by the leaf are
# taken, twice as many again and again, until one of them is there and none that was not taken can
# come before it. Whether a row is there, all changes of its key tell.


FIRST_TAKEN = 64
MOST_TAKEN = 1 << 15
"""Of so many rows none is there: the state is read as a whole."""


@dataclass(frozen=True, slots=True)
class LeadingRows:
    """Rows of a state that came, and come first by a leaf."""

    items: Column
    beyond: Column
    """Of each part from which not all were taken, the last value that was."""


TakeLeading = Callable[[ExtremeRows, int], LeadingRows | None]
"""So many rows of each part of a slot; None where they cannot be told."""
SearchKeys = Callable[[RowDemand, KnownItems], "pa.Table | None"]
"""The rows (item, t, n) of a slot that are met; None where it is not searched."""


def extreme_items(
    rows: ExtremeRows,
    item: ItemType,
    take: TakeLeading,
    search: SearchKeys,
    changing: MatchedRows,
) -> Column | None:
    """The items of rows that are there and come first; None where these are not known.

    Args:
        rows: which rows.
        item: the type of the slot's items.
        take: gives the first rows that came.
        search: finds all changes of keys.
        changing: the rows of the keys that change, which do not count.
    """
    key = tuple((path, path) for path in rows.key)
    needed = RowDemand(frozenset([Lookup(rows, key)]))
    count = max(FIRST_TAKEN, 2 * rows.count)
    while count <= MOST_TAKEN:
        taken = take(rows, count)
        if taken is None:
            return None
        if len(taken.items):
            log = search(needed, {rows: (taken.items, item)})
            if log is None:
                return None
            there = _others(_there(log, item), item, changing)
            first = _first(there, item, rows, taken.beyond)
            if first is not None:
                return first
        if not len(taken.beyond):
            return None  # there is none, or no value that counts
        count *= 8
    return None


def leading(items: Column, item: ItemType, rows: ExtremeRows, count: int) -> LeadingRows:
    """The first of some items, and the last value of them where there are more."""
    values = in_order(leaf_of(items, item, rows.leaf))
    order = places_in_order(values)
    taken = order[-count:] if rows.greatest else order[:count]
    found = items.take(pa.array(taken))
    last = taken[:1] if rows.greatest else taken[-1:]
    beyond = last if len(order) > count else last[:0]
    return LeadingRows(found, values.take(pa.array(beyond)))


def places_in_order(values: Column) -> Int64s:
    """The places of the values that are not null, from the least to the greatest."""
    places: Column = pc.sort_indices(values)
    found: Int64s = places.to_numpy().astype("int64")[: len(values) - values.null_count]
    return found


def _there(log: pa.Table, item: ItemType) -> Column:
    """The different items of which copies are left."""
    firsts, counts = totals(log, [(ITEM, item)], log[COUNT].to_numpy())
    return log[ITEM].combine_chunks().take(pa.array(firsts[counts > 0], pa.int64()))


def _others(items: Column, item: ItemType, changing: MatchedRows) -> Column:
    """The items that are none of those whose keys change."""
    others = np.ones(len(items), dtype=bool)
    for one in changing.found:
        others[one.places(lambda path: leaf_of(items, item, path), len(items))] = False
    return items.filter(pa.array(others))


def _first(items: Column, item: ItemType, rows: ExtremeRows, beyond: Column) -> Column | None:
    """The items with the first values, of equal ones all; None where others may be among them."""
    values = in_order(leaf_of(items, item, rows.leaf))
    order = places_in_order(values)
    if len(order) < rows.count:
        return None
    last: Any = values[int(order[-rows.count] if rows.greatest else order[rows.count - 1])]
    compare: Any = pc.greater_equal if rows.greatest else pc.less_equal
    if pc.any(compare(beyond, last)).as_py():
        return None
    return items.filter(compare(values, last).fill_null(False))


def came(log: pa.Table, first: int, last: int) -> Column:
    """The items of the rows of a log that came in some ticks."""
    ticks, counts = log[TICK].to_numpy(), log[COUNT].to_numpy()
    there = (counts > 0) & (ticks >= first) & (ticks <= last)
    return log[ITEM].combine_chunks().filter(pa.array(there))


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
