"""Rows cached in memory: of files that were read, and of recent ticks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from hydro_core.files.parquet import files_as_dataset, opened_parquet
from hydro_core.plan.tick_plan import TimeBound
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.storage.arrow import ByteCache, opened
from hydro_core.storage.remote import DataPlace, RemotePath

# A file of a Delta table never changes, and most of a landing, or of a state, is what was there
# before: a tick reads what is new. What is held is bounded; of more, files are read.


class RowCache:
    """Rows of files, up to so many bytes; those that were not asked for the longest go first."""

    def __init__(self, most: int) -> None:
        self._held: ByteCache[pa.Table] = ByteCache(most, lambda rows: rows.nbytes)

    def rows(
        self,
        named: Callable[[str], DataPlace],
        files: ds.Dataset,
        columns: Collection[str],
        some: Callable[[pa.Table], pa.Table] | None = None,
    ) -> ds.Dataset:
        """Columns of the rows of a Delta table, in memory; its files, where these are too large.

        Args:
            named: where a file of the table is, by its name in it.
            files: the table, as Arrow reads its files.
            columns: the columns that are needed.
            some: tells of the rows of a file those that are needed; None: all.
        """
        fragments: list[Any] = list(files.get_fragments())
        size = sum(named(fragment.path).stat().st_size for fragment in fragments)
        if not fragments or _UNPACKED * size > self._held.most:
            return files
        needed = pa.schema([files.schema.field(name) for name in columns])

        def read(fragment: Any) -> pa.Table:
            table: pa.Table = fragment.to_table(schema=files.schema, columns=needed.names)
            return table if some is None else some(table)

        what = str(needed) if some is None else f"{some.__qualname__} of {needed}"
        tables = [self._of_file(named(one.path), what, partial(read, one)) for one in fragments]
        return ds.dataset(pa.concat_tables(tables))

    def column(self, file: DataPlace, path: Sequence[str], of: pa.DataType) -> pa.Array[Any]:
        """A column of a file, or what stands at a path within it, in memory.

        Args:
            file: a Parquet file that never changes.
            path: the column's name, and those of fields within it.
            of: its type.
        """
        told = repr((tuple(path), str(of)))
        return self._of_file(file, told, lambda: _column(file, path, of))["column"].combine_chunks()

    def _of_file(self, file: DataPlace, what: str, read: Callable[[], pa.Table]) -> pa.Table:
        stat = file.stat()
        key = str(file), stat.st_size, stat.st_mtime_ns, what
        held = self._held.get(key)
        return held if held is not None else self._read(key, read)

    def _read(self, key: Hashable, read: Callable[[], pa.Table]) -> pa.Table:
        return self._held.put(key, read())


def _column(file: DataPlace, path: Sequence[str], of: pa.DataType) -> pa.Table:
    # Of a dataset all of a struct would be read.
    with opened_parquet(file) as opened:
        read = opened.read(columns=[".".join(path)])[path[0]].combine_chunks()
    found = pc.struct_field(read, list(path[1:])) if path[1:] else read
    return pa.table({"column": found.cast(of)})


_UNPACKED = 4
"""So many times larger than their files rows are expected to be in memory."""
ROW_CACHE = RowCache(64 * MEBIBYTE)
"""What this process holds."""


# Rows that leave by their time come about in its order, so that most files, or parts of them,
# hold none that is there or leaves now: these are not read, and files of which no row is left go.


_DAY = 86_400_000_000
_NEVER = -(1 << 62)


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The rows whose time is later than one moment and, if it is said, not later than another.

    Moments are microseconds since 1970.
    """

    bound: TimeBound
    after: int
    upto: int | None = None

    def places(self, file: DataFile) -> tuple[int, ...]:
        """The numbers of the row groups of a file that may hold such rows."""
        groups = _times(file.path, file.size, self.bound.column)
        return tuple(i for i, (_, low, high) in enumerate(groups) if self._may_hold(low, high))

    def rows(self, file: DataFile) -> int:
        """How many rows those row groups have."""
        groups = _times(file.path, file.size, self.bound.column)
        return sum(groups[i][0] for i in self.places(file))

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of some rows of the table."""
        times = pc.struct_field(rows[ITEM].combine_chunks(), [self.bound.column])
        return rows.filter(self._mask(times))

    def _mask(self, times: Any) -> Any:
        if pa.types.is_date(times.type):
            times = pc.multiply(times.cast(pa.int32()).cast(pa.int64()), _DAY)
        else:
            times = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
        after: Any = pa.scalar(self.after, pa.int64())
        mask: Any = pc.greater(times, after)
        if self.upto is None:
            return mask
        upto: Any = pa.scalar(self.upto, pa.int64())
        return pc.and_(mask, pc.less_equal(times, upto))

    def _may_hold(self, low: int | None, high: int | None) -> bool:
        if low is None or high is None:
            return True
        return high > self.after and (self.upto is None or low <= self.upto)


def read_alive(files: Iterable[DataFile], schema: pa.Schema, alive: LiveRows) -> pa.Table:
    """Of the rows of some files those that are meant; other parts of the files are not read."""
    found = [schema.empty_table()]
    for file in files:
        places = alive.places(file)
        if places:
            [fragment] = files_as_dataset([file.path], schema).get_fragments()
            part: Any = fragment.subset(row_group_ids=list(places))
            found.append(alive.of(part.to_table(schema=schema)))
    return pa.concat_tables(found)


def take_out(table: StoredTable, tick: int, end: datetime | None) -> None:
    """Takes the files out of a table of which all rows have left by a tick, which ends then.

    That is done where they have half of all rows: what is left is then at most as much again as
    what is there.
    """
    bound = table.spec.bound
    if bound is None or end is None or tick < 0:
        return
    alive = LiveRows(bound, bound.since(end))
    files = [f for f in table.files() if isinstance(f.path, RemotePath) or f.path.exists()]
    # What is being written stays until it is committed: it is compared with what was to be written.
    old = [file for file in files if file.last is not None and file.last <= tick]
    gone = {file for file in old if not alive.places(file)}
    rows, all_rows = (sum(file.rows or 0 for file in each) for each in (gone, files))
    if gone and 2 * rows >= all_rows:
        table.hold((file for file in table.files() if file not in gone), summed_to=tick)


@lru_cache(4096)
def _times(path: DataPlace, size: int, column: str) -> list[tuple[int, int | None, int | None]]:
    """Of each row group of a file its rows, and their least and greatest time where it tells them.

    A file of a Delta table never changes.
    """
    metadata = pq.read_metadata(opened(path))
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        low, high = _ends(group, f"{ITEM}.{column}")
        found.append((group.num_rows, low, high))
    return found


def _ends(group: Any, path: str) -> tuple[int | None, int | None]:
    """The least and the greatest time of a row group; both long ago where no row has one."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema != path:
            continue
        known = column.statistics
        if known is None or column.physical_type not in ("INT64", "INT32"):
            return None, None
        if not known.has_min_max:
            all_null = known.has_null_count and known.null_count == column.num_values
            return (_NEVER, _NEVER) if all_null else (None, None)
        unit = _DAY if column.physical_type == "INT32" else 1
        return known.min_raw * unit, known.max_raw * unit
    return None, None
