"""What lies at a path, a file, a folder or a glob, and how files of each kind are opened."""

from __future__ import annotations

import csv
import glob
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from hydro_core.files.parquet import parquet_format
from hydro_core.files.unreadable import (
    UNREADABLE,
    is_utf8,
    refuse,
    refuse_file,
    refuse_not_utf8,
    text_of,
)
from hydro_core.files.wrong import IS_NOT_UTF8, TextLine, WrongRow
from hydro_core.machine.delta_path import refuse_path
from hydro_core.storage.arrow import file_system, name_of
from hydro_core.storage.patterns import WILD, fixed_part, matching
from hydro_core.storage.remote import DataPlace, Remote
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import BINARY, BOOLEAN, FLOATS, INTEGERS, ItemType, Scalar
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.json import parse_json
from hydro_core.types.values import UNFIT, ValueProblem

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

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
_AN_OBJECT = "each line is one JSON object"
NUMBERS = frozenset(Scalar(name) for name in INTEGERS + FLOATS)


def wanted_of(declared: Declared, tick_column: str | None) -> ReadNames:
    """The columns to be read: what is declared and the tick column; all, if nothing is declared."""
    return frozenset((*declared, tick_column)) if declared else None


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


def _files(path: DataPlace) -> list[DataPlace]:
    files = _files_in_store(path) if isinstance(path, Remote) else _files_here(path)
    if not files:
        refuse(
            f"there is nothing to read at `{path}`",
            "name a file, a folder, a glob or a Delta table",
        )
    return files


def _files_in_store(place: Remote) -> list[DataPlace]:
    if is_pattern(place):
        return list[DataPlace](sorted(matching(place)))
    found = list(place.files())
    for file in found:
        if "_delta_log" in file.relative_to(place).parts[:-1]:
            _refuse_inner(file.parent.parent)
    if not found and place.is_file():
        return [place]
    return list[DataPlace](
        sorted(f for f in found if not any(p[0] in "_." for p in f.relative_to(place).parts))
    )


def _files_here(path: Path) -> list[DataPlace]:
    # Path.glob knows no absolute patterns.
    matched = glob.glob(str(path), recursive=True) if is_pattern(path) else [path]  # noqa: PTH207
    return list[DataPlace](sorted(file for place in map(Path, matched) for file in _within(place)))


def _within(place: Path) -> Iterable[Path]:
    """The files of a place; what begins with `_` or `.` is not data."""
    if place.is_file():
        return [place]
    if not place.exists() and place.is_symlink():
        _refuse_link(place)
    inner = next(place.rglob("_delta_log"), None)
    if inner is not None:
        _refuse_inner(inner.parent)
    shown = (
        file
        for file in place.rglob("*")
        if not any(p[0] in "_." for p in file.relative_to(place).parts)
    )
    return filter(_is_file, shown)


def _is_file(place: Path) -> bool:
    if place.is_file():
        return True
    if place.is_symlink():
        _refuse_link(place)
    return False


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


def parquet_file(file: DataPlace, base: DataPlace) -> Dataset:
    """A Parquet file, whose columns are also those that folders below `base` name."""
    from pyarrow.dataset import dataset

    return dataset(
        name_of(file),
        format=parquet_format(),
        filesystem=file_system([file]),
        partitioning="hive",
        partition_base_dir=name_of(base),
    )


def among(names: Iterable[str], wanted: ReadNames) -> list[str]:
    """The columns that are read."""
    return [name for name in names if wanted is None or name in wanted]


def base_of(path: DataPlace) -> DataPlace:
    """The folder itself, or the one that a glob begins with: `a=1` below it names a column."""
    if path.is_dir():
        return path
    if isinstance(path, Remote):
        return fixed_part(path)
    parts = []
    for part in path.parent.parts:
        if WILD & set(part):
            break
        parts.append(part)
    return Path(*parts) if parts else Path()


def csv_options(
    types: Mapping[str, pa.DataType], columns: list[str] | None
) -> pyarrow.csv.ConvertOptions:
    """How the fields of CSV are read; an empty field is null, a quoted one an empty text."""
    return pyarrow.csv.ConvertOptions(
        column_types=dict(types),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        # Nothing is read in vain: what nobody wants may be of any kind.
        include_columns=columns,
    )


def header_of(file: DataPlace, wanted: ReadNames) -> list[str]:
    """The names of the columns of a CSV file, each of which that is read stands there once."""
    with text_of(file, strict=False) as lines:
        header = next(csv.reader(lines), [])
    if not all(map(is_utf8, header)):
        refuse_not_utf8(file, 1)
    twice = [name for name, count in Counter(among(header, wanted)).items() if count > 1]
    if twice:
        refuse(
            f"`{file}` has several columns `{twice[0]}`",
            "give each a name of its own in the file's first line",
        )
    return header


def csv_type(name: str, item: ItemType) -> pa.DataType:
    """How a column is read: dates, timestamps and decimals as text, of which they are made."""
    if not isinstance(item, Scalar | DecimalType) or item == BINARY:
        refuse(
            f"the column `{name}` is of type {item}, which CSV has no form for",
            "use Parquet or JSON lines",
        )
    if item == BOOLEAN or item in NUMBERS:
        return arrow_type(item)
    return pa.string()


def common_schema(path: DataPlace, schemas: list[pa.Schema]) -> pa.Schema:
    """The columns of several files, in the types that hold what is in all of them."""
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as problem:
        refuse(f"the files of `{path}` have columns of different types: {problem}", UNFIT)


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line of a file, and the object that it is, or why it is none."""

    line: TextLine
    object: dict[str, Any]
    wrong: WrongRow | None = None


def json_lines(file: DataPlace, *, tolerant: bool = False) -> Iterator[JsonLine]:
    """The objects of a file, a line each; if `tolerant`, with the lines that are none."""
    try:
        with text_of(file, strict=False) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _json_line(file, number, line, tolerant)
    except UNREADABLE as problem:
        refuse_file(file, problem)


def _json_line(file: DataPlace, number: int, line: str, tolerant: bool) -> JsonLine:
    row, reason = _json_object(line)
    if row is not None:
        return JsonLine(TextLine(number, line), row)
    if not tolerant:
        if reason == IS_NOT_UTF8:
            refuse_not_utf8(file, number)
        refuse(f"`{file}`, line {number} {reason.removeprefix('it ')}", _AN_OBJECT)
    return JsonLine(TextLine(number, line), {}, WrongRow(reason))


def _json_object(line: str) -> tuple[dict[str, Any] | None, str]:
    """The object that a line is, or why it is none."""
    if not is_utf8(line):
        return None, IS_NOT_UTF8
    try:
        row = parse_json(line)
    except ValueProblem as problem:
        return None, f"it is not JSON: {problem}"
    return (row, "") if isinstance(row, dict) else (None, "it is no JSON object")
