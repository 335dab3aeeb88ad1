"""What finds rows of large data files without a look at all of them.

A data file never changes. So for each of those that are large, and for each set of fields by which
its rows are looked up, there is a file beside the tables with a hash of the fields for each row, in
order; and one with the rows themselves, uncompressed. To find the rows of some keys costs what
these keys cost, however many rows the file has.

All of it is made from data files when somebody first asks, may be removed at any time, and decides
nothing: what it finds is compared once more, and where it is missing, damaged, or has no place, the
data file is gone through.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hydro_core.files.parquet import opened_parquet
from hydro_core.spark.frames.column_names import COUNT, TICK
from hydro_core.spark.store.cancelled import remaining_of_file
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups.agreeing import MatchedRows
from hydro_core.spark.store.lookups.checked_file import (
    CheckedFile,
    DamagedError,
    left_behind,
    write_checked,
)
from hydro_core.spark.store.lookups.extremes import places_in_order
from hydro_core.spark.store.lookups.key_hashes import Hashes, are_hashed, hashes
from hydro_core.spark.store.lookups.large_files import stored_leaf
from hydro_core.spark.store.lookups.rows_copy import (
    RowsCopy,
    copied,
    is_copied,
    leaf_of_file,
    width_of,
)
from hydro_core.spark.store.values import Column, Int64s, in_order
from hydro_core.storage.places import derived_place
from hydro_core.storage.remote import DataPlace, name_below
from hydro_core.types.item import FieldPath

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
