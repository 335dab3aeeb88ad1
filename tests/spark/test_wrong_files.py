"""What is wrong with files is told by a run on Spark as by one on the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import cut, read_all, scans_of
from hydro_core.spark.files.frames import rows_of, scans_on
from hydro_core.ticks.every import TickLength
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from tests.support.refused import Refused
from tests.support.wrong_files import CASES

pytestmark = pytest.mark.spark


def by_reference(_: SparkSession, file: InputFile, declared: dict[str, ItemType]) -> None:
    cut([read_all(one) for one in scans_of([file], declared)], TickLength.parse("1d"), None)


def on_spark(spark: SparkSession, file: InputFile, declared: dict[str, ItemType]) -> None:
    inputs = [rows_of(spark, one) for one in scans_on(spark, [file], declared)]
    try:
        cut(inputs, TickLength.parse("1d"), None)
    finally:
        for rows in inputs:
            rows.release()


# Of pages that are damaged Spark tells only when it reads them: `test_files_on_spark`.
@pytest.mark.parametrize("case", [case for case in CASES if case != "pages"])
def test_what_is_wrong_is_told_alike(
    spark: SparkSession, tmp_path: Path, case: str, refused: Refused
) -> None:
    write, schema = CASES[case]
    file, declared = InputFile("x", str(write(tmp_path)), "day"), {"x": parse_ddl(schema)}
    told = []
    for read in (by_reference, on_spark):
        with refused(DataError, "input") as caught:
            read(spark, file, declared)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_rows_without_a_common_type_are_told_by_the_workers(
    spark: SparkSession, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"v": 1}\n{"v": "x"}\n')
    for read in (by_reference, on_spark):
        with refused(DataError, "input"):
            read(spark, InputFile("x", str(tmp_path / "rows.jsonl")), {})
