"""Some files of a bucket as a file system of Arrow: they are read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystemHandler, FileType

from hydro_core.storage.remote import Remote


class ArrowFiles(FileSystemHandler):
    """The files by their names, each opened as it is said."""

    def __init__(
        self, files: Mapping[str, Remote], opened: Callable[[Remote], pa.NativeFile]
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
