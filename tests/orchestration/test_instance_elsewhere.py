"""An instance that is not the project's own: named by a variable or a setting, stored otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from hydro_core.cli.main import run_command
from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.init import put_project
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.records import runs_of
from hydrotick.instance import prepare_instance
from hydrotick.instance.opening import open_instance
from hydrotick.instance.run_tags import FLOW_TAG
from hydrotick.project.project import project_at
from tests.orchestration.test_first_commands import OPEN, let_go
from tests.orchestration.test_instance import of_the_page
from tests.support.refused import Refused

pytestmark = pytest.mark.dagster


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_project(tmp_path / "shop", "totals")
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("HYDROTICK_SPARK_MASTER", "local[2]")
    return tmp_path / "shop"


def _in_postgres(home: Path) -> None:
    """An instance as somebody has it: its settings name the storage, and no more."""
    home.mkdir(parents=True)
    told = {**of_the_page(), "telemetry": {"enabled": False}}
    (home / "dagster.yaml").write_text(yaml.safe_dump(told))


def _status(capsys: pytest.CaptureFixture[str]) -> tuple[int, Mapping[str, Any]]:
    capsys.readouterr()
    code = run_command(["status", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)["flows"]
    return code, found


def _recorded(instance: dg.DagsterInstance) -> set[str]:
    return instance.get_materialized_partitions(dg.AssetKey(["totals", "totals"]))


@pytest.mark.spark
def test_commands_read_and_record_in_postgres(
    shop: Path,
    tmp_path: Path,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "dagster"
    _in_postgres(home)
    settings = (home / "dagster.yaml").read_bytes()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", address)
    assert run_command(["backfill", "totals", "--to", "2026-01-03"]) == 0
    days = {f"2026-01-0{day}" for day in (1, 2, 3)}
    with open_instance(home) as instance:
        assert "Postgres" in type(instance.event_log_storage).__name__
        assert _recorded(instance) == days
        runs = len(instance.get_runs())
    code, found = _status(capsys)
    assert (code, found["committed"], found["stopped"], found["failed"]) == (0, 3, False, None)
    assert "open in all" in found["next"]

    assert run_command(["correct", "totals", "--from", "2026-01-02", "--yes"]) == 0
    program = shop / "assets" / "totals" / "totals.hydro"
    program.write_text(program.read_text().replace("largest=max", "most=max"))
    asset = shop / "assets" / "totals" / "asset.yaml"
    asset.write_text(asset.read_text().replace("largest", "most"))
    assert run_command(["deploy", "totals", "--yes"]) == 0
    with open_instance(home) as instance:
        assert len(instance.get_runs()) == runs + 2
        # The ledger is gone: Dagster's records know that there was one.
        (shop / "data" / "pipelines" / "totals").rename(tmp_path / "away")
    code, found = _status(capsys)
    assert (code, found["stopped"]) == (1, True)
    assert "Dagster has 3 ticks of `totals`" in found["next"]

    assert not (shop / "data" / "dagster").exists()
    assert (home / "dagster.yaml").read_bytes() == settings
    assert not (home / "dagster.yaml.shipped").exists()


def test_two_first_commands_at_once_in_postgres(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two machines: each has a directory of its own, and the database is the same."""
    import psycopg2

    plain = address.replace("+psycopg2", "")
    made = psycopg2.connect(plain)
    made.autocommit = True
    made.cursor().execute("CREATE DATABASE fresh")
    made.close()
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", address.rpartition("/")[0] + "/fresh")
    at_once = []
    for name in ("one", "two"):
        _in_postgres(tmp_path / name)
        words = [sys.executable, "-c", OPEN, str(tmp_path / name)]
        pipe = subprocess.PIPE
        at_once.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
    told = let_go(at_once)
    assert [process.returncode for process in at_once] == [0, 0], told


def test_an_address_that_sqlalchemy_takes_for_another_library(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    _in_postgres(tmp_path / "home")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", address.replace("+psycopg2", ""))
    with (
        refused(HydroError, "config"),
        open_instance(tmp_path / "home"),
    ):
        pass


def test_an_address_that_nobody_has_said(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    _in_postgres(tmp_path / "home")
    monkeypatch.delenv("DAGSTER_POSTGRES_URL", raising=False)
    with (
        refused(HydroError, "config"),
        open_instance(tmp_path / "home"),
    ):
        pass


def test_a_database_that_does_not_answer(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    _in_postgres(tmp_path / "home")
    dead = address.rpartition(":")[0] + ":1/postgres"
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", dead)
    with (
        refused(HydroError, "state"),
        open_instance(tmp_path / "home"),
    ):
        pass


def test_settings_that_are_wrong_are_told(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "dagster.yaml").write_text("storage: {oracle: {}}\n")
    with (
        refused(HydroError, "config"),
        open_instance(tmp_path),
    ):
        pass


def test_records_in_another_place_than_shipped_are_asked(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The flow has no ledger and the directory no database: only the instance knows of its run."""
    (shop / "hydrotick.toml").write_text('[paths]\ndagster = "../dagster"\n')
    home = tmp_path / "dagster"
    home.mkdir()
    stored = {"sqlite": {"base_dir": str(tmp_path / "records")}}
    (home / "dagster.yaml").write_text(yaml.safe_dump({"storage": stored}))
    key = dg.AssetKey(["totals", "totals"])
    with open_instance(home) as instance:
        made = dg.AssetMaterialization(key, partition="2026-01-01")
        instance.report_runless_asset_event(made)
    code, found = _status(capsys)
    assert (code, found["stopped"]) == (1, True)
    assert "Dagster has 1 ticks of `totals`" in found["next"]
    assert not (shop / "data" / "dagster").exists()
    assert not (home / "dagster.yaml.shipped").exists()


def test_an_instance_without_settings_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        assert instance.get_runs() == []
    before = {file.name for file in tmp_path.iterdir()}
    prepare_instance(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == before


def test_a_fresh_directory_that_is_named_has_what_is_shipped(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "fresh"))
    found = project_at(shop).settings
    with open_instance(found.dagster_home) as instance:
        assert instance.root_directory == str(tmp_path / "fresh")
    assert "WorkerRunLauncher" in (tmp_path / "fresh" / "dagster.yaml").read_text()


def test_runs_of_others_do_not_hide_those_of_a_flow(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (flow,) = project_at(shop).flows
    assert isinstance(flow, FlowAsset)
    monkeypatch.setattr("hydrotick.code_location.records._MOST_RUNS", 3)

    @dg.job
    def theirs() -> None: ...

    with dg.DagsterInstance.ephemeral() as instance:
        failed = dg.DagsterRunStatus.FAILURE
        mine = instance.create_run_for_job(theirs, tags={FLOW_TAG: "totals"}, status=failed)
        for _ in range(7):
            instance.create_run_for_job(theirs, status=failed)
        assert [r.dagster_run.run_id for r in runs_of(flow, instance, ["FAILURE"])] == [mine.run_id]
    assert asset_key(flow, "totals").path[0] == "totals"
