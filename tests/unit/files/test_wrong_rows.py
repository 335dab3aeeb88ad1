"""Rows that do not fit are read beside those that do, which are what they are without them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import PLACE, REASON, ROW, WRONG, widened
from tests.support.refused import Refused

ITEM = parse_ddl("user string not null, amount long, due date")
DAYS = Calendar(datetime(2026, 1, 1, tzinfo=UTC), "1d")
Read = list[tuple[int, dict[str, Any]]]


def no_spark() -> Any:
    raise AssertionError("few rows need no Spark")


def read(
    path: Path, column: str | None = "day", item: Any = None, ticks: tuple[int, int] = (0, 9)
) -> Read:
    """The rows of some ticks, the wrong ones among them."""
    wide = widened(item or ITEM)
    landing = LandingTable(path, column, optional=frozenset(WRONG))
    batch = InputBatches({"in": landing}, {"in": wide}, no_spark, calendar=DAYS).read(*ticks)["in"]
    rows = batch.rows
    assert isinstance(rows, pa.Table)
    found = from_arrow(rows["item"], wide)
    assert batch.read.rows == len(found)
    return list(zip(rows["t"].to_pylist(), map(dict, found), strict=True))


def right(found: Read) -> Read:
    return [
        (t, {k: v for k, v in row.items() if k not in WRONG}) for t, row in found if not row[REASON]
    ]


def wrong(found: Read) -> list[tuple[int, str, str, str]]:
    return [(t, row[PLACE], row[REASON], row[ROW]) for t, row in found if row[REASON]]


def test_csv(tmp_path: Path) -> None:
    text = (
        b"user,day,amount,due,more\n"
        b"ann,2026-01-01,1,2026-02-01,x\n"
        b"bob,2026-01-02,x,,\n"
        b"ann,1\n"
        b"\n"
        b'"two\nlines",2026-01-03,2,2026-13-01,\n'
        b",2026-01-03,3,,\n"
        b'"",2026-01-03,4,,\n'
        b"\xff,2026-01-03,5,,\n"
        b"cat,soon,6,,\n"
        b"dan,2026-01-04,99999999999999999999,,\n"
        b"eve,2026-01-05, 7,,\n"
    )
    (tmp_path / "a.csv").write_bytes(text)
    with gzip.open(tmp_path / "b.csv.gz", "wb") as packed:
        packed.write(text)
    found = read(tmp_path / "a.csv")
    assert [(t, row["user"], row["amount"]) for t, row in right(found)] == [
        *((0, "ann", 1), (2, "", 4), (4, "eve", 7)),
    ]
    misfit = "column `amount`: '99999999999999999999' is not of type long"
    assert wrong(found) == [
        (1, "a.csv, line 3", "column `amount`: 'x' is not of type long", "bob,2026-01-02,x,,"),
        (1, "a.csv, line 4", "it has 2 fields, and the file's first line 5", "ann,1"),
        (
            *(2, "a.csv, line 6", "column `due`: '2026-13-01' is not a date such as 2024-01-31"),
            '"two\nlines",2026-01-03,2,2026-13-01,',
        ),
        (
            *(2, "a.csv, line 8", "column `user`: null, where the schema says `not null`"),
            ",2026-01-03,3,,",
        ),
        (2, "a.csv, line 10", "it is not UTF-8", "\\xff,2026-01-03,5,,"),
        (
            *(2, "a.csv, line 11"),
            "column `day`: 'soon' is not a timestamp such as 2024-01-31T12:00:00Z",
            "cat,soon,6,,",
        ),
        (3, "a.csv, line 12", misfit, "dan,2026-01-04,99999999999999999999,,"),
    ]
    packed_rows = read(tmp_path / "b.csv.gz")
    assert [row[:1] + row[2:] for row in wrong(packed_rows)] == [
        row[:1] + row[2:] for row in wrong(found)
    ]
    assert right(packed_rows) == right(found)
    # What fits of a wrong row is known: by it rows of a person are found.
    assert next(row["user"] for _, row in found if row[REASON]) == "bob"


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        '{"user": "ann", "day": "2026-01-02", "amount": 1, "due": null}',
        '{"user": "bob", "day": "2026-01-02", "amount": "1"}',
        "{user: bob}",
        "[1]",
        '{"user": "\\ud800", "day": "2026-01-03"}',
        '{"user": "cat"}',
        '{"user": "dan", "day": 5}',
        "",
        '{"user": "eve", "day": "2026-01-04", "amount": 2}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("nothing\nof this is JSON\n")
    found = read(tmp_path)
    assert [(t, row["user"], row["amount"]) for t, row in right(found)] == [
        (1, "ann", 1),
        (3, "eve", 2),
    ]
    told = [(t, place, row) for t, place, _, row in wrong(found)]
    assert told == [
        (1, "a.jsonl, line 2", lines[1]),
        *((1, "a.jsonl, line 3", lines[2]), (1, "a.jsonl, line 4", lines[3])),
        *((2, "a.jsonl, line 5", lines[4]), (2, "a.jsonl, line 6", lines[5])),
        (2, "a.jsonl, line 7", lines[6]),
        *((0, "b.jsonl, line 1", "nothing"), (0, "b.jsonl, line 2", "of this is JSON")),
    ]
    assert read(tmp_path, ticks=(1, 1)) == [one for one in found if one[0] == 1]


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_parquet_and_delta(tmp_path: Path, kind: str) -> None:
    item = parse_ddl("user string not null, amount integer")
    rows = pa.table(
        {
            "user": ["ann", None, "bob", "cat"],
            "amount": pa.array([1, 2, 2**40, 3], pa.int64()),
            "day": ["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02"],
        }
    )
    if kind == "delta":
        write_deltalake(tmp_path / "t", rows)
    else:
        pq.write_table(rows, tmp_path / "t")
        (tmp_path / "t").rename(tmp_path / "t.parquet")
    found = read(tmp_path / ("t" if kind == "delta" else "t.parquet"), item=item)
    assert [(t, row["user"]) for t, row in right(found)] == [(0, "ann"), (1, "cat")]
    assert [
        (t, place.partition(", ")[2], json.loads(row)["amount"])
        for t, place, _, row in wrong(found)
    ] == [
        (0, "row 1", 2),
        (1, "row 2", 2**40),
    ]


def test_unsigned_integers_beyond_64_bits(tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array([1, 2**63, 3], pa.uint64())})
    pq.write_table(rows, tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", None, parse_ddl("k long"), (0, 0))
    assert [row["k"] for _, row in right(found)] == [1, 3]
    assert [place for _, place, _, _ in wrong(found)] == ["a.parquet, row 1"]


def test_single_values_and_tuples(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item\n1\nx\n3\n")
    found = read(tmp_path / "a.csv", None, parse_ddl("long"), (0, 0))
    assert [row["item"] for _, row in right(found)] == [1, 3]
    (tmp_path / "b.csv").write_text("_1,_2\n1,a\nx,b\n")
    found = read(tmp_path / "b.csv", None, parse_ddl("(long, string)"), (0, 0))
    assert [row["_2"] for _, row in right(found)] == ["a"]
    assert len(wrong(found)) == 1


def test_a_file_that_is_none_is_refused_as_ever(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with refused(DataError, "input"):
        read(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("user,day\nann,2026-01-01\n")
    with refused(DataError, "input"):
        read(tmp_path / "b.csv")


FIELDS: Mapping[str, Sequence[str]] = {
    "k": ["1", "-2", "", " 3", "007", "x", "1.5", '"4"', '"5,6"', "9" * 20],
    "d": ["1", "1.5", "", "NaN", "inf", "1e3", "x", '"2"'],
    "b": ["true", "false", "", "True", "1", "0", "yes"],
    "s": ["a", "", '""', '"q""r"', '"a\nb"', " x ", "é"],
    "m": ["2026-01-01 10:00:00", "2026-01-01T10:00:00Z", "", "now"],
    "p": ["1.25", "", "1.234", "x", "100"],
}
MANY = parse_ddl("k long, d double, b boolean, s string, m timestamp, p decimal(4,2)")


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_fit_are_read_as_they_are_without_the_wrong_ones(
    tmp_path: Path, seed: int
) -> None:
    """Each row by itself is right or wrong, by strict reading of a file that has it alone."""
    random, header = Random(seed), ",".join(FIELDS)
    lines = [",".join(random.choice(of) for of in FIELDS.values()) for _ in range(12)]
    fits = []
    for number, line in enumerate(lines):
        alone = tmp_path / f"{number}.csv"
        alone.write_text(f"{header}\n{line}\n")
        landing = {"in": LandingTable(alone)}
        try:
            batch = InputBatches(landing, {"in": MANY}, no_spark).read(0, 0)["in"]
        except DataError:
            continue
        assert isinstance(batch.rows, pa.Table)
        fits += [repr(dict(item)) for item in from_arrow(batch.rows["item"], MANY)]
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join([header, *lines]) + "\n")
    found = read(whole, None, MANY, (0, 0))
    assert [repr(row) for _, row in right(found)] == fits
    assert len(wrong(found)) == len(lines) - len(fits)


def test_where_a_row_lies_is_no_part_of_which_row_it_is(tmp_path: Path) -> None:
    """A table whose files are joined has the same rows, the wrong ones too."""
    from hydro_core.spark.frames.row_hashes import row_hashes
    from hydro_core.types.arrow import to_arrow

    row = dict.fromkeys(widened(ITEM).names) | {REASON: "why", PLACE: "a.csv, line 1", ROW: "x"}

    def hashed(**changes: str) -> Any:
        return row_hashes(pa.table({"item": to_arrow([row | changes], widened(ITEM))}))[0]

    assert hashed() == hashed(**{PLACE: "b.csv, line 7"})
    assert hashed() != hashed(**{ROW: "y"})
