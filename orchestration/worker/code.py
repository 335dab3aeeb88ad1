"""Which code a process runs: a number made of all files that it may have loaded.

A process of a worker keeps what it has loaded, so it serves those alone who have the same files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from hydro_core.lang.suffixes import PROGRAMS
from hydro_core.project.discover import ASSETS, SETTINGS

_PACKAGES = ("hydro_core", "hydrotick")
_KINDS = frozenset({".py", *PROGRAMS, ".yaml", ".yml", ".toml", ".json", ".sql"})
_MOST_BYTES = 4 * 1024 * 1024
"""A larger file holds data, of which its size and time tell."""


def code_number(root: Path | None) -> str:
    """The number of the code of a project in the folder `root`, and of hydrotick."""
    digest = hashlib.sha256()
    for name, file in sorted(_files(root)):
        stat = file.stat()
        large = stat.st_size > _MOST_BYTES
        content = str((stat.st_size, stat.st_mtime_ns)).encode() if large else file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _files(root: Path | None) -> Iterator[tuple[str, Path]]:
    """The files by names that are the same on every machine."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in Path(folder).rglob("*.py"):
                yield f"{package}/{file.relative_to(folder)}", file
    if root is not None:
        declared = [f for f in (root / ASSETS).rglob("*") if f.suffix in _KINDS and f.is_file()]
        settings = [root / SETTINGS] if (root / SETTINGS).is_file() else []
        for file in (*declared, *settings):
            yield str(file.relative_to(root)), file
