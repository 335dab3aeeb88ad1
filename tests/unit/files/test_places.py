"""What is known of the files of a landing before any row is read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.files.inputs import InputFile
from hydro_core.files.places import FileSet, find
from hydro_core.types.ddl import parse_ddl

MOMENTS = pa.table({"at": pa.array([datetime(2024, 1, 1)], pa.timestamp("ns"))})
NUMBERS = pa.table({"n": pa.array([1], pa.int64())})


def _found(path: Path) -> FileSet:
    return find(InputFile("rows", str(path)), {})


@pytest.mark.parametrize("int96", [(True, True), (True, False), (False, True), (False, False)])
def test_spark_reads_moments_that_every_file_has_in_its_own_old_form(
    tmp_path: Path, int96: tuple[bool, bool]
) -> None:
    by_spark = MOMENTS.replace_schema_metadata({"org.apache.spark.version": "4.1.0"})
    for number, old in enumerate(int96):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(by_spark, file, use_deprecated_int96_timestamps=old)
    found = _found(tmp_path)
    assert found.dataset is not None
    assert found.is_plain == all(int96)


def test_nanoseconds_of_other_writers_are_looked_for(tmp_path: Path) -> None:
    pq.write_table(MOMENTS, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    found = _found(tmp_path)
    assert found.dataset is None
    assert not found.is_plain


def test_a_column_is_named_by_a_folder_or_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(NUMBERS, tmp_path / "day=1" / "a.parquet")
    pq.write_table(NUMBERS, tmp_path / "day=1" / "b.parquet")
    found = _found(tmp_path / "*" / "*.parquet")
    assert list(found.names) == ["n", "day"]
    assert found.types == {"n": parse_ddl("long"), "day": parse_ddl("int")}
    assert not found.is_plain
    pq.write_table(NUMBERS, tmp_path / "c.parquet")
    assert list(_found(tmp_path / "c.parquet").names) == ["n"]


def test_each_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        pq.write_table(NUMBERS, tmp_path / f"{number}.parquet")
    opened: list[Path] = []

    class Noted(pq.ParquetFile):
        def __init__(self, file: Path, **options: Any) -> None:
            opened.append(file)
            super().__init__(file, **options)

    monkeypatch.setattr(pq, "ParquetFile", Noted)
    found = _found(tmp_path)
    assert sorted(opened) == sorted(found.files)
    assert found.dataset is not None
    assert found.dataset.count_rows() == 5
