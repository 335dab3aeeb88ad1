"""Files of which something is wrong: how each is written, and its schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

DAYS = [date(2026, 1, 1), date(2026, 1, 3)]


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


def tables(*parts: dict[str, Any]) -> Callable[[Path], Path]:
    """A folder of Parquet files, in each of which are these columns."""

    def write(folder: Path) -> Path:
        for name, columns in zip("abc", parts, strict=False):
            pq.write_table(pa.table({"day": DAYS, **columns}), folder / f"{name}.parquet")
        return folder

    return write


LOST = {"a_jsonl": lines({"day": DAYS[0], "v": 1}), "b_jsonl": lines({"v": 2})}
CASES = {
    "null within, Parquet": (parquet(v=INNER), "v struct<a: long not null>"),
    "null within, Delta": (delta(v=INNER), "v struct<a: long not null>"),
    "null among, Parquet": (parquet(v=LISTED), "v array<struct<a: long not null>>"),
    "a map, Parquet": (parquet(v=MAP), "v string"),
    "a map, Delta": (delta(v=MAP), "v string"),
    "too large": (parquet(v=LARGE), "v long"),
    "text for long": (parquet(v=["1", "x"]), "v long"),
    "pages": (damaged, "v long"),
    "two of a name": (text(a_csv="day,v,v\n2026-01-01,1,2\n"), "v long"),
    "numbers and times": (
        text(a_jsonl=lines({"day": DAYS[0], "v": 1}, {"day": 1, "v": 2})),
        "v long",
    ),
    "a file without the tick column": (text(**LOST), "v long"),
    "a file without a column, Parquet": (tables({"v": [1, 2]}, {"w": [3, 4]}), "v long"),
    "a file without a column, CSV": (
        text(a_csv="day,v\n0,1\n", b_csv="day\n0\n"),
        "v long",
    ),
    "a file without a column, JSON": (
        text(a_jsonl=lines({"day": 0, "v": 1}, {"day": 0}), b_jsonl=lines({"day": 0}, {"day": 0})),
        "v long",
    ),
    "a file without any column, JSON": (
        text(a_jsonl=lines({}, {}), c_jsonl=""),
        "v long",
    ),
    "a folder without a column": (
        tables({"w": [1, 2]}, {"w": [3, 4]}),
        "v long",
    ),
    "a null tick": (parquet(v=[1, 2], day=[DAYS[0], None]), "v long"),
    "a null tick, Delta": (delta(v=[1, 2], day=[DAYS[0], None]), "v long"),
    "a double": (parquet(v=[1, 2], day=[0.0, 1.0]), "v long"),
    "a boolean": (delta(v=[1, 2], day=[True, False]), "v long"),
    "a negative tick": (parquet(v=[1, 2], day=[0, -1]), "v long"),
    "a negative tick, Delta": (delta(v=[1, 2], day=[0, -1]), "v long"),
    "a negative tick, CSV": (text(a_csv="day,v\n0,1\n-1,2\n"), "v long"),
    "half a pair": (text(a_jsonl=lines({"day": 0, "v": "\ud800"})), "v string"),
}
