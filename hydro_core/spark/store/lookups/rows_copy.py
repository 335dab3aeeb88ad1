"""A copy of a data file's rows, uncompressed, of which single rows are read.

Of a Parquet file whole row groups are unpacked, and rows that are met lie in all of them. A copy
has each column as Arrow has it in memory, so that a row is a place in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydro_core.spark.store.lookups.checked_file import CheckedFile, buffer_of
from hydro_core.spark.store.values import Numbers

Array = Any
"""An array of Arrow's."""


def is_copied(schema: pa.Schema) -> bool:
    """Whether rows of these columns can be copied."""
    return all(_is_copied(field) for field in schema)


def _is_copied(field: pa.Field[Any]) -> bool:
    of = field.type
    if "." in field.name:  # Parquet's readers take it for a path
        return False
    if pa.types.is_struct(of):
        return of.num_fields > 0 and all(map(_is_copied, of))
    return pa.types.is_string(of) or pa.types.is_binary(of) or _width(of) is not None


def _width(of: pa.DataType) -> int | None:
    """The bits of each value of a type; None where values differ in it."""
    known = pa.types.is_primitive(of) or pa.types.is_decimal(of)
    return of.bit_width if known and not pa.types.is_dictionary(of) else None


def width_of(fields: Iterable[pa.Field[Any]]) -> int:
    """About how many bytes a row of these columns takes."""
    total = 0
    for field in fields:
        of: Any = field.type
        width = _width(of)
        if pa.types.is_struct(of):
            total += width_of(of)
        else:
            total += 32 if width is None else -(-width // 8)
    return total


def copied(
    file: pq.ParquetFile, fields: Iterable[pa.Field[Any]], within: tuple[str, ...] = ()
) -> Iterator[pa.Buffer | bytes]:
    """The buffers of all rows of a file, column by column.

    Args:
        file: the file.
        fields: its columns, as they are to be.
        within: the names of the structs that they are in.
    """
    for field in fields:
        of: Any = field.type
        path = (*within, field.name)
        if pa.types.is_struct(of):
            yield _validity(column_of(file, path, of.field(0)))
            yield from copied(file, of, path)
        else:
            column = leaf_of_file(file, path, of)
            yield _validity(column)
            yield from (one or b"" for one in column.buffers()[1:])


def column_of(file: pq.ParquetFile, path: tuple[str, ...], part: pa.Field[Any]) -> Array:
    """What stands at a path, structs, of which one part alone is read."""
    told = (*path, part.name)
    while pa.types.is_struct(part.type):
        part = part.type.field(0)
        told = (*told, part.name)
    return _within(file, told, len(path) - 1)


def leaf_of_file(file: pq.ParquetFile, path: tuple[str, ...], of: pa.DataType) -> Array:
    """A leaf of all rows of a file, as a type."""
    return _plain(_within(file, path, len(path) - 1).cast(of))


def _within(file: pq.ParquetFile, path: tuple[str, ...], steps: int) -> Array:
    found: Array = file.read(columns=[".".join(path)])[path[0]].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks)
    for _ in range(steps):
        # Not the field by itself, but where its structs are there.
        [found] = found.flatten()
    return _plain(found)


def _plain(column: Array) -> Array:
    return column if column.offset == 0 else column.take(pa.array(range(len(column)), pa.int64()))


def _validity(column: Array) -> pa.Buffer | bytes:
    return column.buffers()[0] if column.null_count else b""


class RowsCopy:
    """A copy that is there."""

    def __init__(self, file: CheckedFile, schema: pa.Schema, rows: int) -> None:
        """`schema` has its columns, `rows` says how many rows it has."""
        self._file, self._schema, self._rows = file, schema, rows

    def at(self, places: Numbers) -> pa.Table:
        """The rows at these places, which are in their order.

        Raises:
            DamagedError: what would be read is not what was written; so do the others.
        """
        columns = [self._read(of, first, places) for _, of, first in _laid_out(self._schema)]
        taken = pa.array(places, pa.int64())
        return pa.Table.from_arrays([one.take(taken) for one in columns], schema=self._schema)

    def leaf(self, path: Sequence[str], places: Numbers) -> Array:
        """What stands at a path in the rows at these places."""
        taken, structs = pa.array(places, pa.int64()), []
        of, first = _named(self._schema, path[0])
        for name in path[1:]:
            if self._file.size(first):
                structs.append(first)
            of, first = _named(of, name, first + 1)
        found = self._read(of, first, places).take(taken)
        for valid in structs:
            bits = [None, self._checked(valid, places // 8, 1)]
            there = pa.Array.from_buffers(pa.bool_(), self._rows, bits).take(taken)
            found = pc.if_else(there, found, pa.scalar(None, found.type))
        return found

    def whole(self, name: str) -> memoryview:
        """The values of a column of fixed width, without nulls, all of them."""
        return self._file.whole(_named(self._schema, name)[1] + 1)

    def _read(self, of: Any, first: int, places: Numbers) -> Array:
        """A column of which what stands at the places may be used; `first` of its buffers."""
        bits = self._checked(first, places // 8, 1) if self._file.size(first) else None
        if pa.types.is_struct(of):
            parts = [self._read(part, at, places) for _, part, at in _laid_out(of, first + 1)]
            return pa.StructArray.from_buffers(of, self._rows, [bits], children=parts)
        width = _width(of)
        if width is None:
            buffers = self._of_text(first + 1, first + 2, places)
        elif width == 1:
            buffers = [self._checked(first + 1, places // 8, 1)]
        else:
            buffers = [self._checked(first + 1, places, width // 8)]
        return pa.Array.from_buffers(of, self._rows, [bits, *buffers])

    def _of_text(self, offsets: int, data: int, places: Numbers) -> list[pa.Buffer]:
        file = self._file
        file.check(offsets, places * 4, places * 4 + 8)
        ends = np.frombuffer(file.unchecked(offsets), np.int32)
        file.check(data, ends[places].astype(np.int64), ends[places + 1].astype(np.int64))
        return [buffer_of(file.unchecked(offsets)), buffer_of(file.unchecked(data))]

    def _checked(self, buffer: int, values: Numbers, width: int) -> pa.Buffer:
        self._file.check(buffer, values * width, (values + 1) * width)
        return buffer_of(self._file.unchecked(buffer))


def _laid_out(fields: Iterable[pa.Field[Any]], first: int = 0) -> Iterator[tuple[str, Any, int]]:
    """Names and types of columns, each with the first of its buffers."""
    for field in fields:
        yield field.name, field.type, first
        first += _buffers_of(field.type)


def _named(fields: Iterable[pa.Field[Any]], name: str, first: int = 0) -> tuple[Any, int]:
    """The type of the column of that name, and the first of its buffers."""
    return next((of, at) for known, of, at in _laid_out(fields, first) if known == name)


def _buffers_of(of: Any) -> int:
    if pa.types.is_struct(of):
        return 1 + sum(_buffers_of(field.type) for field in of)
    return 2 if _width(of) is not None else 3
