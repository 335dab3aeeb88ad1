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


# Cache in memory, limited by the number of bytes.


T = TypeVar("T")


class ByteCache(Generic[T]):
    """Cached values up to a number of bytes; the least recently used are dropped first."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """`size` gives the bytes of a value."""
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
        """Caches a value, and gives it; the last value is cached however large it is."""
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._bytes += self._size(value)
            while self._bytes > self.most and len(self._values) > 1:
                _, given_up = self._values.popitem(last=False)
                self._bytes -= self._size(given_up)
        return value


# Listed files of a bucket as a read-only file system of Arrow.


class ArrowFiles(FileSystemHandler):
    """The files by their names; `open` opens one."""

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
        """Arrow lists no folders here, and nothing is written or removed."""
        raise NotImplementedError(given, named)

    get_file_info_selector = create_dir = move = copy_file = _refused
    delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refused
    open_output_stream = open_append_stream = _refused


# Files of a store as Arrow reads them: listed files, and nothing else of the store.
#
# Arrow reads the end of a Parquet file before it knows if it needs any of its rows, and a landing
# has many files while a tick needs a few. So the ends of files are cached, up to a number of bytes:
# an unchanged file is not requested again.


_END = 64 * 1024
"""Bytes at the end of a Parquet file that Arrow reads first."""
_HELD = 64 * 1024 * 1024


_ENDS: ByteCache[bytes] = ByteCache(_HELD, len)
_IN_USE: WeakSet[_WithEnd] = WeakSet()
"""The open files."""


class _WithEnd(RemoteFile):
    """A file whose end is read once."""

    def __init__(self, place: RemotePath) -> None:
        super().__init__(place)
        self._known = (str(place), place.settings, place.stat())

    def readinto(self, buffer: Any) -> int:
        """Reads as much as fits; the end of the file comes from the cache."""
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
    """The argument by which Arrow reads a file: its path, or a file object in a store."""
    return opened_in_store(place) if isinstance(place, RemotePath) else place


def opened_in_store(place: RemotePath) -> pa.NativeFile:
    file = _WithEnd(place)
    _IN_USE.add(file)
    return pa.PythonFile(file, mode="r")


def let_go_of(seconds: float = 0.3) -> bool:
    """Waits until no thread of Arrow's has a file of a store open; gives True if that is so.

    Arrow reads ahead, and closes files later in its own threads. Such a thread that needs Python
    while the process ends makes the process end with an error.
    """
    until = time.monotonic() + seconds
    while _IN_USE and time.monotonic() < until:
        gc.collect()
        time.sleep(0.005)
    return not _IN_USE


atexit.register(let_go_of)


def names_of(files: Sequence[DataPlace]) -> list[str]:
    """The names of the files in a dataset of Arrow; see `file_system`."""
    return [name_of(file) for file in files]


def name_of(place: DataPlace) -> str:
    """The same for one file, or for the folder of the files."""
    return place.key if isinstance(place, RemotePath) else str(place)


def file_system(files: Sequence[DataPlace]) -> PyFileSystem | None:
    """The file system in which a dataset finds the files; None: the local one."""
    remote = {file.key: file for file in files if isinstance(file, RemotePath)}
    if not remote:
        return None
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(ArrowFiles(remote, opened_in_store))
