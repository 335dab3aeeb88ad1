"""What the environment may say, and what is said where nothing can be made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.machine.environment import settings_of
from hydrotick.project.settings import project_settings


def test_spark_is_as_the_environment_says() -> None:
    found = settings_of({"HYDROTICK_SPARK_MASTER": "local[3]", "HYDROTICK_SPARK_MEMORY": "3g"})
    assert (found.spark.master, found.spark.memory_bytes) == ("local[3]", 3 * 2**30)
    assert settings_of({}) == settings_of(
        {"HYDROTICK_SPARK_MASTER": "", "HYDROTICK_SPARK_MEMORY": ""}
    )


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[2]", "local[2, 4]", "local-cluster[2,1,1024]", "yarn"),
        *("spark://host:7077", "k8s://https://host:6443", "sc://host"),
    ],
)
def test_masters_of_spark(master: str) -> None:
    assert settings_of({"HYDROTICK_SPARK_MASTER": master}).spark.master == master


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("HYDROTICK_SPARK_MEMORY", "2 gigabytes", "no size"),
        ("HYDROTICK_SPARK_MEMORY", "2", "no size"),
        ("HYDROTICK_SPARK_MEMORY", "-1g", "no size"),
        ("HYDROTICK_SPARK_MASTER", "lokal[2]", "no master of Spark"),
        ("HYDROTICK_SPARK_MASTER", "local[two]", "no master of Spark"),
        ("HYDROTICK_RANGE_TICKS", "many", "no number of ticks"),
        ("HYDROTICK_RANGE_TICKS", "0", "no number of ticks"),
        ("HYDROTICK_WHY_ROWS", "0", "no number of rows"),
        ("HYDROTICK_SAMPLE_KEYS", "-1", "no number of keys"),
        ("HYDROTICK_LOG_FORMAT", "xml", "no form of a log"),
        ("OPENLINEAGE_URL", "kafka://broker", "no file and no server"),
        ("OPENLINEAGE_NAMESPACE", " ", "empty"),
        ("HYDROTICK_HOME", "s3a://bucket/home", "a URL"),
        ("HYDROTICK_HOME", "file:///data", "a URL"),
        ("HYDROTICK_HOME", "hdfs:/data", "a URL"),
        ("HYDROTICK_HOME", __file__, "a file"),
    ],
)
def test_a_wrong_variable_is_told_in_two_lines(name: str, value: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        project_settings({name: value})
    assert caught.value.code == "config"
    message, cure = str(caught.value).splitlines()
    assert f"{name} is `{value}`, which is {says}" in message
    assert "or leave it out" in cure


def test_a_home_is_made_where_it_is_said(tmp_path: Path) -> None:
    assert project_settings({"HYDROTICK_HOME": str(tmp_path / "new")}).home == tmp_path / "new"
    assert project_settings({}).home == Path("data").absolute()


def test_run_takes_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYDROTICK_SPARK_MEMORY", "lots")
    (tmp_path / "p.hydro").write_text('source("v long", name="a") -> sink("out")\n')
    (tmp_path / "t.json").write_text("[{}]")
    words = ["run", str(tmp_path / "p.hydro"), "--ticks", str(tmp_path / "t.json")]
    assert main([*words, "--engine", "spark"]) == 1
    assert "HYDROTICK_SPARK_MEMORY is `lots`" in capsys.readouterr().err
