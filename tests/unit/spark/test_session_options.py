"""What the settings become as options of Spark, and the errors before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.settings import MEBIBYTE, SparkSettings, size_in_bytes
from hydro_core.spark.session.jars import DELTA
from hydro_core.spark.session.session import SessionError, session_options, start_session
from tests.support.refused import Refused


@pytest.mark.parametrize("memory", ["2g", "3g", "8g"])
def test_heap_and_the_rest_stay_within_the_granted_memory(memory: str) -> None:
    options = session_options(SparkSettings(memory=memory))
    heap = size_in_bytes(options["spark.driver.memory"])
    assert size_in_bytes(memory) - heap == 640 * MEBIBYTE


@pytest.mark.parametrize("master", ["spark://host:7077", "local-cluster[2,1,1024]", "yarn"])
def test_with_another_master_the_driver_keeps_to_its_memory_and_level(master: str) -> None:
    options = session_options(SparkSettings(master=master, memory="3g", log_level="ERROR"))
    alone = session_options(SparkSettings(memory="3g", log_level="ERROR"))
    for name in ("spark.driver.memory", "spark.driver.extraJavaOptions"):
        assert options[name] == alone[name]
    assert "hydrotick.log.level=ERROR" in options["spark.driver.extraJavaOptions"]
    # Executors on other machines have to find the driver, and know the same time.
    assert ("spark.driver.host" in options) == master.startswith("local")
    assert options["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"


def test_what_is_given_wins() -> None:
    settings = SparkSettings(extra=(("spark.sql.ansi.enabled", "false"),))
    assert session_options(settings)["spark.sql.ansi.enabled"] == "false"


def test_a_spark_connect_server_is_refused_in_words(refused: Refused) -> None:
    with refused(SessionError, "config"):
        start_session(SparkSettings(master="sc://host"))


def test_jars_of_another_version_do_not_count(tmp_path: Path) -> None:
    jar(tmp_path, "io.delta_delta-spark_4.2_2.13-4.3.0.jar")
    assert DELTA.jars(tmp_path) == ()


def jar(share: Path, name: str) -> None:
    (share / "jars").mkdir(parents=True)
    (share / "jars" / name).touch()


def test_further_jars_stand_beside_those_of_delta() -> None:
    settings = SparkSettings(
        master="spark://host:7077",
        extra=(("spark.driver.host", "10.0.0.7"), ("spark.jars", "/opt/gcs.jar")),
    )
    options = session_options(settings, (Path("/delta/one.jar"), Path("/delta/two.jar")))
    assert options["spark.jars"] == "/delta/one.jar,/delta/two.jar,/opt/gcs.jar"
    assert options["spark.driver.host"] == "10.0.0.7"
