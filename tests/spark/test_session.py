"""The embedded session: quiet, with Delta, in UTC, one per process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import functions as F

from hydro_core.spark.session.session import shared_session

pytestmark = pytest.mark.spark


def test_it_is_one_per_process() -> None:
    assert shared_session() is shared_session()


def test_a_jvm_that_was_killed_is_replaced() -> None:
    # In a process of its own: the session of this one is everybody's.
    script = """
import os, signal
from hydro_core.settings import SparkSettings
from hydro_core.spark.session.launch import jvm_process
from hydro_core.spark.session.session import shared_session

settings = SparkSettings(master="local[1]")
first = shared_session(settings)
assert first.range(3).count() == 3
jvm = jvm_process()
os.kill(jvm, signal.SIGKILL)
second = shared_session(settings)
assert second.range(3).count() == 3
assert jvm_process() not in (None, jvm)
second.stop()
assert shared_session(settings).range(3).count() == 3
"""
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=300, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_delta_tables_are_written_and_read(tmp_path: Path) -> None:
    spark = shared_session()
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    rows = spark.read.format("delta").load(str(tmp_path / "table")).orderBy("id").collect()
    assert [row.id for row in rows] == [0, 1, 2]


def test_functions_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_session()
    F.col("a")
    sent: list[str] = []
    send = JavaClient.send_command

    def counted(self: JavaClient, command: str, *more: object) -> object:
        sent.append(command)
        return send(self, command, *more)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    column = F.col("a")
    # Objects that nobody holds any more are given back by messages that begin with an m.
    assert [command[0] for command in sent if command[0] != "m"] == ["c"]
    assert column is not None


@pytest.mark.parametrize("length", [0, 1, 10, 11])
def test_lists_reach_the_jvm_as_they_are(length: int) -> None:
    jvm: Any = shared_session().sparkContext._jvm
    for given in (list(range(length)), ["x"] * length, [None, *range(length)]):
        assert jvm.PythonUtils.toSeq(given).mkString(",") == ",".join(
            "null" if item is None else str(item) for item in given
        )


def test_time_is_utc_and_arithmetic_is_checked() -> None:
    spark = shared_session()
    (row,) = spark.sql(
        "select current_timezone() zone, date_format(timestamp_seconds(0), 'HH') h"
    ).collect()
    assert (row.zone, row.h) == ("UTC", "00")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("select 1 / 0").collect()


def test_a_shuffle_makes_no_more_partitions_than_there_are_cores() -> None:
    spark = shared_session()
    assert int(spark.conf.get("spark.sql.shuffle.partitions")) <= (os.cpu_count() or 1)


def test_failures_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    spark = shared_session()
    with pytest.raises(Exception, match="nowhere"):
        spark.sql("select nowhere").collect()
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql("select cast('x' as int)").collect()
    assert capfd.readouterr() == ("", "")


def test_the_environment_is_left_as_it_was() -> None:
    before = dict(os.environ)
    shared_session()
    assert os.environ.get("SPARK_CONF_DIR") == before.get("SPARK_CONF_DIR")
    assert "SPARK_LAUNCHER_OPTS" not in os.environ
