"""A copy of a data file's rows, uncompressed, of which single rows are read.

Of a Parquet file whole row groups are unpacked, and rows that are met lie in all of them. A copy
has each column as Arrow has it in memory, so that a row is a place in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
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
        return of.num_fields > 0 and all(_is_copied(of.field(i)) for i in range(of.num_fields))
    return pa.types.is_string(of) or pa.types.is_binary(of) or _width(of) is not None


def _width(of: pa.DataType) -> int | None:
    """The bits of each value of a type; None where values differ in it."""
    known = pa.types.is_primitive(of) or pa.types.is_decimal(of)
    return of.bit_width if known and not pa.types.is_dictionary(of) else None


def schema_width(schema: pa.Schema) -> int:
    """About how many bytes a row of these columns takes."""
    return sum(map(_bytes_of, (field.type for field in schema)))


def _bytes_of(of: Any) -> int:
    if pa.types.is_struct(of):
        return sum(_bytes_of(of.field(i).type) for i in range(of.num_fields))
    width = _width(of)
    return 32 if width is None else -(-width // 8)


def copied(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.Buffer | bytes]:
    """The buffers of all rows of a file, column by column.

    Args:
        file: the file.
        schema: its columns, as they are to be.
    """
    for field in schema:
        yield from _copied(file, (field.name,), field.type)


def _copied(file: pq.ParquetFile, path: tuple[str, ...], of: Any) -> Iterator[pa.Buffer | bytes]:
    if pa.types.is_struct(of):
        parts = [of.field(i) for i in range(of.num_fields)]
        yield _validity(column_of(file, path, parts[0]))
        for part in parts:
            yield from _copied(file, (*path, part.name), part.type)
        return
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


def rows_at(file: CheckedFile, schema: pa.Schema, rows: int, places: Numbers) -> pa.Table:
    """The rows at these places.

    Args:
        file: a copy.
        schema: its columns.
        rows: how many it has.
        places: which are read, in their order.

    Raises:
        DamagedError: what would be read is not what was written.
    """
    number = count()
    columns = [_read(file, field.type, rows, places, number) for field in schema]
    taken = pa.array(places, pa.int64())
    return pa.Table.from_arrays([column.take(taken) for column in columns], schema=schema)


def leaf_at(
    file: CheckedFile, schema: pa.Schema, rows: int, places: Numbers, path: Sequence[str]
) -> Array:
    """What stands at a path in the rows at these places; the other arguments are those of rows."""
    place = 0
    for field in schema:
        if field.name == path[0]:
            return _leaf(file, field.type, (rows, place), places, path[1:])
        place += _buffers_of(field.type)
    raise AssertionError(f"{schema} has no column {path[0]}")


def _leaf(
    file: CheckedFile, of: Any, at: tuple[int, int], places: Numbers, path: Sequence[str]
) -> Array:
    """The same of a column; `at` is how many rows there are, and the first of its buffers."""
    rows, place = at
    if not path:
        return _read(file, of, rows, places, count(place)).take(pa.array(places, pa.int64()))
    valid, inner = place, place + 1
    for i in range(of.num_fields):
        if of.field(i).name == path[0]:
            found = _leaf(file, of.field(i).type, (rows, inner), places, path[1:])
            if not file.size(valid):
                return found
            there = pa.Array.from_buffers(
                pa.bool_(), rows, [None, _checked(file, valid, places // 8, 1)]
            )
            return pc.if_else(
                there.take(pa.array(places, pa.int64())), found, pa.scalar(None, found.type)
            )
        inner += _buffers_of(of.field(i).type)
    raise AssertionError(f"{of} has no field {path[0]}")


def column_read(file: CheckedFile, schema: pa.Schema, name: str) -> memoryview:
    """The values of a column of fixed width, without nulls, all of them."""
    number = count()
    for field in schema:
        if field.name == name:
            next(number)
            return file.whole(next(number))
        for _ in range(_buffers_of(field.type)):
            next(number)
    raise AssertionError(f"{schema} has no column {name}")


def _buffers_of(of: Any) -> int:
    if pa.types.is_struct(of):
        return 1 + sum(_buffers_of(of.field(i).type) for i in range(of.num_fields))
    return 2 if _width(of) is not None else 3


def _read(file: CheckedFile, of: Any, rows: int, places: Numbers, number: count[int]) -> Array:
    """A column of which what stands at the places may be used."""
    valid = next(number)
    validity = _checked(file, valid, places // 8, 1) if file.size(valid) else None
    if pa.types.is_struct(of):
        parts = [_read(file, of.field(i).type, rows, places, number) for i in range(of.num_fields)]
        return pa.StructArray.from_buffers(of, rows, [validity], children=parts)
    width = _width(of)
    if width == 1:
        buffers = [_checked(file, next(number), places // 8, 1)]
    elif width is not None:
        buffers = [_checked(file, next(number), places, width // 8)]
    else:
        buffers = _of_text(file, next(number), next(number), places)
    return pa.Array.from_buffers(of, rows, [validity, *buffers])


def _of_text(file: CheckedFile, offsets: int, data: int, places: Numbers) -> list[pa.Buffer]:
    file.check(offsets, places * 4, places * 4 + 8)
    ends = np.frombuffer(file.unchecked(offsets), np.int32)
    file.check(data, ends[places].astype(np.int64), ends[places + 1].astype(np.int64))
    return [buffer_of(file.unchecked(offsets)), buffer_of(file.unchecked(data))]


def _checked(file: CheckedFile, place: int, values: Numbers, width: int) -> pa.Buffer:
    file.check(place, values * width, (values + 1) * width)
    return buffer_of(file.unchecked(place))
