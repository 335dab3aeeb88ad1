"""Settings of Spark's own, of a project and of a flow: passed on, or refused with what is ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.errors import HydroError
from hydro_core.machine.environment import conf_of, wrong_conf
from hydro_core.project.asset_yaml import flow_of_yaml
from hydro_core.project.check import check_alone
from hydro_core.project.flow_asset import FlowSpark
from hydro_core.settings import SparkSettings
from hydro_core.spark.session.session import session_options
from hydrotick.flows.flows import Flows
from hydrotick.project.settings import ProjectSettings, project_settings
from hydrotick.project.settings_file import settings_of_tables
from tests.support.refused import Refused

FREE = {
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.jars",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.codegen.cache.maxEntries",
    "spark.sql.ui.retainedExecutions",
    "spark.ui.enabled",
    "spark.ui.retainedJobs",
    "spark.ui.retainedStages",
    "spark.ui.retainedTasks",
    "spark.ui.showConsoleProgress",
}
"""What hydrotick sets and somebody else may set otherwise: no result rests on it."""

ASSET = """
program: totals.hydro
ticks: {start: 2026-01-01}
inputs: {payments: {path: payments}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    return tmp_path


def settings(root: Path, text: str) -> ProjectSettings:
    (root / "hydrotick.toml").write_text(text, encoding="utf-8")
    return project_settings({"HYDROTICK_PROJECT": str(root)})


def asset(root: Path, spark: str) -> Path:
    folder = root / "assets" / "totals"
    folder.mkdir(exist_ok=True)
    (folder / "asset.yaml").write_text(f"{ASSET}spark: {spark}\n")
    return folder / "asset.yaml"


def test_what_hydrotick_sets_is_refused_by_name() -> None:
    jars = (Path("delta.jar"),)
    whole = SparkSettings(master="spark://host:7077", shuffle_partitions=3)
    for name in {**session_options(whole, jars), **session_options(SparkSettings(), jars)}:
        wrong = wrong_conf({name: "1"})
        assert (wrong is None) == (name in FREE), name
        assert wrong is None or f"`{name}`" in wrong[0]


@pytest.mark.parametrize(
    ("conf", "says", "cure"),
    [
        ("{spark.master: local}", "`spark.master` is a setting of hydrotick", "write `master`"),
        ("{spark.driver.memory: 4g}", "is a setting of hydrotick", "write `memory`"),
        ("{spark.sql.shuffle.partitions: 3}", "of hydrotick", "write `shuffle_partitions`"),
        ("{spark.sql.ansi.enabled: false}", "what programs mean rests on", "leave"),
        ("{executor.memory: 4g}", "`executor.memory` is none of its settings", "write names"),
        ("{spark.executor.cores: [1]}", "is neither a text nor a number", "write names"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(root: Path, conf: str, says: str, cure: str) -> None:
    with pytest.raises(HydroError) as caught:
        flow_of_yaml(asset(root, f"{{conf: {conf}}}"))
    (found,) = caught.value.diagnostics
    assert says in found.message
    assert cure in str(found.help)
    assert found.span is not None
    assert found.span.line == 5
    toml = conf.replace(": ", '" = ').replace("{", '{"', 1).replace("local", '"x"')
    toml = toml.replace("4g", '"4g"')
    with pytest.raises(HydroError) as caught:
        settings(root, f"[spark]\nconf = {toml}\n")
    assert says in str(caught.value)


def test_a_flows_settings_win_over_those_of_the_project(root: Path) -> None:
    text = '[spark]\nshuffle_partitions = 7\n[spark.conf]\n"spark.executor.cores" = 2\n'
    text += '"spark.ui.enabled" = true\n'
    found = settings(root, text)
    flow = flow_of_yaml(asset(root, "{conf: {spark.executor.cores: 4}}"))
    spark = Flows(found).settings_for(flow).spark
    assert dict(spark.extra) == {"spark.executor.cores": "4", "spark.ui.enabled": "true"}
    assert spark.shuffle_partitions == 7
    assert dict(found.core.spark.extra)["spark.executor.cores"] == "2"
    plain = replace(flow, spark=FlowSpark())
    assert Flows(found).settings_for(plain) == found.core


def test_a_flow_in_python_is_judged_alike(root: Path, refused: Refused) -> None:
    flow = replace(flow_of_yaml(asset(root, "{}")), spark=FlowSpark({"spark.master": "local"}))
    with refused(HydroError, "config", at="5:1"):
        check_alone(flow)


def test_a_component_says_the_same(refused: Refused) -> None:
    found = settings_of_tables({"spark": {"conf": {"spark.executor.cores": 2}}})
    assert conf_of(found.spark_conf or {}) == {"spark.executor.cores": "2"}
    with refused(HydroError, "config"):
        settings_of_tables({"spark": {"conf": {"spark.master": "local"}}})


def test_a_flow_may_run_elsewhere(root: Path, refused: Refused) -> None:
    found = settings(root, '[spark]\nmaster = "local[2]"\nmemory = "1g"\n')
    flow = flow_of_yaml(asset(root, '{master: "spark://cluster:7077"}'))
    spark = Flows(found).settings_for(flow).spark
    assert (spark.master, spark.memory) == ("spark://cluster:7077", "1g")
    # Another session than that of the flows that stay: these are told apart by what is extra.
    assert spark.extra != found.core.spark.extra
    assert session_options(spark)["spark.master"] == "spark://cluster:7077"
    with refused(HydroError, "config", at="5:9") as caught:
        flow_of_yaml(asset(root, "{master: cluster}"))
    (told,) = caught.value.diagnostics
    assert told.span is not None
    wrong = replace(flow, spark=FlowSpark(master="cluster"))
    with refused(HydroError, "config", at="5:1"):
        check_alone(wrong)
