"""Files that an index of a large data file consists of: sorted hashes, and rows uncompressed."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydro_core.spark.store.schema import Column, Int64s, comparable

# Files of buffers hold what can be made again at any time. Whatever such a file has become, half
# written, exchanged, with other bytes, whoever reads it is told; it is written beside, and put in
# its place whole.


FileFacts = Mapping[str, Any]
"""What a file is: it is read by those alone who ask for the same."""

_MAGIC = b"hydrotick lookup 1\n"
_HEAD = struct.Struct("<QI")
_PAGE = 4096


class DamagedError(Exception):
    """A file is not what was written."""


def write_checked(file: Path, facts: FileFacts, buffers: Iterable[Any]) -> None:
    """Writes buffers as one file, which stands at its place when it is whole.

    Args:
        file: its place.
        facts: what it is, as JSON has it.
        buffers: bytes, or what has some, made one after the other.

    Raises:
        OSError: there is no place for it.
    """
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex[:12]}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as out:
            _write(out, facts, buffers)
        beside.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _write(out: Any, facts: FileFacts, buffers: Iterable[Any]) -> None:
    sums: list[int] = []
    sizes: list[int] = []
    # The sums stand behind the pages, and the head, which says their sum, behind them.
    for one in buffers:
        part = memoryview(one).cast("B")
        sizes.append(len(part))
        for start in range(0, len(part), _PAGE):
            page = bytes(part[start : start + _PAGE]).ljust(_PAGE, b"\0")
            sums.append(zlib.crc32(page))
            out.write(page)
    table = struct.pack(f"<{len(sums)}I", *sums)
    head = json.dumps({"told": facts, "sizes": sizes, "sums": zlib.crc32(table)}).encode()
    out.write(table + head + _HEAD.pack(len(head), zlib.crc32(head)) + _MAGIC)


class CheckedFile:
    """A file of buffers, mapped into memory."""

    def __init__(self, file: Path, facts: FileFacts) -> None:
        """Opens it.

        Raises:
            DamagedError: it is not what was written, or something else.
            OSError: it cannot be opened.
        """
        with file.open("rb") as opened:
            self._file, self._stat = file, _identity(os.fstat(opened.fileno()))
            size = self._stat[0]
            end = size - len(_MAGIC) - _HEAD.size
            if end < 0:
                raise DamagedError(file)
            self._map = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ)
        length, crc = _HEAD.unpack_from(self._map, end)
        head = self._map[max(end - length, 0) : end]
        if self._map[-len(_MAGIC) :] != _MAGIC or zlib.crc32(head) != crc:
            raise DamagedError(file)
        known = json.loads(head)
        sizes: list[int] = known["sizes"]
        counts = [_pages(one) for one in sizes]
        pages = sum(counts)
        table = self._map[pages * _PAGE : end - length]
        if known["told"] != facts or zlib.crc32(table) != known["sums"] or len(table) != 4 * pages:
            raise DamagedError(file)
        self._sums = np.frombuffer(table, np.uint32)
        self._checked = np.zeros(pages, np.bool_)
        self._buffers = tuple(zip((sum(counts[:i]) for i in range(len(sizes))), sizes, strict=True))

    def refuse_changed(self) -> None:
        """Raises if another file stands at its place, or none.

        A file that was cut off must not be looked into where it ended before.

        Raises:
            DamagedError: it is so.
        """
        try:
            found = _identity(self._file.stat())
        except OSError as error:
            raise DamagedError(self._file) from error
        if found != self._stat:
            raise DamagedError(self._file)

    @property
    def pages_checked(self) -> int:
        """How many pages were looked at."""
        return int(self._checked.sum())

    def size(self, place: int) -> int:
        """The bytes of a buffer."""
        return self._buffers[place][1]

    def whole(self, place: int) -> memoryview:
        """A buffer, all of it checked.

        Raises:
            DamagedError: it is not what was written.
        """
        self.check(place, np.zeros(1, np.int64), np.full(1, self.size(place)))
        return self.unchecked(place)

    def unchecked(self, place: int) -> memoryview:
        """A buffer, of which nothing is to be used that was not checked."""
        first, size = self._buffers[place]
        return memoryview(self._map)[first * _PAGE : first * _PAGE + size]

    def check(self, place: int, starts: Int64s, ends: Int64s) -> None:
        """Checks parts of a buffer.

        Args:
            place: which buffer.
            starts: the bytes with which the parts begin.
            ends: those before which they end.

        Raises:
            DamagedError: one of them is not what was written.
        """
        first, size = self._buffers[place]
        there = ends > starts
        if not there.all():
            starts, ends = starts[there], ends[there]
        if not len(starts):
            return
        if int(starts.min()) < 0 or int(ends.max()) > size:
            raise DamagedError(self._file)
        begin, last = starts // _PAGE, (ends - 1) // _PAGE
        wanted = np.zeros(_pages(size), np.bool_)
        wanted[begin] = wanted[last] = True
        for i in np.flatnonzero(last - begin > 1):
            wanted[begin[i] : last[i]] = True
        wanted &= ~self._checked[first : first + len(wanted)]
        for page in (np.flatnonzero(wanted) + first).tolist():
            at = page * _PAGE
            if zlib.crc32(self._map[at : at + _PAGE]) != int(self._sums[page]):
                raise DamagedError(self._file)
            self._checked[page] = True


def buffer_of(part: memoryview) -> pa.Buffer:
    """A part of a file as Arrow's, without a copy."""
    return pa.py_buffer(part if len(part) else b"")


def left_behind(directory: Path, seconds: float, now: float) -> Iterator[Path]:
    """Files that somebody began to write so long ago that nobody does any more."""
    for file in directory.glob(".*"):
        with contextlib.suppress(OSError):
            if now - file.stat().st_mtime > seconds:
                yield file


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_size, stat.st_ino, stat.st_mtime_ns


def _pages(size: int) -> int:
    return -(-size // _PAGE)


# Unequal keys may have one hash, so whoever goes by hashes finds too many rows, and none too few.


Hashes = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]

_NULL = 0x9E3779B97F4A7C15
_ODD = 0xD6E8FEB86659FD93
_BASE = 0x100000001B3
"""Odd numbers whose bits are spread: sums and products with them are taken modulo 2 ** 64."""
BYTES_AT_ONCE = 1 << 20
"""So many bytes of texts are looked at together, or those of one text."""


def are_hashed(of: pa.DataType) -> bool:
    types: Any = pa.types
    tests = (
        types.is_integer,
        types.is_boolean,
        types.is_floating,
        types.is_decimal128,
        types.is_date32,
        types.is_timestamp,
        types.is_string,
        types.is_binary,
    )
    return any(test(of) for test in tests)


def hashes(columns: Sequence[Column]) -> Hashes:
    """A hash for each combination of values, null among them.

    Args:
        columns: at least one, all of one length, of types that have hashes.
    """
    return (words_of(columns) >> np.uint64(32)).astype(np.uint32)


def words_of(columns: Iterable[Column]) -> Words:
    """The same as a hash of 64 bits; columns are asked for one by one."""
    found: Words = np.zeros(1, np.uint64)
    for column in columns:
        compared = comparable(column)
        words = _mixed(_words(compared))
        if compared.null_count:
            words[~compared.is_valid().to_numpy(zero_copy_only=False)] = np.uint64(_NULL)
        found = _mixed(found * np.uint64(_BASE) + words)
    return found


def _mixed(words: Words) -> Words:
    """Each word with its bits spread over all of it."""
    for _ in range(2):
        words = (words ^ (words >> np.uint64(32))) * np.uint64(_ODD)
    return words ^ (words >> np.uint64(32))


def _words(column: Column) -> Words:
    """A word for each value that has the same where another is equal; of nulls any."""
    of = column.type
    if pa.types.is_string(of) or pa.types.is_binary(of):
        return _of_bytes(column)
    if pa.types.is_decimal(of):
        data = np.frombuffer(column.buffers()[1], np.uint64)
        both = data[2 * column.offset :][: 2 * len(column)].reshape(-1, 2)
        low: Words = _mixed(both[:, 0]) + both[:, 1]
        return low
    if pa.types.is_floating(of):
        return _words_of(column.cast(pa.float64()), 0.0)
    if pa.types.is_boolean(of):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(of):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(of):
        column = column.view(pa.int64())
    return _words_of(column.cast(pa.int64()), 0)


def _words_of(column: Column, instead: float) -> Words:
    filled: Any = pc.fill_null(column, instead)
    words: Words = np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)).view(np.uint64)
    return words


def _of_bytes(column: Column) -> Words:
    """The bytes of each value as digits of one number, and how many they are."""
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(0, np.uint64)
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    # Each byte takes some words on the way, so not all are looked at together.
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], BYTES_AT_ONCE))
    bounds = np.unique(np.concatenate([[0], cuts, [len(column)]])).tolist()
    parts = [_of_digits(held, ends[first : last + 1]) for first, last in pairwise(bounds)]
    return np.concatenate(parts)


def _of_digits(held: npt.NDArray[np.uint8], ends: Int64s) -> Words:
    """The same of the values between these ends."""
    lengths = np.diff(ends)
    read = held[ends[0] : ends[-1]]
    longest = int(lengths.max(initial=0))
    powers = np.cumprod(np.full(longest + 1, _BASE, np.uint64), dtype=np.uint64)
    starts = ends[:-1] - ends[0]
    within = np.arange(len(read)) - np.repeat(starts, lengths)
    digits = (read.astype(np.uint64) + np.uint64(1)) * powers[within]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(digits, dtype=np.uint64)])
    words: Words = sums[starts + lengths] - sums[starts] + lengths.astype(np.uint64)
    return words


# Of a Parquet file whole row groups are unpacked, and rows that are met lie in all of them. A
# copy has each column as Arrow has it in memory, so that a row is a place in it.


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

    def at(self, places: Int64s) -> pa.Table:
        """The rows at these places, which are in their order.

        Raises:
            DamagedError: what would be read is not what was written; so do the others.
        """
        columns = [self._read(of, first, places) for _, of, first in _laid_out(self._schema)]
        taken = pa.array(places, pa.int64())
        return pa.Table.from_arrays([one.take(taken) for one in columns], schema=self._schema)

    def leaf(self, path: Sequence[str], places: Int64s) -> Array:
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

    def _read(self, of: Any, first: int, places: Int64s) -> Array:
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

    def _of_text(self, offsets: int, data: int, places: Int64s) -> list[pa.Buffer]:
        file = self._file
        file.check(offsets, places * 4, places * 4 + 8)
        ends = np.frombuffer(file.unchecked(offsets), np.int32)
        file.check(data, ends[places].astype(np.int64), ends[places + 1].astype(np.int64))
        return [buffer_of(file.unchecked(offsets)), buffer_of(file.unchecked(data))]

    def _checked(self, buffer: int, values: Int64s, width: int) -> pa.Buffer:
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
