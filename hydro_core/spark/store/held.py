"""The rows of landed files as they were read last, held in memory for the next look at them.

A file of a Delta table never changes, and most of a landing is what was there before. So whoever
looks through it at every tick reads what is new, and finds the rest here. What is held is bounded
for the process; of more, the files are read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.settings import MEBIBYTE


class Held:
    """Rows of files, up to so many bytes; those that were not asked for the longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def rows(self, base: str, files: ds.Dataset, columns: Collection[str]) -> ds.Dataset:
        """Columns of the rows of a Delta table, in memory; its files, where these are too large.

        Args:
            base: the directory of the table.
            files: the table, as Arrow reads its files.
            columns: the columns that are needed.
        """
        fragments: list[Any] = list(files.get_fragments())
        found = [Path(base, fragment.path).stat() for fragment in fragments]
        if not fragments or _UNPACKED * sum(stat.st_size for stat in found) > self._most:
            return files
        needed = pa.schema([files.schema.field(name) for name in columns])
        tables = []
        for fragment, stat in zip(fragments, found, strict=True):
            key = base, fragment.path, stat.st_size, stat.st_mtime_ns, str(needed)
            held = self._held(key)
            tables.append(held or self._read(key, fragment, files.schema, needed))
        return ds.dataset(pa.concat_tables(tables))

    def _held(self, key: Hashable) -> pa.Table | None:
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
            return self._files.get(key)

    def _read(self, key: Hashable, fragment: Any, schema: pa.Schema, needed: pa.Schema) -> pa.Table:
        table: pa.Table = fragment.to_table(schema=schema, columns=needed.names)
        with self._lock:
            if key not in self._files:
                self._files[key] = table
                self._bytes += table.nbytes
            while self._bytes > self._most and len(self._files) > 1:
                _, given_up = self._files.popitem(last=False)
                self._bytes -= given_up.nbytes
        return table


_UNPACKED = 4
"""So many times larger than their files rows are expected to be in memory."""
HELD = Held(64 * MEBIBYTE)
"""What this process holds."""
