"""`status` leaves Dagster out exactly where its records say nothing more than the ledger."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from hydro_core.errors import DataError, Diagnostic
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.init import put_project
from hydrotick.cli.status import say_nothing_more, status_of
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.records import last_key
from hydrotick.instance.opening import open_instance
from hydrotick.instance.run_tags import FLOW_TAG
from hydrotick.project.project import project_at
from tests.orchestration.recorded import RUN, Case

pytestmark = pytest.mark.dagster

HEAVY = {"dagster", "egglog", "great_expectations", "pandas", "pyspark", "sqlalchemy"}
"""Each of them takes as long to load as all that `status` does."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an instance without records: to make its tables takes seconds."""
    made = tmp_path_factory.mktemp("home") / "dagster"
    with open_instance(made) as instance:
        assert not instance.get_runs()
    return made


@pytest.fixture
def case(tmp_path: Path, empty: Path) -> Iterator[Case]:
    shutil.copytree(empty, tmp_path / "dagster")
    with open_instance(tmp_path / "dagster") as instance:
        made = Case(tmp_path, instance)
        made.at(datetime(2026, 1, 5, 1, tzinfo=UTC))
        yield made


def _is_left_out(case: Case) -> bool:
    """Whether Dagster is left out; where it is, status says the same as with it."""
    found = say_nothing_more(case.flow, case.runner)
    if found:
        asked = status_of(case.flow, case.runner, case.instance)
        assert status_of(case.flow, case.runner, None) == asked
    return found


def test_a_flow_that_goes_on_needs_no_dagster(case: Case) -> None:
    assert _is_left_out(case)  # never deployed
    case.commit(0, 2)
    assert _is_left_out(case)  # ticks are open
    case.commit(3, 3)
    assert _is_left_out(case)
    case.run(RUN.SUCCESS, 3)
    assert _is_left_out(case)


def test_without_any_records_only_a_flow_that_never_ran_needs_none(tmp_path: Path) -> None:
    with dg.DagsterInstance.ephemeral() as nothing:
        case = Case(tmp_path, nothing)
        case.at(datetime(2026, 1, 5, 1, tzinfo=UTC))
        assert _is_left_out(case)
        case.commit(0, 2, record=False)
        assert not _is_left_out(case)


@pytest.mark.parametrize("status", [RUN.NOT_STARTED, RUN.STARTED, RUN.CANCELING])
def test_a_run_at_work_is_asked_for(case: Case, status: RUN) -> None:
    case.commit(0, 2)
    case.run(status, 3)
    assert not _is_left_out(case)


@pytest.mark.parametrize("status", [RUN.FAILURE, RUN.CANCELED])
def test_a_failure_is_asked_for_until_a_tick_is_committed_after_it(
    case: Case, status: RUN, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.commit(0, 2)
    case.run(status, 3)
    assert not _is_left_out(case)
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr(case.runner, "committed_at", lambda *_: later)
    assert _is_left_out(case)


def test_the_failure_of_another_flow_is_its_own_affair(case: Case) -> None:
    case.commit(0, 2)
    case.instance.add_run(
        dg.DagsterRun(job_name="other", status=RUN.FAILURE, tags={FLOW_TAG: "other"})
    )
    assert _is_left_out(case)
    # One that was launched from assets names no flow by a tag.
    case.instance.add_run(dg.DagsterRun(job_name="__ASSET_JOB", status=RUN.FAILURE))
    assert not _is_left_out(case)


def test_ticks_that_are_not_recorded_are_asked_for(case: Case) -> None:
    case.commit(0, 1)
    case.commit(2, 3, record=False)
    assert not _is_left_out(case)
    case.record(3)
    assert not _is_left_out(case)
    case.record(2)
    assert _is_left_out(case)


def test_ticks_recorded_as_of_an_earlier_commit_are_asked_for(case: Case) -> None:
    case.commit(0, 1)
    key, tick = last_key(case.flow, case.runner), case.axis.window(1).key
    for commit, left_out in ((7, False), (0, True)):
        made = dg.AssetMaterialization(key, partition=tick, metadata={"commit": commit})
        case.instance.report_runless_asset_event(made)
        assert _is_left_out(case) is left_out


def test_records_of_a_flow_without_a_ledger_are_asked_for(case: Case) -> None:
    key = asset_key(case.flow, "totals")
    case.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition="2026-01-01"))
    assert not _is_left_out(case)


def test_wiped_records_are_asked_for(case: Case) -> None:
    case.commit(0, 1)
    case.instance.wipe_assets([last_key(case.flow, case.runner)])
    assert not _is_left_out(case)


def test_records_that_are_elsewhere_are_asked_for(case: Case) -> None:
    case.commit(0, 1)
    assert _is_left_out(case)
    path = case.runner.project.dagster_home / "dagster.yaml"
    found = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**found, "storage": {"sqlite": {"base_dir": "elsewhere"}}}))
    assert not _is_left_out(case)


def test_records_of_another_form_are_asked_for(case: Case) -> None:
    case.commit(0, 1)
    path = case.runner.project.dagster_home / "event_log.db"
    with sqlite3.connect(path) as events:
        events.execute("ALTER TABLE asset_keys RENAME COLUMN wipe_timestamp TO wiped_at")
    assert not _is_left_out(case)


def test_a_deployment_that_is_lost_is_asked_for(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.commit(0, 1)

    def lost(_: FlowAsset) -> TickPlan:
        raise DataError(Diagnostic("state", "the deployment is not there", help="restore it"))

    monkeypatch.setattr(case.runner, "plan", lost)
    assert not _is_left_out(case)


def test_status_of_a_deployed_project_loads_nothing_heavy(tmp_path: Path, empty: Path) -> None:
    put_project(tmp_path / "shop", "totals")
    home = tmp_path / "shop" / "data"
    shutil.copytree(empty, home / "dagster")
    (flow,) = project_at(tmp_path / "shop").flows
    with open_instance(home / "dagster") as instance:
        Case(home, instance, flow).commit(0, 3)
    script = (
        "import sys; from hydro_core.cli.main import main;"
        f"code = main(['status']); print(code, sorted({HEAVY!r} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "shop",
        check=True,
        capture_output=True,
        text=True,
    )
    assert "the ticks 2026-01-05 to 2026-01-07 may run; 3 open in all" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "0 []"
