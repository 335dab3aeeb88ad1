"""What the machine does is told in words, by whichever library it comes."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from hydro_core.cli.main import main
from hydro_core.errors import DataError, Diagnostic, InfrastructureError
from hydro_core.machine.faults import fault_of, faults_as_errors
from hydro_core.spark.store.ledger.ledger import Ledger

ROWS = pa.table({"v": list(range(200_000))})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("only root can mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "this user has not the right to it"),
        (errno.EIO, "the disk does not answer"),
        (errno.EMFILE, "too many files are open"),
    ],
)
def test_errors_of_the_system(number: int, says: str) -> None:
    told = fault_of(OSError(number, os.strerror(number), "/data/file"), "the copy")
    assert told is not None
    first, _, room = str(told).splitlines()[0].partition("; ")
    assert first.endswith(f"{says}: /data/file (the copy)")
    assert ("MiB free" in room) == (number == errno.ENOSPC)
    assert "help: " in str(told)


def test_what_is_no_fault_stays_what_it_is() -> None:
    assert fault_of(ValueError("No space left on device")) is None
    assert fault_of(FileNotFoundError(errno.ENOENT, "gone", "/x")) is None
    gone = fault_of(FileNotFoundError(errno.ENOENT, "gone", "/x"), vanished=True)
    assert gone is not None
    assert "a file went away while it was read: /x" in str(gone)
    error = DataError(Diagnostic("state", "the disk is full, says a user", help="mend it"))
    error.__cause__ = OSError(errno.ENOSPC, "full")
    assert fault_of(error) is None
    with pytest.raises(ZeroDivisionError), faults_as_errors("here"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("said", "beside", "tells"),
    [
        ("Generic S3 error: <Code>SlowDown</Code>", "", "an object store: the store says SlowDown"),
        ("Generic S3 error: <Code>NoSuchBucket</Code>", "", "an object store: there is no bucket"),
        (
            "Error performing PUT https://s3.example/b/t/0.json?X-Amz-Signature=5 - status 403",
            "",
            "https://s3.example/b/t/0.json: these credentials have not the right to write it",
        ),
        (
            "Generic S3 error: error sending request",
            "Table not found: s3://b/pipelines/small",
            "s3://b/pipelines/small: the store cannot be reached",
        ),
    ],
)
def test_a_store_is_told_by_what_the_error_says(said: str, beside: str, tells: str) -> None:
    for raised in (DeltaError(said), OSError(said)):
        raised.__cause__ = ValueError(beside)
        told = fault_of(raised)
        assert told is not None
        assert str(told).splitlines()[0].endswith(f": {tells}")
    assert fault_of(DeltaError("the schema has no column `v`")) is None


def test_a_full_disk_by_all_libraries(small_disk: Path) -> None:
    def of_arrow() -> None:
        pa.parquet.write_table(ROWS, small_disk / "rows.parquet", compression="none")

    def of_delta() -> None:
        for _ in range(9):
            write_deltalake(small_disk / "table", ROWS, mode="append")

    def of_python() -> None:
        (small_disk / "bytes").write_bytes(b"x" * 2**21)

    def of_sqlite() -> None:
        with sqlite3.connect(small_disk / "db") as db:
            db.execute("create table t (x blob)")
            db.execute("insert into t values (zeroblob(3000000))")

    for write in (of_arrow, of_delta, of_python, of_sqlite):
        with pytest.raises(InfrastructureError) as caught, faults_as_errors("the test"):
            write()
        assert "the disk is full" in str(caught.value)
        assert "MiB free" in str(caught.value)
        for file in small_disk.rglob("*"):
            if file.is_file():
                file.unlink()


def test_a_read_only_file_system(small_disk: Path) -> None:
    ledger = Ledger(small_disk / "pipeline")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises((DeltaError, OSError)) as caught:
        ledger.create()
    told = fault_of(caught.value, "the pipeline")
    assert told is not None
    assert told.code == "config"
    assert "the file system is read-only" in str(told)


def test_run_says_it_in_two_lines(small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.parquet.write_table(ROWS, small_disk.parent / "rows.parquet")
    program = small_disk.parent / "p.hydro"
    program.write_text('source("v long", name="rows") -> sink("out")\n')
    words = ["run", str(program), "--input", f"rows={small_disk.parent / 'rows.parquet'}"]
    assert main([*words, "--out", str(small_disk / "out")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "error[runtime]: the disk is full" in said[-2]
    assert said[-1].startswith("help: make room on it")
    assert list((small_disk / "out").iterdir()) == []
