"""The instance's settings follow the installed version; logs of old runs are forgotten."""

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.instance.config import PoolGranularity
from dagster._core.instance.ref import InstanceRef

from hydro_core.cli.main import run_command
from hydro_core.errors import DataError
from hydrotick import instance
from hydrotick.code_location.factory import flow_definitions
from hydrotick.instance import SHIPPED_BESIDE, has_own_settings, prepare_instance
from hydrotick.instance.opening import forget_old_logs, open_instance
from hydrotick.project.project import project_at
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.support.refused import Refused

pytestmark = pytest.mark.dagster


def test_settings_follow_the_version_until_somebody_changes_them(tmp_path: Path) -> None:
    settings, beside = tmp_path / "dagster.yaml", tmp_path / SHIPPED_BESIDE
    shipped = prepare_instance(tmp_path).joinpath("dagster.yaml").read_bytes()
    # A version before this one, that was copied as it was shipped.
    settings.write_text("telemetry: {enabled: true}\n")
    copied = hashlib.sha256(settings.read_bytes()).hexdigest()
    (tmp_path / "dagster.yaml.copied").write_text(copied)
    prepare_instance(tmp_path)
    assert settings.read_bytes() == shipped
    # Somebody's own stay; the shipped ones are put beside them.
    settings.write_text("telemetry: {enabled: true}\n# mine\n")
    prepare_instance(tmp_path)
    assert settings.read_text().endswith("# mine\n")
    assert beside.read_bytes() == shipped
    assert has_own_settings(tmp_path)
    settings.write_bytes(shipped)
    prepare_instance(tmp_path)
    assert not has_own_settings(tmp_path)


def test_a_launcher_that_is_gone_is_told_with_what_to_write(
    tmp_path: Path, refused: Refused
) -> None:
    settings = tmp_path / "dagster.yaml"
    settings.write_text("# mine\nrun_launcher: {module: hydrotick.resident.launcher, class: X}\n")
    with refused(DataError, "config"):
        prepare_instance(tmp_path)


@pytest.mark.parametrize("shipped_then", sorted(instance._FORMER))
def test_settings_from_before_that_was_noted_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shipped_then: str
) -> None:
    settings = tmp_path / "dagster.yaml"
    settings.write_text("as it was then")
    hashes = {b"as it was then": shipped_then}
    whole = instance._hash
    monkeypatch.setattr(instance, "_hash", lambda found: hashes.get(found) or whole(found))
    prepare_instance(tmp_path)
    assert "run_launcher" in settings.read_text()


PARTS = dg.StaticPartitionsDefinition(["a", "b"])


@dg.asset(partitions_def=PARTS, check_specs=[dg.AssetCheckSpec("holds", asset="numbers")])
def numbers(context: dg.AssetExecutionContext) -> Iterator[object]:
    context.log.info("a line in the log")
    yield dg.MaterializeResult(metadata={"rows": 3})
    yield dg.AssetCheckResult(check_name="holds", passed=True)


def test_logs_of_old_runs_are_forgotten_and_what_assets_had_stays(tmp_path: Path) -> None:
    with open_instance(tmp_path) as opened:
        done = dg.materialize([numbers], instance=opened, partition_key="a")
        printed = Path(opened.root_directory) / "storage" / done.run_id
        printed.mkdir(parents=True, exist_ok=True)
        before = len(opened.all_logs(done.run_id))
        assert forget_old_logs(opened, days=1) == 0
        assert len(opened.all_logs(done.run_id)) == before
        assert forget_old_logs(opened, days=0) == 1
        kept = opened.all_logs(done.run_id)
        assert 0 < len(kept) < before / 2
        assert not any("a line in the log" in log.user_message for log in kept)
        assert not printed.exists()
        assert opened.get_materialized_partitions(numbers.key) == {"a"}
        (record,) = opened.fetch_materializations(numbers.key, limit=5).records
        assert record.asset_materialization is not None
        assert record.asset_materialization.metadata["rows"].value == 3
        (checked,) = opened.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(numbers.key, "holds"), limit=5
        )
        assert checked.status.value == "SUCCEEDED"
        assert opened.get_run_by_id(done.run_id) is not None
        assert forget_old_logs(opened, days=0) == 0


def test_a_new_project_has_pools_and_limits_that_dagster_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["init", "shop"]) == 0
    home = tmp_path / "shop" / "data" / "dagster"
    file = home / "dagster.yaml"
    with open_instance(home) as opened:
        limits = opened.get_concurrency_config()
        queue = limits.run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 2
        assert limits.pool_config.default_pool_limit == 1
        assert limits.pool_config.pool_granularity is PoolGranularity.RUN
        assert opened.run_monitoring_enabled
        assert not opened.run_retries_enabled
    assert not has_own_settings(home)
    # A flow's runs take the pool of its name, or the one that the project's settings name.
    (flow,) = project_at(tmp_path / "shop").flows
    (step,) = (
        a
        for a in flow_definitions(flow, TickRunner(ProjectSettings(home=tmp_path))).assets
        if isinstance(a, dg.AssetsDefinition) and a.is_executable
    )
    assert step.op.pool == "totals"
    # The settings are under version control, what runs make is not.
    subprocess.run(["git", "init", "-q", "shop"], check=True)
    ignored = ["git", "-C", "shop", "check-ignore", "data/dagster/history", str(file)]
    found = subprocess.run(ignored, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["data/dagster/history"]


def test_the_settings_for_postgres_that_are_shipped_are_those_of_the_page(tmp_path: Path) -> None:
    shipped = (prepare_instance(tmp_path) / "dagster.yaml").read_text(encoding="utf-8")
    lines = shipped.split("# storage:\n")[1].split("\n\n")[0].splitlines()
    said = "storage:\n" + "\n".join(line.removeprefix("# ") for line in lines)
    assert yaml.safe_load(said) == of_the_page()


def test_the_settings_for_postgres_are_dagsters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the page on operating, in the place of what is shipped; neither the library nor a
    server is needed to judge them. With both they are opened in `test_instance_elsewhere.py`.
    """
    given = of_the_page()
    file = prepare_instance(tmp_path / "home") / "dagster.yaml"
    shipped = yaml.safe_load(file.read_text(encoding="utf-8"))
    del shipped["event_log_storage"]
    file.write_text(yaml.safe_dump({**shipped, **given}), encoding="utf-8")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql+psycopg2://dagster@db/dagster")
    ref = InstanceRef.from_dir(str(file.parent))
    for data in (ref.run_storage_data, ref.event_storage_data, ref.schedule_storage_data):
        assert data is not None
        assert data.module_name.startswith("dagster_postgres")
    assert prepare_instance(file.parent)
    assert "postgres" in file.read_text(encoding="utf-8")


def of_the_page() -> Any:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    return yaml.safe_load(page.split("```yaml dagster.yaml\n")[1].split("```")[0])
