"""The rows of files as they were read last, held in memory for the next look at them.

A file of a Delta table never changes, and most of a landing, or of a state, is what was there
before. So whoever looks through it at every tick reads what is new, and finds the rest here. What
is held is bounded for the process; of more, the files are read, or single columns of them are held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import opened_parquet
from hydro_core.settings import MEBIBYTE
from hydro_core.storage.arrow import ByteCache
from hydro_core.storage.remote import DataPlace


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
