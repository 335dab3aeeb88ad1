"""What lies at a path, a file, a folder or a glob: which files, and of which kind."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import NoReturn
from urllib.parse import unquote

from hydro_core.files.unreadable import refuse
from hydro_core.machine.faults import refuse_path
from hydro_core.storage.places import WILD, fixed_part, matching
from hydro_core.storage.remote import DataPlace, RemotePath, name_below
from hydro_core.types.item import ItemType

Declared = Mapping[str, ItemType]
"""The columns that a program declares, where it does."""
ReadNames = frozenset[str | None] | None
"""The names of the columns to be read; None: all."""

JSON_LINES = "JSON lines"
_KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".json": JSON_LINES,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
}


def is_delta(path: DataPlace) -> bool:
    """Whether a Delta table is there.

    Raises:
        DataError: there is one, in a path that its library cannot take (code `config`).
    """
    there = (path / "_delta_log").is_dir()
    if there:
        refuse_path(path)
    return there


def files_at(path: DataPlace) -> tuple[str, list[DataPlace]]:
    """The files at a path and what they all are: Parquet, CSV or JSON lines."""
    files = _files(path)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        refuse(
            f"`{path}` holds files of several kinds: {', '.join(sorted(kinds))}",
            "take a glob that matches those of one kind, such as `*.csv`",
        )
    return kinds.pop(), files


def is_pattern(path: DataPlace) -> bool:
    """Whether the path is a glob and not the name of something that is there."""
    return bool(WILD & set(str(path))) and not path.exists()


def is_empty(path: DataPlace) -> bool:
    """Whether it is a folder in which no data lies; a store has no such folders."""
    if isinstance(path, RemotePath) or not path.is_dir() or is_delta(path):
        return False
    return not any(_within(path))


def _files(path: DataPlace) -> list[DataPlace]:
    files = _files_in_store(path) if isinstance(path, RemotePath) else _files_here(path)
    if not files:
        refuse(
            f"there is nothing to read at `{path}`",
            "name a file, a folder, a glob or a Delta table",
        )
    return files


def _files_in_store(place: RemotePath) -> list[DataPlace]:
    if is_pattern(place):
        return list[DataPlace](sorted(matching(place)))
    found = list(place.files())
    for file in found:
        if "_delta_log" in file.relative_to(place).parts[:-1]:
            _refuse_inner(file.parent.parent)
    if not found and place.is_file():
        return [place]
    return list[DataPlace](sorted(f for f in found if not _is_hidden(f, place)))


def _files_here(path: Path) -> list[DataPlace]:
    # Path.glob knows no absolute patterns.
    matched = glob.glob(str(path), recursive=True) if is_pattern(path) else [path]  # noqa: PTH207
    return list[DataPlace](sorted(file for place in map(Path, matched) for file in _within(place)))


def _is_hidden(file: DataPlace, below: DataPlace) -> bool:
    """Whether it is not data: its name, or that of a folder of its, begins with `_` or `.`."""
    return any(part[0] in "_." for part in PurePath(name_below(file, below)).parts)


def _within(place: Path) -> Iterator[Path]:
    """The files of a place."""
    if place.is_file():
        yield place
        return
    if not place.exists() and place.is_symlink():
        _refuse_link(place)
    inner = next(place.rglob("_delta_log"), None)
    if inner is not None:
        _refuse_inner(inner.parent)
    for file in place.rglob("*"):
        if _is_hidden(file, place):
            continue
        if file.is_file():
            yield file
        elif file.is_symlink():
            _refuse_link(file)


def _refuse_link(place: Path) -> NoReturn:
    """Refuses a link whose rows would be missing, as if nobody had meant them to be there."""
    if place.is_dir():
        refuse(
            f"`{place}` is a link to a folder, of which no file would be read",
            "move the files here, or link to each of them",
        )
    refuse(
        f"`{place}` is a link to what is not there: {place.readlink()}",
        "bring back the file, or remove the link",
    )


def _refuse_inner(table: DataPlace) -> NoReturn:
    refuse(
        f"there is a Delta table at `{table}`, some of whose files count no more",
        "name the table by itself",
    )


def _kind(file: DataPlace) -> str:
    suffixes = [s for s in file.suffixes if s != ".gz"]
    kind = _KINDS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        refuse(
            f"`{file}` is of no known kind",
            f"known are {', '.join(_KINDS)}, each also with .gz, and Delta tables",
        )
    return kind


def among(names: Iterable[str], wanted: ReadNames) -> list[str]:
    """The columns that are read."""
    return [name for name in names if wanted is None or name in wanted]


def base_of(path: DataPlace) -> DataPlace:
    """The folder itself, or the one that a glob begins with: `a=1` below it names a column."""
    if path.is_dir():
        return path
    if isinstance(path, RemotePath):
        return fixed_part(path)
    parts = []
    for part in path.parent.parts:
        if WILD & set(part):
            break
        parts.append(part)
    return Path(*parts) if parts else Path()


def folder_texts(file: DataPlace, base: DataPlace) -> dict[str, str | None]:
    """What the names of the folders of a file say of columns: `k=5` below `base`; None: null."""
    texts: dict[str, str | None] = {}
    for folder in PurePath(name_below(file, base)).parts[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            texts[unquote(name)] = None if value == _NULL else unquote(value)
    return texts


_NULL = "__HIVE_DEFAULT_PARTITION__"
