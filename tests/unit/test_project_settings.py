"""`hydrotick.toml`: what it says holds where the environment is silent, and is judged by line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.errors import HydroError
from hydrotick.project.settings import ProjectSettings, environment_of, project_settings
from hydrotick.project.settings_file import settings_of_tables
from tests.support.refused import Refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    return tmp_path


def settings(root: Path, text: str, **environ: str) -> ProjectSettings:
    (root / "hydrotick.toml").write_text(text, encoding="utf-8")
    return project_settings({"HYDROTICK_PROJECT": str(root), **environ})


def test_what_it_says_holds(root: Path) -> None:
    found = settings(root, '[spark]\nmaster = "local[3]"\nmemory = "3g"\n[ticks]\nrange = 7\n')
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[3]", "3g", 7)
    assert (found.root, found.home) == (root, root / "data")


def test_from_how_many_rows_on_spark_shares_out_work(root: Path, refused: Refused) -> None:
    text = "[spark]\nfew_rows = 5000\nsmall_writes = 7\nlookups = '0m'\n"
    spark = settings(root, text).core.spark
    assert (spark.few_rows, spark.small_write_rows, spark.lookup_bytes) == (5000, 7, 0)
    spark = settings(root, "").core.spark
    assert (spark.few_rows, spark.small_write_rows) == (100_000, 100_000)
    with refused(HydroError, "config", at="2:1"):
        settings(root, "[spark]\nfew_rows = 0\n")


def test_where_data_is_and_how_dagster_runs(root: Path, refused: Refused) -> None:
    text = (
        '[paths]\nhome = "there"\nlanding = "/mnt/landing"\n'
        '[dagster]\npool = "spark"\nsensors = "running"\nsensor_seconds = 60\n'
        'code_url = "https://code.example/shop/main"\ncompact = "weekly"\n'
    )
    found = settings(root, text)
    assert (found.home, found.pipelines) == (root / "there", root / "there" / "pipelines")
    assert found.landing == Path("/mnt/landing")
    assert (found.pool, found.sensors_run, found.sensor_seconds) == ("spark", True, 60)
    assert found.code_url == "https://code.example/shop/main"
    assert found.compact == "weekly"
    with refused(HydroError, "config", at="2:1"):
        settings(root, '[dagster]\ncompact = "often"\n')
    assert settings(root, text, HYDROTICK_HOME="/mnt/home").home == Path("/mnt/home")
    assert settings(root, "[paths]\nlanding = 'in'\n").landing == root / "in"


def test_what_is_given_wins_over_the_file(root: Path, refused: Refused) -> None:
    (root / "hydrotick.toml").write_text('[spark]\nmaster = "local[3]"\nmemory = "3g"\n')
    given = settings_of_tables({"spark": {"master": "local[2]"}, "ticks": {"range": 5}})
    found = project_settings({"HYDROTICK_SPARK_MEMORY": "1g"}, root, given)
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[2]", "1g", 5)
    with refused(HydroError, "config"):
        settings_of_tables({"spark": {"memory": "much"}})


def test_a_folder_without_flows_is_no_project(tmp_path: Path, refused: Refused) -> None:
    with refused(HydroError, "config"):
        project_settings({}, tmp_path)


def test_what_it_does_not_say_is_as_ever(root: Path) -> None:
    silent = ProjectSettings(home=root / "data", root=root)
    assert settings(root, "") == silent
    (root / "hydrotick.toml").unlink()
    assert project_settings({"HYDROTICK_PROJECT": str(root)}) == silent


def test_the_environment_wins(root: Path) -> None:
    text = '[spark]\nmaster = "local[3]"\nmemory = "3g"\n[ticks]\nrange = 7\n'
    found = settings(
        root,
        text,
        HYDROTICK_SPARK_MASTER="local[1]",
        HYDROTICK_RANGE_TICKS="9",
        HYDROTICK_HOME=str(root / "elsewhere"),
    )
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[1]", "3g", 9)
    assert found.home == root / "elsewhere"


def test_where_dagsters_instance_is(root: Path, refused: Refused) -> None:
    said = '[paths]\ndagster = "instance"\n'
    assert settings(root, "").dagster_home == root / "data" / "dagster"
    assert settings(root, said).dagster_home == root / "instance"
    assert settings(root, said, DAGSTER_HOME="/opt/dagster").dagster_home == Path("/opt/dagster")
    at_another = settings(root, said, HYDROTICK_HOME=str(root / "elsewhere"))
    assert at_another.dagster_home == root / "instance"
    assert project_settings(environment_of(at_another)) == replace(
        at_another, dagster_at=root / "instance"
    )
    with refused(HydroError, "config"):
        settings(root, "", DAGSTER_HOME="instance")
    with refused(HydroError, "config"):
        settings(root, "", DAGSTER_HOME=str(root / "hydrotick.toml"))


def test_another_process_finds_the_same(root: Path) -> None:
    found = settings(root, "[ticks]\nrange = 7\n", HYDROTICK_HOME=str(root / "elsewhere"))
    assert project_settings(environment_of(found)) == found


@pytest.mark.parametrize(
    ("text", "line", "says", "cure"),
    [
        ("[sparc]\n", 1, "there is no setting `[sparc]`", "did you mean `spark`?"),
        (
            '\nmaster = "local"\n',
            2,
            "there is no setting `master` outside of a table",
            "write it below `[spark]`",
        ),
        ("spark = 3\n", 1, "`spark` is a table", "write `[spark]`"),
        (
            '[spark]\n\nmastr = "x"\n',
            3,
            "`[spark]` has no setting `mastr`",
            "did you mean `master`",
        ),
        ('[spark]\nmaster = "lokal"\n', 2, "`master` is 'lokal', which is no master", "write `loc"),
        ('[spark]\nmemory = "2"\n', 2, "`memory` is '2', which is no size", "write a whole number"),
        ("[spark]\nmemory = 2\n", 2, "`memory` is 2, which is no text", "quote it"),
        ('[paths]\nhome = "s3://b/x"\n', 2, "`home` is 's3://b/x', which is a URL", "mount it"),
        ('[paths]\nlanding = ""\n', 2, "`landing` is '', which is empty", "write the path"),
        ('[dagster]\npool = "a b"\n', 2, "`pool` is 'a b', which is no pool", "take letters"),
        ('[dagster]\nsensors = "on"\n', 2, "`sensors` is 'on', which is no status", "write `run"),
        ("[dagster]\nsensor_seconds = 0\n", 2, "which is no number of seconds", "write 1 or more"),
        ('[dagster]\ncode_url = "main"\n', 2, "`code_url` is 'main', which is no address", "write"),
        ("[ticks]\nrange = 0\n", 2, "`range` is 0, which is no number of ticks", "write 1 or more"),
        ("[ticks]\nrange = true\n", 2, "`range` is True, which is no number", "write 1 or more"),
        ("ticks.range = 0\n", 1, "`range` is 0, which is no number of ticks", "write 1 or more"),
        ("[spark\n", 1, "this is no TOML", ""),
        ("[ticks]\nrange = 1\nrange = 2\n", 3, "this is no TOML", ""),
        (
            '[paths]\nhome = "a\u2028b\u2029c\u0085d"\n[ticks]\nrange = 0\n',
            4,
            "`range` is 0, which is no number of ticks",
            "write 1 or more",
        ),
    ],
)
def test_what_is_wrong_is_told(root: Path, text: str, line: int, says: str, cure: str) -> None:
    with pytest.raises(HydroError) as caught:
        settings(root, text)
    (found,) = caught.value.diagnostics
    assert found.code == "config"
    assert found.span is not None
    assert (found.span.file, found.span.line) == (str(root / "hydrotick.toml"), line)
    assert says in found.message
    assert (found.help or "").startswith(cure)
