"""Files of a store as Arrow reads them: some files that were listed, and nothing else of the store.

Arrow asks for the end of a Parquet file before it knows whether it wants any of its rows, and a
landing has many files of which a tick wants a few. So the ends of files are held, up to a number of
bytes: a file that is there unchanged is not asked for again.
"""

from __future__ import annotations

import atexit
import gc
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pyarrow as pa

from hydro_core.storage.held import Held
from hydro_core.storage.remote import DataPlace, Remote, RemoteFile

if TYPE_CHECKING:
    from pyarrow.fs import PyFileSystem

_END = 64 * 1024
"""What Arrow reads of a Parquet file first."""
_HELD = 64 * 1024 * 1024


_ENDS: Held[bytes] = Held(_HELD, len)
_IN_USE: WeakSet[_WithEnd] = WeakSet()
"""The files that somebody has open."""


class _WithEnd(RemoteFile):
    """A file whose end is read once."""

    def __init__(self, place: Remote) -> None:
        super().__init__(place)
        self._known = (str(place), place.settings, place.stat())

    def readinto(self, buffer: Any) -> int:
        """Reads what fits, of the end from what is held."""
        begin = max(0, self._size - _END)
        if self._at < begin or self._at >= self._size:
            return super().readinto(buffer)
        end = _ENDS.get(self._known)
        if end is None:
            read = self._store.read_range(self._key, begin, self._size - begin)
            end = _ENDS.put(self._known, read)
        found = end[self._at - begin :][: len(buffer)]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


def opened(place: DataPlace) -> Any:
    """What Arrow reads a file by: its path, or its bytes in a store."""
    return opened_in_store(place) if isinstance(place, Remote) else place


def opened_in_store(place: Remote) -> pa.NativeFile:
    file = _WithEnd(place)
    _IN_USE.add(file)
    return pa.PythonFile(file, mode="r")


def let_go_of(seconds: float = 0.3) -> bool:
    """Waits until no thread of Arrow's has a file of a store any more; gives whether that is so.

    Arrow reads ahead, and lets go of files when it comes to it. A thread of it that wants Python
    for that while the process ends, ends the process with an error.
    """
    until = time.monotonic() + seconds
    while _IN_USE and time.monotonic() < until:
        gc.collect()
        time.sleep(0.005)
    return not _IN_USE


atexit.register(let_go_of)


def names_of(files: Sequence[DataPlace]) -> list[str]:
    """The names by which a dataset of Arrow knows the files; see `file_system`."""
    return [name_of(file) for file in files]


def name_of(place: DataPlace) -> str:
    """The same of one file, or of the folder that they are in."""
    return place.key if isinstance(place, Remote) else str(place)


def file_system(files: Sequence[DataPlace]) -> PyFileSystem | None:
    """The file system in which a dataset finds the files; None: that of this machine."""
    remote = {file.key: file for file in files if isinstance(file, Remote)}
    if not remote:
        return None
    from pyarrow.fs import PyFileSystem

    from hydro_core.storage.arrow_files import ArrowFiles

    return PyFileSystem(ArrowFiles(remote, opened_in_store))
