"""A small flow with state, a check and data of its own, for tests that break and kill it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import Expect, FlowAsset, Landing, Ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.factory import project_definitions
from hydrotick.code_location.records import refuse_lost_pipeline
from hydrotick.project import project
from hydrotick.project.project import Project
from hydrotick.project.settings import ProjectSettings, project_settings
from hydrotick.runner.runner import TickRunner

PROGRAM = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> delta() -> totals
payments -> prev() -> before
"""
BATCHES: tuple[Sequence[tuple[str, int]], ...] = (
    [("ann", 1), ("bob", 2)],
    [("ann", 10)],
    [],
    [("cat", 3), ("ann", 100), ("ann", 100)],
)


def small_flow(directory: Path, shards: int = 1) -> FlowAsset:
    """The flow, in shards if it is to be; its program is written below `directory`."""
    program = directory / "small.hydro"
    directory.mkdir(parents=True, exist_ok=True)
    program.write_text(PROGRAM, encoding="utf-8")
    return FlowAsset(
        name="small",
        program=program,
        ticks=Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d", datetime(2026, 2, 1, tzinfo=UTC)),
        inputs={"payments": Landing("small/payments", "tick")},
        expect={"totals": (Expect("total", at_least=0), Expect("user", unique=True))},
        shards=shards,
    )


def land(project: ProjectSettings, batches: Sequence[Sequence[tuple[str, int]]] = BATCHES) -> None:
    """Lands the ticks, in place of what was there."""
    rows = [
        {"tick": tick, "user": user, "amount": amount}
        for tick, batch in enumerate(batches)
        for user, amount in batch
    ]
    schema = pa.schema([("tick", pa.int64()), ("user", pa.string()), ("amount", pa.int64())])
    path = project.landing / "small" / "payments"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(path, pa.Table.from_pylist(rows, schema=schema), mode="overwrite")


def opened(home: Path, shards: int = 1) -> tuple[FlowAsset, TickRunner]:
    """The flow in a home of its own, with its data; in shards if it is to be."""
    project = ProjectSettings(home=home, spark_master="local[2]")
    if not project.landing.exists():
        land(project)
    return small_flow(home / "program", shards), TickRunner(project)


def serve(
    monkeypatch: pytest.MonkeyPatch,
    flows: Sequence[FlowAsset],
    settings: ProjectSettings | None = None,
) -> None:
    """Makes these the flows of the project that commands are about; settings as they are found."""
    monkeypatch.setattr(project, "current", lambda: Project(settings or project_settings(), flows))


def contents(flow: FlowAsset, runner: TickRunner) -> Mapping[str, list[str]]:
    """All that is committed, independent of the order of rows, and of when a log was summed up."""
    pipeline = runner.pipeline(flow)
    last = pipeline.last_committed
    assert last is not None
    found = {}
    for spec in pipeline.tables:
        of_state = spec.is_log and spec.role == "state"
        read = pipeline.store.rows if of_state else pipeline.store.arrow
        rows = read(spec.name, last if of_state else 0, last).to_pylist()
        found[spec.name] = sorted(map(repr, rows))
    return found


class Run:
    """Dagster runs of the flow in an instance, and what it recorded."""

    def __init__(self, flow: FlowAsset, runner: TickRunner, instance: dg.DagsterInstance) -> None:
        self.axis = flow.ticks.calendar
        self.flow, self.instance = flow, instance
        with suppress(DataError):
            refuse_lost_pipeline(instance, flow, runner)
            runner.deployments.prepare(flow)
        self._defs = project_definitions([flow], runner)

    def __call__(
        self,
        first: int,
        last: int | None = None,
        *,
        among: Sequence[dg.AssetsDefinition] | None = None,
        only: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Runs a tick, or a range of them as one run: of the flow alone; or as "Materialize all"
        does it, together with its checks and the assets `among` which it stands; or asked for
        `only` one asset; with `tags` of the run.
        """
        ends = self.axis.window(first).key, self.axis.window(first if last is None else last).key
        range_ = dict(zip(_RANGE, ends, strict=True)) if last is not None else {}
        job = self._defs.resolve_job_def("small_job")
        if among is not None:
            defs = dg.Definitions.merge(self._defs, dg.Definitions(assets=among))
            job = defs.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            partition_key=None if range_ else ends[0],
            tags={**range_, **(tags or {})},
            asset_selection=None if only is None else [asset_key(self.flow, only)],
            raise_on_error=False,
            run_config=_QUIET,
        )

    def check(self, asset: str, tick: int | None = None) -> dg.ExecuteInProcessResult:
        """Runs the checks of an asset by themselves: of a committed tick, or as "Execute all"."""
        key = asset_key(self.flow, asset)
        job = dg.define_asset_job("checks", dg.AssetSelection.checks_for_assets(key))
        defs = dg.Definitions.merge(self._defs, dg.Definitions(jobs=[job]))
        return defs.resolve_job_def("checks").execute_in_process(
            instance=self.instance,
            tags={} if tick is None else {"dagster/partition": self.axis.window(tick).key},
            raise_on_error=False,
            run_config=_QUIET,
        )

    def checks(self, result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
        """All checks that a run shows; the result itself leaves out those of failed steps."""
        kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        logs = self.instance.all_logs(result.run_id, of_type=kind)
        return [log.get_dagster_event().asset_check_evaluation_data for log in logs]

    def failed(self, result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
        """The checks that a run shows as failed, and that stop it."""
        return self._broken(result, dg.AssetCheckSeverity.ERROR)

    def warned(self, result: dg.ExecuteInProcessResult) -> dict[str, str | None]:
        """The checks by which a run warns, each with the tick of the last warning."""
        found = self._broken(result, dg.AssetCheckSeverity.WARN)
        return {name: e.partition for name, e in found.items()}

    def _broken(
        self, result: dg.ExecuteInProcessResult, severity: dg.AssetCheckSeverity
    ) -> dict[str, dg.AssetCheckEvaluation]:
        found = [e for e in self.checks(result) if not e.passed and e.severity is severity]
        return {f"{e.asset_key.path[-1]}:{e.check_name}": e for e in found}

    def painted(self) -> dict[str, tuple[str, str]]:
        """What the pages of checks show of each: how it ended last, and at which tick."""
        keys = list(self._defs.resolve_asset_graph().asset_check_keys)
        found = self.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
        shown = {}
        for key, record in found.items():
            judged = isinstance(record.evaluation, dg.AssetCheckEvaluation)
            tick = str(record.evaluation.metadata["tick"].value) if judged else ""
            shown[f"{key.asset_key.path[-1]}:{key.name}"] = (record.status.value, tick)
        return shown

    def shown(self, result: dg.ExecuteInProcessResult, asset: str) -> dict[str, dict[str, Any]]:
        """What a run recorded of an asset, by tick."""
        key = asset_key(self.flow, asset)
        return {
            event.partition: {
                name: value.value for name, value in event.materialization.metadata.items()
            }
            for event in result.get_asset_materialization_events()
            if event.asset_key == key
        }

    def recorded(self, asset: str) -> list[str]:
        """The ticks that Dagster has of an asset."""
        key = asset_key(self.flow, asset)
        return sorted(self.instance.get_materialized_partitions(key))


_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def reason(result: dg.ExecuteInProcessResult) -> str:
    """What the failed step of a run says."""
    (failure,) = result.get_step_failure_events()
    data = failure.step_failure_data
    assert data.error is not None
    return data.error.to_string()
