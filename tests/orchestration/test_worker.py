"""A worker runs the ticks of runs, whatever launches these; without one they run by themselves."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from hydro_core.machine.locks import number_of
from hydrotick.code_location.factory import flow_definitions
from hydrotick.instance.run_tags import PROCESS_TAG
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner
from tests.orchestration.launched import Company, JvmsSeen, free_port, until

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

DAYS = [f"2026-01-0{day}" for day in range(1, 8)]


@pytest.fixture
def company(tmp_path: Path) -> Company:
    return Company(tmp_path)


def _committed(company: Company) -> int:
    found = project_at(company.shop)
    return TickRunner(found.settings).next_tick(found.flows[0])


def test_the_worker_runs_the_ticks_of_runs_that_others_launch(company: Company) -> None:
    with company.worker(), company.launcher() as launches:
        with JvmsSeen(company) as seen:
            first = launches.run(DAYS[0])
            second = launches.run(DAYS[1], "several")
        assert launches.status(first) == "SUCCESS", launches.says(first)
        assert launches.status(second) == "SUCCESS", launches.says(second)
        process = launches.metadata(first)["worker"]
        assert launches.metadata(second)["worker"] == process
        # The process of the worker, and no other, has started a JVM.
        assert seen.above
        assert all(number_of(process) in above for above in seen.above.values())
        assert [one["process"] for one in company.status()["processes"]] == [number_of(process)]
        assert "committed after" in launches.says(first)

        # Killed in the middle, a process fails the run as a machine's fault, and leaves all whole.
        third = launches.launch(DAYS[2])
        running: list[dict[str, int]] = []
        # The tick takes some tenths of a second.
        until(lambda: running.extend(company.status()["running"]) or running, every=0.01)
        os.kill(running[0]["process"], signal.SIGKILL)
        assert launches.end(third) == "FAILURE"
        assert "the worker's process is gone: it was ended by signal 9" in launches.says(third)
        assert _committed(company) == 2
        run = launches.instance.get_run_by_id(third)
        assert run is not None
        assert "hydrotick/judged" not in run.tags
        again = launches.run(DAYS[2])
        assert launches.status(again) == "SUCCESS", launches.says(again)
        assert launches.metadata(again)["worker"] != process


@pytest.mark.slow
def test_a_run_that_is_cancelled_leaves_the_worker_idle(company: Company) -> None:
    with company.worker(), company.launcher() as launches:
        run = launches.launch(DAYS[0])
        until(lambda: company.status()["running"])
        assert launches.instance.run_launcher.terminate(run)
        assert launches.end(run) == "CANCELED"
        # When the run has ended, so has what went on for it.
        assert company.status()["running"] == []
        assert _committed(company) == 0
        again = launches.run(DAYS[0])
        assert launches.status(again) == "SUCCESS", launches.says(again)
        assert _committed(company) == 1


@pytest.mark.slow
@pytest.mark.parametrize("job", ["totals_job", "several"])
def test_without_a_worker_the_process_of_the_run_runs_the_ticks(company: Company, job: str) -> None:
    with company.launcher() as launches:
        run = launches.run(DAYS[0], job)
        assert launches.status(run) == "SUCCESS", launches.says(run)
        assert "worker" not in launches.metadata(run)
        assert _committed(company) == 1


def test_a_code_server_that_is_killed_with_its_runs_holds_nobody_up(company: Company) -> None:
    with company.launcher(HYDROTICK_WORKER="none") as launches:
        run = launches.launch(DAYS[0])
        until(lambda: PROCESS_TAG in launches.tags(run))
        number = number_of(launches.tags(run)[PROCESS_TAG])
        process = psutil.Process(number)
        server = process.parent()
        assert server is not None
        # What a service's end does to all that is below it.
        for one in (server, process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(10)
        assert launches.status(run) == "STARTED"
        found = project_at(company.shop)
        definitions = flow_definitions(found.flows[0], TickRunner(found.settings))
        (sensor,) = definitions.sensors
        context = dg.build_sensor_context(instance=launches.instance)
        sensor(context)
        assert launches.status(run) == "FAILURE"
        assert "it is tried again after" in str(context.cursor)
        assert _committed(company) == 0


@pytest.mark.slow
def test_a_worker_at_an_address_is_asked_with_a_token(company: Company) -> None:
    address = f"127.0.0.1:{free_port()}"
    named = {"HYDROTICK_WORKER": address}
    token = {"HYDROTICK_WORKER_TOKEN": "a secret"}
    with company.launcher(**named) as launches:
        refused = launches.run(DAYS[0])
        assert f"the worker at {address} does not take the ticks" in launches.says(refused)
        run = launches.instance.get_run_by_id(refused)
        assert run is not None
        assert "hydrotick/judged" not in run.tags
    with company.worker("--listen", address, **token):
        with company.launcher(**named) as launches:
            refused = launches.run(DAYS[0])
            assert "the token is not the worker's" in launches.says(refused)
        with company.launcher(**named, **token) as launches:
            run_id = launches.run(DAYS[0])
            assert launches.status(run_id) == "SUCCESS", launches.says(run_id)
            assert launches.metadata(run_id)["worker"]


@pytest.mark.slow
def test_a_program_that_is_edited_has_a_process_of_its_own(company: Company) -> None:
    with company.worker("--flows", "1"), company.launcher() as launches:
        first = launches.run(DAYS[0])
        declared = company.shop / "assets" / "totals" / "asset.yaml"
        declared.write_text(declared.read_text() + "\n# edited\n")
        second = launches.run(DAYS[1])
        assert launches.status(second) == "SUCCESS", launches.says(second)
        assert launches.metadata(first)["worker"] != launches.metadata(second)["worker"]
        assert len(company.status()["processes"]) == 1
