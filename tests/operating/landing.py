"""Landings as outside systems write them: files of several kinds, or a Delta table.

What lands together is a file, or the rows of a table that have its number.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from tests.operating.model import Row, Rows
from tests.operating.programs import COLUMNS, START

KINDS = ("parquet", "csv", "jsonl", "delta")
BY = {"tick": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC")}
"""The columns that may say of which tick a row is: its number, its day, a moment of that day."""


class Place:
    """The landing of one input, and what lies there by its own account.

    Args:
        path: a folder.
        input_name: whose rows land there.
        kind: one of `KINDS`.
        by: the column that says of which tick a row is, one of `BY`.
    """

    def __init__(self, path: Path, input_name: str, kind: str, by: str = "tick") -> None:
        self.path, self.kind, self.by = path, kind, by
        self.names = (by, *COLUMNS[input_name])
        self.files: list[list[Row]] = []
        self.there: set[int] = set()
        self._names: dict[int, str] = {}
        """The names of files that have other ones than at first."""
        self._aside = path.with_name(f"{path.name}-aside")
        path.mkdir(parents=True)
        self._aside.mkdir()

    def rows(self) -> Rows:
        """All that lies there."""
        return Counter(row for number in self.there for row in self.files[number])

    def land(self, rows: Sequence[Row]) -> None:
        """A file comes."""
        number = len(self.files)
        self.files.append(list(rows))
        self.there.add(number)
        if self.kind == "delta":
            write_deltalake(self.path, self._table(number), mode="append")
        else:
            self._write(number)

    def remove(self, number: int) -> None:
        """A file goes, and is kept elsewhere."""
        self.there.discard(number)
        if self.kind == "delta":
            DeltaTable(self.path).delete(f"file = {number}")
        else:
            shutil.move(self._file(number), self._aside)

    def restore(self, number: int) -> None:
        """It is put back as it was."""
        self.there.add(number)
        if self.kind == "delta":
            write_deltalake(self.path, self._table(number), mode="append")
        else:
            shutil.move(self._aside / self._file(number).name, self.path)

    def put_anew(self, number: int, rows: Sequence[Row]) -> None:
        """One that went is there again, by the name that it had, with other rows."""
        self.files[number] = list(rows)
        if self.kind == "delta":
            self.restore(number)
            return
        self.there.add(number)
        (self._aside / self._file(number).name).unlink()
        self._write(number)

    def rename(self, number: int) -> None:
        """A file gets another name; rows of a table are written anew."""
        if self.kind == "delta":
            self.remove(number)
            self.restore(number)
            return
        before = self._file(number)
        name = before.stem.removesuffix("-named")
        self._names[number] = name if name != before.stem else f"{name}-named"
        before.rename(self._file(number))

    def exchange(self, one: int, other: int) -> None:
        """Two files take each other's names; a table is compacted."""
        if self.kind == "delta":
            self.touch(one)
            return
        beside, files = self._aside / "beside", (self._file(one), self._file(other))
        for before, after in ((files[0], beside), (files[1], files[0]), (beside, files[1])):
            before.rename(after)
        self._names |= {one: files[1].stem, other: files[0].stem}

    def rewrite(self, number: int, rows: Sequence[Row]) -> None:
        """A file has other rows from now on."""
        self.files[number] = list(rows)
        if self.kind == "delta":
            table, only = self._table(number), f"file = {number}"
            write_deltalake(self.path, table, mode="overwrite", predicate=only)
        else:
            self._write(number)

    def has(self, value: object) -> bool:
        """Whether rows that have a value in their first column lie there."""
        if self.kind != "delta":
            return any(row[1] == value for row in self.rows())
        if not DeltaTable.is_deltatable(str(self.path)):
            return False
        return value in DeltaTable(self.path).to_pyarrow_table()[self.names[1]].to_pylist()

    def forget(self, value: object) -> None:
        """Its owner takes these rows out of what lies there."""
        if self.kind == "delta" and self.has(value):
            DeltaTable(self.path).delete(f"{self.names[1]} = '{value}'")
        for number in self.there:
            rows = [row for row in self.files[number] if row[1] != value]
            if len(rows) < len(self.files[number]) and self.kind != "delta":
                self.rewrite(number, rows)
            self.files[number] = rows

    def touch(self, number: int) -> None:
        """A file is written anew with the same rows; a table is compacted."""
        if self.kind == "delta":
            DeltaTable(self.path).optimize.compact()
        else:
            now = self._file(number).stat().st_mtime_ns
            os.utime(self._file(number), ns=(now + 10**9, now + 10**9))

    def _dated(self, number: int) -> list[tuple[object, ...]]:
        """The rows of a file, with what says of which tick they are."""
        return [(_moment(row[0], self.by), *row[1:]) for row in self.files[number]]

    def _file(self, number: int) -> Path:
        return self.path / f"{self._names.get(number, f'{number:03}')}.{self.kind}"

    def _table(self, number: int) -> pa.Table:
        rows = [dict(zip(self.names, row, strict=True)) for row in self._dated(number)]
        types = [BY[self.by], pa.string(), pa.int64()]
        schema = pa.schema([pa.field(n, of) for n, of in zip(self.names, types, strict=True)])
        table = pa.Table.from_pylist(rows, schema=schema)
        if self.kind == "delta":
            numbers = pa.array([number] * len(rows), pa.int64())
            table = table.append_column(pa.field("file", pa.int64()), numbers)
        return table

    def _write(self, number: int) -> None:
        beside = self._aside / "beside"
        rows = self._dated(number)
        match self.kind:
            case "parquet":
                pq.write_table(self._table(number), beside)
            case "csv":
                with beside.open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerows([self.names, *rows])
            case _:
                named = (dict(zip(self.names, row, strict=True)) for row in rows)
                lines = (
                    json.dumps(row, default=lambda moment: moment.isoformat()) for row in named
                )
                beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        beside.replace(self._file(number))


def _moment(tick: int, by: str) -> object:
    """What a column says of a row of a tick."""
    match by:
        case "day":
            return (START + timedelta(days=tick)).date()
        case "at":
            # Some lie at the very beginning of their tick.
            return START + timedelta(days=tick, hours=tick % 3 * 11)
        case _:
            return tick
