"""Files of buffers that are mapped into memory, of which every page is checked before it is used.

They hold what can be made again at any time. So whatever such a file has become, half written,
exchanged, with other bytes, whoever reads it is told in place of being given something else; and a
file is never changed: it is written beside, and put in its place whole.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hydro_core.spark.store.values import Int64s

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
