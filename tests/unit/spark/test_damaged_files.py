"""Whoever reads a damaged file says which one it is, and what helps; nobody shows Arrow's error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import read_all, scans_of
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches, SlicedBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.wanted import ReadLimits, WantedRows
from hydro_core.types.ddl import parse_ddl

ITEM = parse_ddl("day date, name string, n long")
ROWS = 3000
TABLE = pa.table(
    {
        "day": [date(2026, 1, 1 + n % 3) for n in range(ROWS)],
        "name": [f"name {n} {n * n}" for n in range(ROWS)],
        "n": list(range(ROWS)),
    }
)
SOME = WantedRows("x", ({("n",): {5: 5}},), 0)
Read = Callable[[Path], object]


def _stored(**options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, **options)
    return sink.getvalue().to_pybytes()


def _torn(part: float, put: bytes, **options: Any) -> bytes:
    content = bytearray(_stored(**options))
    place = int(len(content) * part)
    content[place : place + len(put)] = put
    return bytes(content)


FOOTERS = {
    "empty": b"",
    "half": _stored()[:5000],
    "without its end": _stored()[:-20],
    "no more than its ends": b"PAR1PAR1",
    "too long a footer": _stored()[:-8] + b"\xff\xff\xff\x7fPAR1",
    "too short a footer": _stored()[:-8] + b"\x05\0\0\0PAR1",
}
PAGES = {
    "snappy": _torn(0.3, b"\xff\xfe" * 16),
    "zstd": _torn(0.2, b"\0" * 3000, compression="zstd"),
    "gzip": _torn(0.3, b"\xff\xfe" * 16, compression="gzip"),
    "plain": _torn(0.3, b"\xff\xfe" * 16, compression="none"),
    "zeros": _torn(0.2, b"\0" * 3000),
    "the head of a page": _torn(0.0006, b"\xff" * 20),
    "places of pages": _torn(0.985, b"\xff" * 40),
}


def _batches(path: Path) -> SlicedBatches:
    landings = {"x": LandingTable(path, "day")}
    calendar = Calendar(datetime(2026, 1, 1))
    return SlicedBatches(landings, {"x": ITEM}, _no_session, 10**6, calendar, path / "none")


def _no_session() -> Any:
    raise AssertionError("nothing of this needs Spark")


def _run(path: Path, declared: Mapping[str, Any]) -> object:
    return [read_all(one) for one in scans_of([InputFile("x", str(path), "day")], declared)]


WHOLE: dict[str, Read] = {
    "a run": lambda path: _run(path, {"x": ITEM}),
    "a run without a schema": lambda path: _run(path, {}),
    "a flow": lambda path: InputBatches.read(_batches(path), 0, 2),
    "a flow that had looked": lambda path: (b := _batches(path)).read(0, 2, b.landings.look(0)),
    "a slice": lambda path: _batches(path).wanted(SOME, 2, ReadLimits(1000)),
    "slices": lambda path: _batches(path).gather([SOME, SOME], 2, ReadLimits(1000)),
    "counts": lambda path: _batches(path).counts([(SOME, [("name",)])], 2),
}
BY_FOOTER: dict[str, Read] = {
    "all rows": lambda path: _batches(path).rows_there("x"),
    "the latest row": lambda path: _batches(path).landings.latest("x"),
}


def _parquet(folder: Path, content: bytes) -> tuple[Path, Path, str]:
    file = folder / "rows.parquet"
    file.write_bytes(content)
    return file, file, "leave it out"


def _delta(folder: Path, content: bytes) -> tuple[Path, Path, str]:
    write_deltalake(folder / "rows", TABLE)
    (file,) = (folder / "rows").glob("*.parquet")
    file.write_bytes(content)
    return folder / "rows", file, "restore it from a copy"


# Who reads no pages does not see that they are damaged.
@pytest.mark.parametrize(
    ("damage", "read"),
    [
        *((damage, read) for read in WHOLE for damage in (*FOOTERS, *PAGES)),
        *((damage, read) for read in BY_FOOTER for damage in FOOTERS),
    ],
)
@pytest.mark.parametrize("write", [_parquet, _delta])
def test_a_damaged_file_is_told_by_its_place(
    tmp_path: Path,
    write: Callable[[Path, bytes], tuple[Path, Path, str]],
    damage: str,
    read: str,
) -> None:
    path, file, cure = write(tmp_path, (FOOTERS | PAGES)[damage])
    with pytest.raises(DataError) as caught:
        (WHOLE | BY_FOOTER)[read](path)
    (told,) = caught.value.diagnostics
    assert told.code == "input"
    assert told.message.startswith(f"`{file}` cannot be read: ")
    assert told.message.isprintable()
    assert str(file) not in told.message.removeprefix(f"`{file}`")
    assert "cut off or damaged" in told.help
    assert cure in told.help


@pytest.mark.parametrize("entry", ["", "{", "null", '{"add": 1}\n', "\udcff", "x" * 100])
def test_a_delta_table_with_a_damaged_log_is_told_by_its_path(tmp_path: Path, entry: str) -> None:
    write_deltalake(tmp_path, TABLE)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_bytes(entry.encode(errors="surrogateescape"))
    for read in WHOLE.values():
        with pytest.raises(DataError) as caught:
            read(tmp_path)
        (told,) = caught.value.diagnostics
        assert (told.code, told.message.partition(":")[0]) == (
            "input",
            f"the Delta table `{tmp_path}` cannot be read",
        )
        assert told.message.isprintable()
