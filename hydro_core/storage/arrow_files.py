"""Some files of a bucket as a file system of Arrow: they are read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType

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

    def get_file_info_selector(self, selector: FileSelector) -> Any:
        """Nobody asks for folders."""
        raise NotImplementedError(selector.base_dir)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Nothing is written."""
        raise NotImplementedError(path, recursive)

    def delete_dir(self, path: str) -> None:
        """Nothing is removed."""
        raise NotImplementedError(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Nothing is removed."""
        raise NotImplementedError(path, missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        """Nothing is removed."""
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        """Nothing is removed."""
        raise NotImplementedError(path)

    def move(self, src: str, dest: str) -> None:
        """Nothing is moved."""
        raise NotImplementedError(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        """Nothing is copied."""
        raise NotImplementedError(src, dest)

    def open_output_stream(self, path: str, metadata: dict[str, str]) -> Any:
        """Nothing is written."""
        raise NotImplementedError(path, metadata)

    def open_append_stream(self, path: str, metadata: dict[str, str]) -> Any:
        """Nothing is written."""
        raise NotImplementedError(path, metadata)
