"""Which rows of state a time of theirs still lets matter: by the statistics of its files.

Rows that leave by their time come about in its order, so that most files, or parts of them, hold
none that is there or leaves now: these are not read, and files of which no row is left go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydro_core.files.parquet import files_as_dataset
from hydro_core.plan.tick_plan import TimeBound
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.storage.arrow import opened
from hydro_core.storage.remote import DataPlace, RemotePath

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
