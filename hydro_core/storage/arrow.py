"""Files of a store as Arrow reads them: files that were listed, and nothing else of the store."""

from __future__ import annotations

import atexit
import gc
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystemHandler, FileType

from hydro_core.storage.remote import DataPlace, RemoteFile, RemotePath

if TYPE_CHECKING:
    from pyarrow.fs import PyFileSystem


# What was read, held in memory up to a number of bytes.


T = TypeVar("T")


class ByteCache(Generic[T]):
    """Values up to so many bytes; those that were not asked for the longest go first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """`size` tells the bytes of a value."""
        self.most, self._size = most, size
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Holds a value, and gives it; the last one is held however large it is."""
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._bytes += self._size(value)
            while self._bytes > self.most and len(self._values) > 1:
                _, given_up = self._values.popitem(last=False)
                self._bytes -= self._size(given_up)
        return value


# Some files of a bucket as a file system of Arrow: they are read, and nothing else.


class ArrowFiles(FileSystemHandler):
    """The files by their names, each opened as it is said."""

    def __init__(
        self, files: Mapping[str, RemotePath], opened: Callable[[RemotePath], pa.NativeFile]
    ) -> None:
        self._files, self._opened = files, opened

    def get_type_name(self) -> str:
        return "hydrotick"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: str | list[str]) -> Any:
        return [self._info(path) for path in ([paths] if isinstance(paths, str) else paths)]

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self._opened(self._files[path])

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def _info(self, path: str) -> FileInfo:
        file = self._files.get(path)
        if file is None:
            return FileInfo(path, FileType.NotFound)
        found = file.stat()
        return FileInfo(path, FileType.File, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def _refused(self, *given: Any, **named: Any) -> Any:
        """Nobody asks for folders, and nothing is written or removed."""
        raise NotImplementedError(given, named)

    get_file_info_selector = create_dir = move = copy_file = _refused
    delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refused
    open_output_stream = open_append_stream = _refused


# Files of a store as Arrow reads them: some files that were listed, and nothing else of the
# store.
#
# Arrow asks for the end of a Parquet file before it knows whether it wants any of its rows, and a
# landing has many files of which a tick wants a few. So the ends of files are held, up to a
# number of bytes: a file that is there unchanged is not asked for again.


_END = 64 * 1024
"""What Arrow reads of a Parquet file first."""
_HELD = 64 * 1024 * 1024


_ENDS: ByteCache[bytes] = ByteCache(_HELD, len)
_IN_USE: WeakSet[_WithEnd] = WeakSet()
"""The files that somebody has open."""


class _WithEnd(RemoteFile):
    """A file whose end is read once."""

    def __init__(self, place: RemotePath) -> None:
        super().__init__(place)
        self._known = (str(place), place.settings, place.stat())

    def readinto(self, buffer: Any) -> int:
        """Reads what fits, of the end from what is held."""
        begin = max(0, self._size - _END)
        if self._at < begin or self._at >= self._size:
            return super().readinto(buffer)
        end = _ENDS.get(self._known)
        if end is None:
            end = _ENDS.put(self._known, self._bytes(begin, self._size - begin))
        found = end[self._at - begin :][: len(buffer)]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


def opened(place: DataPlace) -> Any:
    """What Arrow reads a file by: its path, or its bytes in a store."""
    return opened_in_store(place) if isinstance(place, RemotePath) else place


def opened_in_store(place: RemotePath) -> pa.NativeFile:
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
    return place.key if isinstance(place, RemotePath) else str(place)


def file_system(files: Sequence[DataPlace]) -> PyFileSystem | None:
    """The file system in which a dataset finds the files; None: that of this machine."""
    remote = {file.key: file for file in files if isinstance(file, RemotePath)}
    if not remote:
        return None
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(ArrowFiles(remote, opened_in_store))
