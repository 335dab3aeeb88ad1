"""What a run reads, a flow reads: what is wrong with files is told alike, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.files.arrived import arrive
from hydro_core.files.cut import cut
from hydro_core.files.inputs import InputFile
from hydro_core.files.reading import read_all, tick_inputs
from hydro_core.spark.inputs.arrivals.landings import Landing
from hydro_core.spark.inputs.landing import InputBatches
from hydro_core.ticks.every import Every
from hydro_core.types.ddl import parse_ddl

DAY = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = dict(enumerate(pairwise(DAY + timedelta(days=t) for t in range(4))))
DAYS = [date(2026, 1, 1), date(2026, 1, 3)]


def by_run(path: Path, schema: str) -> list[list[Any]]:
    arrived = arrive([InputFile("x", str(path), "day")], {"x": parse_ddl(schema)})
    inputs = [read_all(one) for one in arrived]
    ticks = tick_inputs(inputs, cut(inputs, Every.parse("1d"), None))
    return [list(tick.batches["x"]) for tick in ticks]


def by_flow(path: Path, schema: str) -> list[list[Any]]:
    landings = {"x": Landing(path, "day")}
    inputs = InputBatches(landings, {"x": parse_ddl(schema)}, lambda: pytest.fail("no Spark"))
    rows = inputs.read(0, 2, TIMES)["x"].rows
    return [[row["item"] for row in rows.to_pylist() if row["t"] == t] for t in range(3)]


def parquet(**columns: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pq.write_table(pa.table({"day": DAYS, **columns}), folder / "rows.parquet")
        return folder / "rows.parquet"

    return write


def delta(**columns: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        write_deltalake(folder / "rows", pa.table({"day": DAYS, **columns}))
        return folder / "rows"

    return write


def text(**files: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for name, content in files.items():
            (folder / name.replace("_", ".")).write_text(content, encoding="utf-8")
        return folder

    return write


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)


def damaged(folder: Path) -> Path:
    """A file whose footer is whole, and whose pages are not."""
    file = parquet(v=[1, 2])(folder)
    content = bytearray(file.read_bytes())
    content[4:60] = b"\xff" * 56
    file.write_bytes(content)
    return file


INNER = pa.array([{"a": 1}, {"a": None}], pa.struct([("a", pa.int64())]))
LISTED = pa.array([[{"a": 1}], [{"a": None}]], pa.list_(pa.struct([("a", pa.int64())])))
MAP = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
LARGE = pa.array([1, 2**64 - 1], pa.uint64())
LOST = {"a_jsonl": lines({"day": DAYS[0], "v": 1}), "b_jsonl": lines({"v": 2})}
CASES = {
    "null within, Parquet": (parquet(v=INNER), "v struct<a: long not null>", r"null.*\(at a\)"),
    "null within, Delta": (delta(v=INNER), "v struct<a: long not null>", r"null.*\(at a\)"),
    "null among, Parquet": (parquet(v=LISTED), "v array<struct<a: long not null>>", "not null"),
    "a map, Parquet": (parquet(v=MAP), "v string", "column `v` is of type map.* no item has"),
    "a map, Delta": (delta(v=MAP), "v string", "column `v` is of type map.* no item has"),
    "too large": (parquet(v=LARGE), "v long", "rows.parquet` cannot be read: .*not in range"),
    "text for long": (parquet(v=["1", "x"]), "v long", "in tick 0, `rows.parquet`: '1' is not of"),
    "pages": (damaged, "v long", "rows.parquet` cannot be read"),
    "two of a name": (text(a_csv="day,v,v\n2026-01-01,1,2\n"), "v long", "several columns `v`"),
    "numbers and times": (
        text(a_jsonl=lines({"day": DAYS[0], "v": 1}, {"day": 1, "v": 2})),
        "v long",
        "`day` holds numbers of ticks, but other rows times",
    ),
    "a file without the tick column": (text(**LOST), "v long", "a row has no tick: it is null"),
    "a null tick": (parquet(v=[1, 2], day=[DAYS[0], None]), "v long", "a row has no tick"),
    "a null tick, Delta": (delta(v=[1, 2], day=[DAYS[0], None]), "v long", "a row has no tick"),
    "a double": (parquet(v=[1, 2], day=[0.0, 1.0]), "v long", "`day` is double, which tells no"),
    "a boolean": (delta(v=[1, 2], day=[True, False]), "v long", "`day` is boolean, which tells"),
    "a negative tick": (parquet(v=[1, 2], day=[0, -1]), "v long", "row 1 is of tick -1"),
    "a negative tick, Delta": (delta(v=[1, 2], day=[0, -1]), "v long", "row 1 is of tick -1"),
    "a negative tick, CSV": (text(a_csv="day,v\n0,1\n-1,2\n"), "v long", "row 1 is of tick -1"),
    "half a pair": (text(a_jsonl=lines({"day": 0, "v": "\ud800"})), "v string", "surrogate"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_alike(tmp_path: Path, case: str) -> None:
    write, schema, message = CASES[case]
    path = write(tmp_path)
    told = []
    for read in (by_run, by_flow):
        with pytest.raises(DataError, match=message) as caught:
            read(path, schema)
        assert caught.value.code == "input"
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("write", [parquet, delta])
def test_fields_within_that_are_there_are_read(
    tmp_path: Path, write: Callable[..., Callable[[Path], Path]]
) -> None:
    path = write(v=pa.array([{"a": 1}, None], INNER.type))(tmp_path)
    schema = "v struct<a: long not null>"
    rows = [[{"v": {"a": 1}}], [], [{"v": None}]]
    assert by_run(path, schema) == by_flow(path, schema) == rows
