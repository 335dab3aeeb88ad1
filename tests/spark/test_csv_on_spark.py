"""CSV at the edges of the format is the same rows and the same rejects, whoever reads it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.places import find
from hydro_core.files.scan import Scan, read
from hydro_core.spark.files.frames import read_in_workers
from hydro_core.ticks.tick_range import TickRange
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import REASON, WRONG, declared_columns, widened
from tests.support.csv_cases import CASES
from tests.unit.files.test_csv import by_command, key, right_files

pytestmark = pytest.mark.spark

ITEM = parse_ddl("k long, v string")


def test_workers_read_what_this_process_reads(tmp_path: Path, spark: SparkSession) -> None:
    """All cases at once, a file each: a session's job takes longer than all of them."""
    item = widened(ITEM)
    for number, case in enumerate(CASES.values()):
        (tmp_path / f"{number:02}{case.name}").write_bytes(case.content)
    file = InputFile("in", str(tmp_path), optional=frozenset(WRONG))
    scan = Scan(file, find(file, declared_columns(item) or {}), item, ticks=TickRange(0, 0))
    here = from_arrow(read(scan, scan.fileset.files).items, item)
    frame, _ = read_in_workers(spark, scan, scan.fileset.files)
    rows = from_arrow(frame.toArrow()["item"], item)
    assert sorted(map(repr, rows)) == sorted(map(repr, here))
    rejects = sum(len(case.rejects) for case in CASES.values())
    assert sum(row[REASON] is not None for row in rows) == rejects
    assert len(rows) == rejects + sum(len(case.rows) for case in CASES.values())


@pytest.mark.parametrize("name", ["unclosed, opened in a later line", "all kinds at once"])
def test_both_refuse_alike(tmp_path: Path, spark: SparkSession, name: str) -> None:
    case = CASES[name]
    (tmp_path / case.name).write_bytes(case.content)
    file = InputFile("in", str(tmp_path))
    scan = Scan(file, find(file, declared_columns(ITEM) or {}), ITEM, ticks=TickRange(0, 0))
    told = []
    for reading in (read, partial(read_in_workers, spark)):
        with pytest.raises(DataError) as caught:
            reading(scan, scan.fileset.files)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_a_run_on_spark_reads_what_one_without_it_reads(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """All cases at once; then a quote that is never closed, with its file and line."""
    expected = right_files(tmp_path / "in")
    assert sorted(by_command(tmp_path / "in", "spark"), key=key) == sorted(expected, key=key)
    (tmp_path / "in" / "z.csv").write_bytes(CASES["unclosed"].content)
    words = ["--input", f"a={tmp_path / 'in'}", "--engine", "spark"]
    assert main(["run", str(tmp_path / "p.hydro"), *words]) == 1
    assert f"{tmp_path / 'in' / 'z.csv'}`, line 3 has a quote, opened" in capsys.readouterr().err
