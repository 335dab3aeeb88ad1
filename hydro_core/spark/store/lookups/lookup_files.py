"""Lookup files: hash indexes of large data files, built when they pay and removed with them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import files_as_dataset, opened_parquet
from hydro_core.spark.frames.column_names import COUNT, ITEM, TICK
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.lookups.index_files import (
    CheckedFile,
    DamagedError,
    Hashes,
    RowsCopy,
    are_hashed,
    column_of,
    copied,
    hashes,
    is_copied,
    leaf_of_file,
    left_behind,
    width_of,
    words_of,
    write_checked,
)
from hydro_core.spark.store.lookups.search import places_in_order
from hydro_core.spark.store.schema import Bools, Column, Int64s, comparable, in_order, places_of
from hydro_core.storage.arrow import name_of
from hydro_core.storage.places import derived_place
from hydro_core.storage.remote import DataPlace, name_below
from hydro_core.types.item import FieldPath, ItemType

# A key's last row that is marked as such, or a running result, comes and goes with each tick of its
# key: of a file of many ticks most rows cancel out.


PartsOfItems = Callable[[], Iterable[Column]]
"""Gives the parts of all items, column by column, as often as they are asked for."""


def may_cancel(schema: pa.Schema, files: Iterable[DataFile], met: MatchedRows) -> bool:
    """Whether what cancels out within the files of a log makes nothing of what is met.

    It does where some ticks are not met, or all rows of one are. Of items with parts that are not
    compared by columns, arrays, nobody tells which cancel out.
    """
    first, last = met.ticks or (0, -1)
    return (
        met.whole_tick is None
        and _is_hashed(schema.field(ITEM).type)
        and all(
            file.first is not None
            and file.last is not None
            and first <= file.first
            and file.last <= last
            for file in files
        )
    )


def _is_hashed(of: Any) -> bool:
    if pa.types.is_struct(of):
        return all(_is_hashed(field.type) for field in of)
    return are_hashed(of)


def without_cancelled(rows: pa.Table) -> pa.Table:
    """The rows (item, n, …) of a log that do not cancel out; all where nobody tells which do."""
    counts = rows[COUNT].to_numpy()
    if not _go_both_ways(counts) or not _is_hashed(rows.schema.field(ITEM).type):
        return rows
    items: Column = rows[ITEM].combine_chunks()
    return rows.take(pa.array(remaining(lambda: _parts(items), counts), pa.int64()))


def _go_both_ways(counts: Int64s) -> bool:
    """Whether some rows came and some went: else none cancel out."""
    return len(counts) > 0 and bool(counts.min() < 0 < counts.max())


def remaining_of_file(file: DataFile, schema: pa.Schema) -> Int64s:
    """The places of the rows of a log's file that do not cancel out."""
    with opened_parquet(file.path) as data:
        of = schema.field(ITEM).type
        leaf = leaf_of_file(data, (COUNT,), schema.field(COUNT).type)
        counts: Int64s = leaf.to_numpy(zero_copy_only=False)
        return remaining(lambda: _parts_of_file(data, (ITEM,), of), counts)


def remaining(leaves: PartsOfItems, counts: Int64s) -> Int64s:
    """The places of the rows whose items' counts do not come to 0, in their order.

    Equal items have equal parts; of those that only look equal by their hashes all stay.

    Args:
        leaves: the parts of the items.
        counts: how many copies of its item each row brings, or takes away.
    """
    if not _go_both_ways(counts):
        return np.arange(len(counts))
    words = words_of(leaves())
    if len(words) != len(counts):  # items of no parts
        return np.arange(len(counts))
    order = np.argsort(words, kind="stable")
    starts = np.flatnonzero(np.diff(words[order], prepend=~words[order[:1]]))
    sizes = np.diff(starts, append=len(counts))
    cancels = np.add.reduceat(counts[order], starts) == 0 if len(starts) else np.zeros(0, bool)
    doubtful = np.repeat(cancels, sizes)
    rows, firsts = order[doubtful], np.repeat(order[starts], sizes)[doubtful]
    equal = np.ones(len(rows), bool)
    for part in leaves():
        equal &= _are_equal(part, rows, firsts)
    stays = np.ones(len(counts), bool)
    groups = np.repeat(np.arange(len(starts)), sizes)[doubtful]
    unlike = np.zeros(len(starts), bool)
    unlike[groups[~equal]] = True
    stays[rows[~unlike[groups]]] = False
    return np.flatnonzero(stays)


def _are_equal(part: Column, rows: Int64s, others: Int64s) -> Bools:
    values = comparable(part)
    one, other = (values.take(pa.array(places, pa.int64())) for places in (rows, others))
    same: Any = pc.fill_null(pc.equal(one, other), False)
    is_nan = pa.types.is_floating(values.type)
    nothing = [pc.is_null(each, nan_is_null=is_nan) for each in (one, other)]
    alike: Any = pc.equal(pc.is_null(one), pc.is_null(other))
    found: Bools = pc.or_(same, pc.and_(pc.and_(*nothing), alike)).to_numpy(zero_copy_only=False)
    return found


def _parts(column: Column) -> Iterator[Column]:
    """The leaves of a column, and which of its structs are there."""
    if pa.types.is_struct(column.type):
        yield column.is_valid()
        for part in column.flatten():
            yield from _parts(part)
    else:
        yield column


def _parts_of_file(data: Any, path: tuple[str, ...], of: Any) -> Iterator[Column]:
    """The same of a column of a file, of which one is read at a time."""
    if pa.types.is_struct(of):
        yield column_of(data, path, of.field(0)).is_valid()
        for part in of:
            yield from _parts_of_file(data, (*path, part.name), part.type)
    else:
        yield leaf_of_file(data, path, of)


# Of files that are too large to be held the keys are held, and of all else only those row groups
# are read in which a row is met; so the files of state are written in small ones.


_SEARCHED_AT_ONCE = 1 << 20
"""So many rows of a table are searched at once."""


def met_in(
    files: Sequence[DataPlace],
    schema: pa.Schema,
    met: MatchedRows,
    held: RowCache,
    *,
    summed: bool = False,
) -> Iterator[pa.Table]:
    """The rows (item, t, …) of files of a table that are met, held in memory where they fit.

    Args:
        files: the files.
        schema: their columns.
        met: which rows are met.
        held: what holds rows, or the columns that are compared.
        summed: whether changes that cancel out within a file may be left out.
    """
    named = {name_of(file): file for file in files}
    stored = files_as_dataset(files, schema)
    some = without_cancelled if summed else None
    rows = held.rows(named.__getitem__, stored, schema.names, some)
    if rows is stored:
        yield from met_in_files(named, stored, met, held)
        return
    for batch in rows.to_batches(batch_size=_SEARCHED_AT_ONCE):
        yield met.of(pa.table(batch))


def met_in_files(
    named: Mapping[str, DataPlace], files: ds.Dataset, met: MatchedRows, held: RowCache
) -> Iterator[pa.Table]:
    """The rows (item, t, …) that are met, of each file that has some.

    Args:
        named: the files by the names that Arrow has for them.
        files: the table, as Arrow reads its files.
        met: which rows are met.
        held: what holds the columns that are compared.
    """
    schema = files.schema
    fragments: list[Any] = list(files.get_fragments())
    for fragment in fragments:
        file = named[fragment.path]

        def leaf(path: FieldPath, file: DataPlace = file) -> pa.Array[Any]:
            return held.column(file, *stored_leaf(schema, met.item, path))

        ticks = held.column(file, (TICK,), schema.field(TICK).type).to_numpy()
        places = met.places(leaf, ticks)
        if len(places):
            yield _at(fragment, schema, places)


def stored_leaf(
    schema: pa.Schema, item: ItemType, path: FieldPath
) -> tuple[tuple[str, ...], pa.DataType]:
    """The names by which Arrow knows a leaf of the column `item`, and its type."""
    names, of = [ITEM], schema.field(ITEM).type
    for place in places_of(item, path):
        field = of.field(place)
        names.append(field.name)
        of = field.type
    return tuple(names), of


def _at(fragment: Any, schema: pa.Schema, places: Int64s) -> pa.Table:
    """The rows of a file at these places, which are in their order."""
    ends = np.cumsum([group.num_rows for group in fragment.row_groups])
    groups = np.searchsorted(ends, places, side="right")
    read = np.unique(groups)
    rows: pa.Table = fragment.subset(row_group_ids=read.tolist()).to_table(schema=schema)
    sizes = np.diff(ends, prepend=0)[read]
    # Where each group that is read begins, less where it begins in the file.
    moved = (np.cumsum(sizes) - sizes) - (ends[read] - sizes)
    return rows.take(places + moved[np.searchsorted(read, groups)])


# A data file never changes. So for each large one, and for each set of fields by which its rows are
# looked up, there is a file with a hash of the fields for each row, in order, and one with rows,
# uncompressed: to find some keys costs what these keys cost. All of it may be removed at any time,
# and decides nothing: what it finds is compared once more, and without it the data file is read.


T = TypeVar("T")

LOOKUPS = ".lookups"
"""The directory, within a pipeline's."""

INDEXED_ROWS = 1 << 15
"""Files of fewer rows are gone through: it takes as long as a lookup does."""

_ROWS_OF_A_BUCKET = 16
_ABANDONED = 3600.0
"""Seconds after which nobody writes a file any more."""

StoredLeaf = tuple[tuple[str, ...], pa.DataType]
"""The names at which a leaf stands in a file, and its type."""
_Asked = Mapping[tuple[StoredLeaf, ...], Hashes]
"""The hashes that are looked for, by the leaves of which."""


class LookupFiles:
    """The files of a pipeline by which its data files are looked up."""

    def __init__(self, pipeline: DataPlace, most: int) -> None:
        """None is made before it is asked for.

        Args:
            pipeline: the directory of the pipeline.
            most: the bytes that all of them may take; with 0 there are none.
        """
        here = derived_place(pipeline)
        self._pipeline, self._most = pipeline, most if here is not None else 0
        self._is_here, self._directory = here is not None, (here or Path()) / LOOKUPS
        self._open: dict[Path, CheckedFile] = {}
        self._refused: set[DataPlace] = set()
        self._last_left: tuple[DataPlace, Int64s] | None = None
        """Of the file that was asked for last what is left; several hashes are made of it."""

    def met(
        self,
        files: Sequence[DataFile],
        schema: pa.Schema,
        met: MatchedRows,
        *,
        summed: bool = False,
    ) -> tuple[pa.Table, Sequence[DataFile]]:
        """The rows of data files that are met, and the files that are to be gone through for more.

        Args:
            files: the files.
            schema: their columns.
            met: which rows are met.
            summed: whether changes that cancel out within a file may be left out.
        """
        large = [file for file in files if self._is_looked_up(file)]
        asked = _asked(met, schema) if large and is_copied(schema) else None
        if asked is None:
            return schema.empty_table(), files
        log = schema if summed else None
        found = {
            file.path: self._looked_up(file, lambda one: self._met(one, schema, asked, met, log))
            for file in large
        }
        rows = [table for table in found.values() if table is not None]
        rest = [file for file in files if found.get(file.path) is None]
        if not any(table.num_rows for table in rows):
            return schema.empty_table(), rest
        return pa.concat_tables(rows), rest

    def leading(
        self, files: Sequence[DataFile], schema: pa.Schema, leaf: StoredLeaf, ends: tuple[int, int]
    ) -> tuple[Sequence[tuple[pa.Table, bool]], Sequence[DataFile]]:
        """The first and the last rows by a leaf that came, of each file, and whether there are
        more; and the files that are to be gone through.

        Args:
            files: files of a log.
            schema: their columns.
            leaf: a leaf of the items; rows without a value do not count.
            ends: how many of the first rows, and how many of the last ones.
        """
        found, rest = list[tuple[pa.Table, bool]](), list[DataFile]()
        copied_all = is_copied(schema)
        for file in files:
            looked_up = copied_all and self._is_looked_up(file)
            rows = None
            if looked_up:
                rows = self._looked_up(file, lambda one: self._leading(one, schema, leaf, ends))
            if rows is None:
                rest.append(file)
            else:
                found.append(rows)
        return found, rest

    def _leading(
        self, file: DataFile, schema: pa.Schema, leaf: StoredLeaf, ends: tuple[int, int]
    ) -> tuple[pa.Table, bool]:
        copy, order = self._copy(file, schema), self._order(file, leaf)
        many = order.size(0) // 4
        parts = [(0, min(ends[0], many)), (many - min(ends[1], many), many)]
        order.check(0, *(4 * np.array(end, np.int64) for end in zip(*parts, strict=True)))
        known = np.frombuffer(order.unchecked(0), np.uint32)
        places = np.unique(np.concatenate([known[a:b] for a, b in parts])).astype(np.int64)
        return copy.at(places), len(places) < many

    def gone_through(self, table: StoredTable) -> int:
        """How many rows of a table are looked at by whoever looks for some of them."""
        files = table.files()
        if not is_copied(table.spec.arrow_schema):
            return sum(file.rows or 0 for file in files)
        return sum(file.rows or 0 for file in files if not self._is_looked_up(file))

    def _is_looked_up(self, file: DataFile) -> bool:
        rows = file.rows or 0
        return bool(self._most) and rows >= INDEXED_ROWS and file.path not in self._refused

    def _looked_up(self, file: DataFile, look: Callable[[DataFile], T]) -> T | None:
        """What a look gives at what belongs to a file; None where that is to be gone through."""
        try:
            return look(file)
        except DamagedError:
            self._remove(self._directory.glob(f"{self._name(file)}-*"))
        except (OSError, pa.ArrowInvalid):
            # Whoever goes through the data file tells what is wrong with it.
            self._refused.add(file.path)
        return None

    def _met(
        self,
        file: DataFile,
        schema: pa.Schema,
        asked: _Asked,
        met: MatchedRows,
        log: pa.Schema | None,
    ) -> pa.Table:
        copy, tick = self._copy(file, schema), met.whole_tick
        hits = [_found(self._keys(file, leaves, log), some) for leaves, some in asked.items()]
        if tick is not None and file.may_hold(tick, tick):
            hits.append(np.flatnonzero(np.frombuffer(copy.whole(TICK), np.int64) == tick))
        places: Int64s = np.unique(np.concatenate([np.zeros(0, np.int64), *hits]))

        def leaf(path: FieldPath) -> Column:
            return copy.leaf(stored_leaf(schema, met.item, path)[0], places)

        ticks = copy.leaf((TICK,), places).to_numpy(zero_copy_only=False)
        return copy.at(places[met.places(leaf, ticks)])

    def keep(self, files: Iterable[DataFile]) -> None:
        """Removes what belongs to other data files than these, or was never finished."""
        if not self._is_here or not self._directory.exists():
            return
        names = {self._name(file) for file in files}
        there = self._directory.glob("[!.]*")
        others = (file for file in there if file.name.partition("-")[0] not in names)
        self._remove([*others, *left_behind(self._directory, _ABANDONED, time.time())])

    def remove_all(self) -> None:
        """Removes all of them.

        Raises:
            OSError: some stay.
        """
        self._open.clear()
        if self._is_here and self._directory.exists():
            shutil.rmtree(self._directory)

    def _copy(self, file: DataFile, schema: pa.Schema) -> RowsCopy:
        def made() -> Iterable[pa.Buffer | bytes]:
            with opened_parquet(file.path) as data:
                yield from copied(data, schema)

        opened = self._opened(file, ["rows", str(schema)], made, 2 * width_of(schema))
        return RowsCopy(opened, schema, file.rows or 0)

    def _keys(
        self, file: DataFile, leaves: tuple[StoredLeaf, ...], log: pa.Schema | None
    ) -> CheckedFile:
        """The hashes of a file's rows; of a log with these columns those of what is left of it."""

        def made() -> Iterable[pa.Buffer | bytes]:
            some = None if log is None else self._left(file, log)
            with opened_parquet(file.path) as data:
                yield from _buckets([leaf_of_file(data, *leaf) for leaf in leaves], some)

        what = "keys" if log is None else "keys left"
        return self._opened(file, [what, *map(str, leaves)], made, 10)

    def _left(self, file: DataFile, log: pa.Schema) -> Int64s:
        """The places of the rows of a log's file that do not cancel out."""
        if self._last_left is None or self._last_left[0] != file.path:
            self._last_left = file.path, remaining_of_file(file, log)
        return self._last_left[1]

    def _order(self, file: DataFile, leaf: StoredLeaf) -> CheckedFile:
        def made() -> Iterable[bytes]:
            with opened_parquet(file.path) as data:
                counts = leaf_of_file(data, (COUNT,), pa.int64()).to_numpy()
                places = places_in_order(in_order(leaf_of_file(data, *leaf)))
            yield places[counts[places] > 0].astype(np.uint32).tobytes()

        return self._opened(file, ["order", str(leaf)], made, 4)

    def _opened(
        self,
        file: DataFile,
        what: list[str],
        made: Callable[[], Iterable[pa.Buffer | bytes]],
        width: int,
    ) -> CheckedFile:
        """A file, made if it is not there; `width` is about how many bytes it takes for a row."""
        place = self._directory / f"{self._name(file)}-{_digest(json.dumps(what))}"
        told = {"of": self._relative(file), "size": file.size, "rows": file.rows, "what": what}
        if place not in self._open:
            try:
                self._open[place] = CheckedFile(place, told)
            except FileNotFoundError:
                self._refuse_too_many((file.rows or 0) * width)
                write_checked(place, told, made())
                self._open[place] = CheckedFile(place, told)
        self._open[place].refuse_changed()
        return self._open[place]

    def _refuse_too_many(self, more: int) -> None:
        there = sum(one.stat().st_size for one in self._directory.glob("*"))
        if there + more > self._most:
            raise OSError("the files by which rows are looked up take as much as they may")

    def _name(self, file: DataFile) -> str:
        return _digest(f"{self._relative(file)} {file.size}")

    def _relative(self, file: DataFile) -> str:
        return name_below(file.path, self._pipeline)

    def _remove(self, files: Iterable[Path]) -> None:
        for one in files:
            self._open.pop(one, None)
            with contextlib.suppress(OSError):
                one.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _asked(met: MatchedRows, schema: pa.Schema) -> _Asked | None:
    """What is looked for; None where some rows are met for another reason."""
    found: dict[tuple[StoredLeaf, ...], list[Hashes]] = {}
    for one in met.found:
        leaves = sorted((stored_leaf(schema, met.item, path), path) for path in one.values)
        known = [(leaf, one.values[path]) for leaf, path in leaves if are_hashed(leaf[1])]
        if not known:
            return None
        columns = [column.cast(leaf[1]) for leaf, column in known]
        found.setdefault(tuple(leaf for leaf, _ in known), []).append(hashes(columns))
    return {leaves: np.unique(np.concatenate(some)) for leaves, some in found.items()}


def _buckets(columns: Sequence[Column], some: Int64s | None) -> Iterable[bytes]:
    """Where each bucket of hashes begins, the hashes in order, and whose they are.

    `some` are the places of the rows that are to be found; None: all.
    """
    of_rows = hashes(columns)
    places = np.arange(len(of_rows)) if some is None else some
    of_rows = of_rows[places]
    by_hash = np.argsort(of_rows, kind="stable")
    in_order, order = of_rows[by_hash], places[by_hash].astype(np.uint32)
    bits = _bits(len(of_rows))
    bounds = np.arange((1 << bits) + 1, dtype=np.uint64) << np.uint64(32 - bits)
    yield np.searchsorted(in_order, bounds).astype(np.uint32).tobytes()
    yield in_order.tobytes()
    yield order.tobytes()


def _bits(rows: int) -> int:
    return (rows // _ROWS_OF_A_BUCKET).bit_length()


def _found(keys: CheckedFile, wanted: Hashes) -> Int64s:
    """The places of the rows that have one of some hashes."""
    starts, bits = np.frombuffer(keys.whole(0), np.uint32), _bits(keys.size(1) // 4)
    if len(starts) != (1 << bits) + 1:
        raise AssertionError("the buckets are those of another number of rows")
    # In 64 bits, since of no bits all hashes are one bucket.
    bucket = wanted.astype(np.uint64) >> np.uint64(32 - bits)
    first, last = (starts[bucket + np.uint64(i)].astype(np.int64) for i in (0, 1))
    keys.check(1, first * 4, last * 4)
    counts = last - first
    places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    known = np.frombuffer(keys.unchecked(1), np.uint32)
    hits = places[known[places] == np.repeat(wanted, counts)]
    keys.check(2, hits * 4, hits * 4 + 4)
    found: Int64s = np.frombuffer(keys.unchecked(2), np.uint32)[hits].astype(np.int64)
    return found
