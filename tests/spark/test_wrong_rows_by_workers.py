"""Spark's workers find the wrong rows of files that this process finds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.files.inputs import InputFile
from hydro_core.files.places import find
from hydro_core.files.scan import Scan, read
from hydro_core.spark.files.frames import read_in_workers
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import TickRange
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import WRONG, declared_columns, widened
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

ITEM = widened(parse_ddl("user string not null, amount long"))
DAYS = Calendar(datetime(2026, 1, 1, tzinfo=UTC), "1d")


def csv(folder: Path) -> None:
    (folder / "a.csv").write_bytes(
        b"user,amount,day\nann,1,2026-01-01\nbob,x,2026-01-02\ncat\n\xff,1,2026-01-02\n"
        b",5,2026-01-03\neve,6,soon\n"
    )
    (folder / "b.csv").write_text("user,amount,day\nann,1,soon\n")


def json_lines(folder: Path) -> None:
    (folder / "a.jsonl").write_text(
        'none\n{"user": "ann", "amount": 1, "day": "2026-01-02"}\n'
        '{"user": "bob", "amount": [1], "day": "2026-01-03"}\n'
    )
    (folder / "b.jsonl").write_text("neither\n")


@pytest.mark.parametrize(
    ("ends", "kind"),
    alternately_slow([(0, 9), (1, 2)], [csv, json_lines]),
)
def test_workers_find_what_this_process_finds(
    tmp_path: Path, spark: SparkSession, kind: object, ends: tuple[int, int]
) -> None:
    assert callable(kind)
    kind(tmp_path)
    file = InputFile("in", str(tmp_path), "day", frozenset(WRONG))
    fileset = find(file, declared_columns(ITEM) or {})
    scan = Scan(file, fileset, ITEM, ticks=TickRange(*ends, DAYS))
    here = read(scan, fileset.files)
    frame, counts = read_in_workers(spark, scan, fileset.files)
    found = frame.toArrow()
    expected = zip(here.numbers.tolist(), from_arrow(here.items, ITEM), strict=True)
    rows = zip(found["t"].to_pylist(), from_arrow(found["item"], ITEM), strict=True)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert sum(counts.values()) == len(here.numbers) > 1
