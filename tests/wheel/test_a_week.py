"""A working week of a company, where nothing but the wheel is installed: PostgreSQL, code server,
daemon, webserver and worker as processes, with a late row, a deployment, and a worker that is
killed.

Every tick has in the end what the commands alone give, in a project of the same rows and programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from hydrotick.instance.run_tags import IN_FLIGHT, is_judged, keys_of
from tests.support import postgres
from tests.support.services import Services
from tests.wheel.company import OUTPUTS, RunningShop, Shop, ShopBeside, day, until
from tests.wheel.environment import Environment, made_in

pytestmark = pytest.mark.wheel

_GOES_ON = [dg.DagsterRunStatus(status) for status in IN_FLIGHT]
DAYS = [day(number) for number in range(1, 7)]


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Environment:
    """An environment with what the package's extra `postgres` asks for."""
    pytest.importorskip("dagster_postgres")
    return made_in(tmp_path, wheel, "postgres")


@pytest.fixture
def company(installed: Environment, tmp_path: Path) -> Iterator[RunningShop]:
    place = postgres.programs()
    if place is None:
        pytest.skip("there is no PostgreSQL on this machine")
    with postgres.served(place) as address:
        yield RunningShop(tmp_path / "shop", installed, address)


def test_the_sensors_take_a_week_to_success(
    company: RunningShop, installed: Environment, tmp_path: Path
) -> None:
    with (
        ShopBeside(tmp_path / "beside", installed) as beside,
        company.served() as services,
        company.records() as records,
    ):
        week = Week(company, beside, services, records)
        week.begins_with_a_late_row()
        week.has_a_deployment()
        week.has_a_worker_killed()
        week.ends()
        assert company.outputs() == beside.outputs()
        assert len(beside.outputs()) == len(OUTPUTS) * len(DAYS)
        _runs_are_recorded(records)
        until(company.told, services)
        (told,) = company.told()
        assert (told["flow"], told["judged"]) == ("totals", False), told
        assert "the worker" in told["cause"]
        company.command("status", "--max-open", "0")
        company.command("status", "--verify")
        _all_is_well(company.metrics())


@dataclass(frozen=True)
class Week:
    """What happens in the week: to the company, and to the project beside by commands alone."""

    company: RunningShop
    beside: ShopBeside
    services: Services
    records: dg.DagsterInstance

    def begins_with_a_late_row(self) -> None:
        """One for the first day comes when that is committed."""
        self._land("first", 1, 2)
        self._beside("backfill", "totals")
        self._committed(1, "totals")
        self._land("late", 1)
        self._beside("correct", "totals", "--from", day(1), "--yes")
        self._land("third", 3)
        self._committed(2, "totals")
        self._land("fourth", 4)
        self._committed(3, *OUTPUTS)
        self._beside("backfill", "totals")

    def has_a_deployment(self) -> None:
        """The program of the flow that another reads is edited and deployed, from a day on."""
        until(self._rests, self.services)
        deploy = ("deploy", "totals", "--from", day(2), "--yes")
        self.beside.then(Shop.edit)
        self._beside(*deploy)
        before = {run.run_id for run in self.records.get_runs()}
        self.company.edit()
        self.company.command(*deploy)
        # Dagster's default launcher starts runs below the code server: they would end with it.
        until(lambda: self._has_followed(before), self.services)
        self.services.restart("code")

    def has_a_worker_killed(self) -> None:
        """It has begun to write a tick, and has not committed it."""
        before = self.company.files("totals")
        self._land("fifth", 5)
        until(lambda: self.company.files("totals") - before, self.services, every=0.01)
        self.services.kill("worker")
        assert self.company.committed("totals") == 3
        self.services.start("worker")

    def ends(self) -> None:
        """What has piled up meanwhile, and a day more."""
        self._land("sixth", 6)
        self._committed(5, "totals")
        self._land("seventh", 7)
        for flow in OUTPUTS:
            self._beside("backfill", flow)
        self._committed(6, *OUTPUTS)
        until(self._rests, self.services)
        self.beside.ends()

    def _land(self, name: str, *days: int) -> None:
        self.beside.then(lambda shop: shop.land(name, *days))
        self.company.land(name, *days)

    def _beside(self, *words: str) -> None:
        self.beside.then(lambda shop: shop.command(*words))

    def _committed(self, ticks: int, *flows: str) -> None:
        company = self.company
        until(lambda: all(company.committed(flow) == ticks for flow in flows), self.services)

    def _has_followed(self, before: set[str]) -> bool:
        """Whether each flow has had a run since, and none goes on."""
        since = {run.job_name for run in self.records.get_runs() if run.run_id not in before}
        return since >= {f"{flow}_job" for flow in OUTPUTS} and self._rests()

    def _rests(self) -> bool:
        """Whether no run waits or goes on."""
        return not self.records.get_runs(dg.RunsFilter(statuses=_GOES_ON))


def _runs_are_recorded(records: dg.DagsterInstance) -> None:
    """One run has failed, by the machine's fault; every tick is materialized, and the sensors' runs
    had theirs from the worker.
    """
    runs = {run.run_id: run for run in records.get_runs()}
    failed = [run for run in runs.values() if run.status is not dg.DagsterRunStatus.SUCCESS]
    assert [(keys_of(run.tags), is_judged(run)) for run in failed] == [((day(4), day(4)), False)]
    for flow, output in OUTPUTS.items():
        key = dg.AssetKey([flow, output])
        assert sorted(records.get_materialized_partitions(key)) == DAYS
        found = records.fetch_materializations(dg.AssetRecordsFilter(asset_key=key), limit=100)
        for one in found.records:
            made = one.asset_materialization
            assert made is not None
            if "dagster/sensor_name" in runs[one.run_id].tags:
                assert made.metadata.get("worker"), made


def _all_is_well(metrics: Mapping[str, str]) -> None:
    assert metrics["hydrotick_worker_up"] == "1"
    for flow in OUTPUTS:
        assert metrics[f'hydrotick_ticks_committed{{flow="{flow}"}}'] == str(len(DAYS))
        for none in ("ticks_behind", "failed_tries", "stopped"):
            assert metrics[f'hydrotick_{none}{{flow="{flow}"}}'] == "0"
    late = {name for name in metrics if name.startswith("hydrotick_late_rows{")}
    assert {metrics[name] for name in late} <= {"0"}
