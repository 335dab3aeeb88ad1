"""Outputs as Parquet files: `tick`, the item's columns, and `position` where there is an order.

An output appears whole or not at all: it is written beside its place and put there at the end. What
was there before is replaced if it was written here, and never touched if it was not.
"""

from __future__ import annotations

import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet

from hydro_core.errors import DataError
from hydro_core.files.parquet import opened_parquet
from hydro_core.machine.faults import raise_outage, written_at
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import Array, ItemType, Order, Row, StreamType, Tuple, declared_columns

TICK, POSITION, ITEM = "tick", "position", "item"
FILE = "part-00000.parquet"
MARK = b"hydrotick"
"""The key of the files' metadata that says who wrote them."""
SPARK_MARK = b'"metadata":{"hydrotick":"output"}'
"""The same in what Spark writes: it keeps the metadata of columns only."""
_LONGEST_NAME = 255
"""Bytes, on all usual file systems."""
_SHOWN = 60
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class OutputFolders:
    """The folders of a run's outputs; put in their places when it ends without an exception."""

    def __init__(self, directory: DataPlace, outputs: Mapping[str, StreamType]) -> None:
        _check_names(outputs)
        for name, stream in outputs.items():
            _check_columns(name, stream)
            _check_place(directory / name)
        # While they are written, folders have numbers: not everything takes every name.
        self._directory, self._numbers = directory, {n: str(i) for i, n in enumerate(outputs)}
        beside = None
        if isinstance(directory, Path):
            with written_at(directory, "--out"):
                directory.mkdir(parents=True, exist_ok=True)
            beside = directory
        self._scratch = Path(tempfile.mkdtemp(prefix=".hydrotick-", dir=beside))

    def folder(self, name: str) -> Path:
        """Where the files of an output are written."""
        return self._scratch / self._numbers[name]

    def close(self) -> None:
        """Completes what is written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
            if kind is None:
                for name in self._numbers:
                    self._place(name)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _place(self, name: str) -> None:
        place = self._directory / name
        if isinstance(place, RemotePath):
            _put(self.folder(name), place)
            return
        if place.exists():
            place.rename(self._scratch / f"{self._numbers[name]}.before")
        self.folder(name).rename(place)


class OutputFiles(OutputFolders):
    """The outputs of a run as files, written tick by tick."""

    def __init__(self, directory: DataPlace, outputs: Mapping[str, StreamType]) -> None:
        super().__init__(directory, outputs)
        self._files = {name: _File(self.folder(name), stream) for name, stream in outputs.items()}

    def write(self, tick: int, outputs: Mapping[str, Sequence[Any]]) -> None:
        """Adds what a tick has put out."""
        for name, items in outputs.items():
            self._files[name].write(tick, items)

    def close(self) -> None:
        """Completes the files."""
        for file in self._files.values():
            file.close()


class _File:
    """One output's file."""

    def __init__(self, folder: Path, stream: StreamType) -> None:
        self._item = stream.item
        self._ordered = stream.order is Order.TOTAL
        columns = columns_of(stream.item)
        fields = [(TICK, pa.int64()), *((name, arrow_type(t)) for name, t in columns.items())]
        if self._ordered:
            fields.append((POSITION, pa.int64()))
        self._columns = columns
        self._schema = pa.schema(fields, metadata={MARK: b"output"})
        folder.mkdir()
        self._writer = pyarrow.parquet.ParquetWriter(folder / FILE, self._schema)

    def write(self, tick: int, items: Sequence[Any]) -> None:
        """Adds a tick's items as a group of rows."""
        if not items:
            return
        arrays: list[Any] = [pa.array([tick] * len(items), pa.int64())]
        is_whole = not isinstance(self._item, Row | Tuple)
        for place, (name, of) in enumerate(self._columns.items()):
            part = place if isinstance(self._item, Tuple) else name
            values = items if is_whole else [None if one is None else one[part] for one in items]
            arrays.append(to_arrow(list(values), of))
        if self._ordered:
            arrays.append(pa.array(range(len(items)), pa.int64()))
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Completes the file."""
        self._writer.close()


def columns_of(item: ItemType) -> Mapping[str, ItemType]:
    """The columns that an item is written in; a row without columns has none."""
    found = declared_columns(item)
    return {ITEM: item} if found is None else found


def _check_columns(name: str, stream: StreamType) -> None:
    for column, of in columns_of(stream.item).items():
        if _has_an_empty_row(of):
            message = f"the output `{name}` has rows without columns in `{column}`"
            help_ = "a Parquet file has no place for these: give them a column, or leave it out"
            raise DataError.of("type", message, help=help_)
    own = [TICK, POSITION] if stream.order is Order.TOTAL else [TICK]
    taken = [column for column in own if column in columns_of(stream.item)]
    if taken:
        raise DataError.of(
            "type",
            f"the output `{name}` has a column `{taken[0]}` of its own, where files have the "
            + ("tick's number" if taken[0] == TICK else "item's position"),
            help=f'rename it before: `rename({taken[0]}_="{taken[0]}")`',
        )


def _has_an_empty_row(item: ItemType) -> bool:
    match item:
        case Row(fields):
            return not fields or any(_has_an_empty_row(field.type) for field in fields)
        case Tuple(parts):
            return any(map(_has_an_empty_row, parts))
        case Array(element):
            return _has_an_empty_row(element)
        case _:
            return False


def _check_names(names: Iterable[str]) -> None:
    """Refuses outputs that a folder cannot be called by, and those that would share one."""
    alike: dict[str, str] = {}
    for name in names:
        unfit = not name.isprintable() or "/" in name or name.startswith(".")
        if unfit or len(name.encode()) > _LONGEST_NAME:
            # A name as a message has it is short, and printable.
            whole = f"`{name}`" if name.isprintable() else ascii(name)
            shown = whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"
            raise DataError.of(
                "config",
                f"the output {shown} cannot be written: that is not the name of a folder",
                help="give the output another name",
            )
        # File systems may not tell letters by their case, nor by how they are composed.
        other = alike.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if other is not name:
            raise DataError.of(
                "config",
                f"the outputs `{other}` and `{name}` cannot both be written: "
                "a folder's name is the same in upper and lower case",
                help="give one of them another name",
            )


def _put(folder: Path, place: RemotePath) -> None:
    """Writes the files of a folder to a store, then removes those that were there before."""
    before = {file.key for file in place.files()}
    for file in sorted(folder.iterdir()):
        written = place / file.name
        place.store.write_file(written.key, file)
        before.discard(written.key)
    place.store.delete(sorted(before))


def _check_place(place: DataPlace) -> None:
    if isinstance(place, RemotePath):
        ours = not place.is_file() and all(map(_is_ours, place.files()))
    elif place.exists():
        ours = place.is_dir() and all(map(_is_ours, place.iterdir()))
    else:
        return
    if not ours:
        raise DataError.of(
            "config",
            f"`{place}` is there already, and holds what no run of ours has written",
            help="give another `--out`, or move it away",
        )


def _is_ours(file: DataPlace) -> bool:
    if file.suffix != ".parquet" or not file.is_file():
        return False
    try:
        with opened_parquet(file) as opened:
            metadata = opened.schema_arrow.metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise_outage(error, str(file))
        return False
    return MARK in metadata or SPARK_MARK in metadata.get(_SPARK_SCHEMA, b"")
