"""What runs next of a flow, or why nothing does, by its ledger and Dagster's records."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.storage.tags import GRPC_INFO_TAG

from hydro_core.cli.main import run_command
from hydro_core.machine.locks import this_process
from hydrotick.cli.status import _table, status_of
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.code_location.factory import flow_definitions
from hydrotick.code_location.next_run import MOST_TRIES, next_run
from hydrotick.code_location.records import note_process, unrecorded
from hydrotick.code_location.sensors import FailedRun, failed_run, records_of, tell
from hydrotick.instance.run_tags import (
    FLOW_TAG,
    JUDGED_TAG,
    PARTITION,
    PROCESS_TAG,
    process_of,
    process_tag,
    range_tags,
)
from hydrotick.project.settings import ProjectSettings
from tests.orchestration.recorded import RUN, Case
from tests.orchestration.small import serve

pytestmark = pytest.mark.dagster


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Case(tmp_path, instance)


def test_catching_up_goes_by_ranges(case: Case) -> None:
    assert case.keys(case.next()) == ("2026-01-01", "2026-01-08")
    case.commit(0, 13)
    assert case.keys(case.next()) == ("2026-01-15", "2026-01-20")
    case.commit(14, 18)
    found = case.next()
    assert case.keys(found) == ("2026-01-20", "2026-01-20")
    assert "tick 2026-01-20 may run" in found.says


def test_the_page_says_which_tick_comes_and_when(case: Case) -> None:
    case.commit(0, 19)
    case.at(datetime(2026, 1, 21, 1, tzinfo=UTC))
    found = next_run(case.flow, case.runner, case.instance)
    assert found.ticks is None
    assert found.says.startswith(
        "up to date; tick 2026-01-21 is next: its window ends at 2026-01-22"
    )
    case.at(datetime(2026, 1, 22, 1, tzinfo=UTC))
    later = next_run(case.flow, case.runner, case.instance)
    assert case.keys(later) == ("2026-01-21", "2026-01-21")


def test_the_page_of_the_sensor_shows_it_at_once(case: Case) -> None:
    case.commit(0, 2)
    case.run(RUN.FAILURE, 3, judged=True)
    (sensor,) = flow_definitions(case.flow, case.runner).sensors
    context = dg.build_sensor_context(instance=case.instance)
    skipped = sensor(context)
    assert isinstance(skipped, dg.SkipReason)
    assert context.cursor == skipped.skip_message
    assert "tick 2026-01-04 failed, and would again: stopped since" in str(context.cursor)


def test_a_run_whose_process_is_gone_holds_nobody_up(case: Case) -> None:
    (sensor,) = flow_definitions(case.flow, case.runner).sensors
    run = case.run(RUN.STARTED, 0)
    for process, there in ((this_process(), RUN.STARTED), ("1@0", RUN.FAILURE)):
        case.instance.add_run_tags(run, {PROCESS_TAG: process})
        said = "\n".join(_table([status_of(case.flow, case.runner, case.instance)]))
        assert ("its process has ended, and the sensor" in said) == (there is RUN.FAILURE)
        context = dg.build_sensor_context(instance=case.instance)
        sensor(context)
        found = case.instance.get_run_by_id(run)
        assert found is not None
        assert found.status is there, process
    assert "tick 2026-01-01 failed at" in str(context.cursor)
    assert f"try 1 of {MOST_TRIES}: it is tried again" in str(context.cursor)


@pytest.mark.parametrize("status", [RUN.NOT_STARTED, RUN.STARTED])
def test_a_run_that_is_executed_again_has_a_process_of_its_own(case: Case, status: RUN) -> None:
    """It begins with all tags of the one before, whose process has ended."""
    before = case.run(RUN.FAILURE, 0)
    case.instance.add_run_tags(before, process_tag(before, "1@0"))
    parent = case.instance.get_run_by_id(before)
    assert parent is not None
    tags = {**parent.tags, GRPC_INFO_TAG: "{}"}
    again = case.run(status, 0, tags=tags, parent_run_id=before, root_run_id=before)

    def looked_at() -> dg.DagsterRun:
        (sensor,) = flow_definitions(case.flow, case.runner).sensors
        sensor(dg.build_sensor_context(instance=case.instance))
        found = case.instance.get_run_by_id(again)
        assert found is not None
        return found

    assert looked_at().status is status
    told = EngineEventData({"pid": dg.MetadataValue.text(str(os.getpid()))})
    case.instance.report_engine_event("Started process.", looked_at(), told)
    note_process(looked_at(), case.instance)
    assert process_of(looked_at()) == this_process()
    assert looked_at().status is status


@pytest.mark.parametrize("status", [RUN.NOT_STARTED, RUN.STARTING, RUN.STARTED, RUN.CANCELING])
def test_nothing_runs_while_a_tick_runs(case: Case, status: RUN) -> None:
    run = case.run(status, 0)
    found = case.next()
    assert found.ticks is None
    assert run in found.says
    assert ("waits in the queue" if status is RUN.NOT_STARTED else "is running") in found.says


def test_a_run_from_the_assets_is_a_run_of_the_flow(case: Case) -> None:
    tags = {PARTITION: "2026-01-01"}
    selection = frozenset([asset_key(case.flow, "totals")])
    case.run(RUN.STARTED, 0, tags=tags, asset_selection=selection)
    assert case.next().ticks is None
    other = frozenset([dg.AssetKey(["other", "totals"])])
    with dg.DagsterInstance.ephemeral() as instance:
        case.instance = instance
        case.run(RUN.STARTED, 0, tags=tags, asset_selection=other)
        assert case.next().ticks is not None


def test_a_tick_that_was_judged_wrong_stops_the_flow(case: Case) -> None:
    case.commit(0, 2)
    run = case.run(RUN.FAILURE, 3, judged=True)
    for later in (timedelta(0), timedelta(days=3)):
        found = case.next(later)
        assert found.ticks is None
        assert found.stopped
        assert (
            "tick 2026-01-04 failed, and would again: stopped since "
            f"{datetime.now(UTC):%Y}" in found.says
        )
        assert run in found.says
    # Somebody repaired it and launched it: the flow goes on.
    case.commit(3, 3)
    assert case.keys(case.next())[0] == "2026-01-05"


def test_a_failure_that_may_pass_is_tried_again_less_and_less_often(case: Case) -> None:
    case.commit(0, 2)
    lengths = []
    for number in range(1, MOST_TRIES):
        run = case.run(RUN.FAILURE, 3)
        found = case.next()
        assert found.ticks is None
        assert not found.stopped
        assert f"try {number} of {MOST_TRIES}" in found.says
        pause = min(timedelta(minutes=2 ** (number - 1)), timedelta(minutes=30))
        assert case.next(pause - timedelta(seconds=10)).ticks is None
        first, last = case.next(pause + timedelta(seconds=10)).ticks or (None, None)
        assert first is not None
        assert last is not None
        lengths.append(last.tick - first.tick + 1)
    assert lengths == [4, 2, 1, 1, 1]
    run = case.run(RUN.FAILURE, 3)
    found = case.next(timedelta(days=1))
    assert found.stopped
    assert f"failed {MOST_TRIES} times, stopped since" in found.says
    assert run in found.says


def test_a_failed_range_is_a_try_at_its_ticks(case: Case) -> None:
    case.commit(0, 4)
    tags = {FLOW_TAG: "small", **range_tags("2026-01-03", "2026-01-10")}
    case.run(RUN.FAILURE, 5, tags=tags)
    assert "try 1 of" in case.next().says
    # A failure of ticks that are long past, or of others, is none.
    case.commit(5, 12)
    assert case.next().ticks is not None


def test_a_terminated_tick_is_left_to_people(case: Case) -> None:
    run = case.run(RUN.CANCELED, 0)
    for later in (timedelta(0), timedelta(days=1)):
        found = case.next(later)
        assert found.ticks is None
        assert found.stopped
        assert "tick 2026-01-01 was terminated at" in found.says
        assert run in found.says


def test_a_judgement_is_not_inherited_by_the_run_that_is_executed_again(case: Case) -> None:
    first = case.run(RUN.FAILURE, 0, judged=True)
    tags = {FLOW_TAG: "small", PARTITION: "2026-01-01", JUDGED_TAG: first}
    case.run(RUN.FAILURE, 0, tags=tags)
    found = case.next()
    assert not found.stopped
    assert "try 1 of" in found.says


def test_what_was_committed_but_not_recorded_comes_first(case: Case) -> None:
    case.commit(0, 9, record=False)
    for tick in (0, 1, 4, 9):
        case.record(tick)
    found = [(a.key, b.key) for a, b in unrecorded(case.flow, case.runner, case.instance)]
    assert found == [("2026-01-03", "2026-01-04"), ("2026-01-06", "2026-01-09")]
    following = case.next()
    assert case.keys(following) == found[0]
    assert "committed, but not recorded" in following.says


def test_status_tells_what_runs_what_failed_and_how_far_behind_it_is(case: Case) -> None:
    case.commit(0, 16)
    case.at(datetime(2026, 1, 21, 1, tzinfo=UTC))
    found = status_of(case.flow, case.runner, case.instance)
    assert (found.committed, found.last, found.open) == (17, "2026-01-17", 3)
    assert found.lag_seconds == timedelta(days=2, hours=1).total_seconds()
    assert found.is_well
    case.run(RUN.FAILURE, 17, judged=True)
    found = status_of(case.flow, case.runner, case.instance)
    assert not found.is_well
    assert found.stopped
    assert found.failed is not None
    assert found.failed.ticks == ("2026-01-18", "2026-01-18")
    run = case.run(RUN.STARTED, 17)
    found = status_of(case.flow, case.runner, case.instance)
    assert [(r.run, r.state) for r in found.running] == [(run, "started")]


def test_status_is_for_monitoring_too(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "hydrotick.instance.opening.open_instance", lambda _: nullcontext(case.instance)
    )
    monkeypatch.setattr("hydrotick.cli.status.Flows", lambda _: case.runner)
    serve(monkeypatch, [case.flow], case.runner.project)
    case.runner.project.dagster_home.mkdir(parents=True)
    case.commit(0, 16)
    case.at(datetime(2026, 1, 21, 1, tzinfo=UTC))

    def shown(*words: str) -> tuple[int, str]:
        code = run_command(["status", *words])
        return code, capsys.readouterr().out

    code, said = shown("small")
    assert code == 0
    assert "next: the ticks 2026-01-18 to 2026-01-20 may run; 3 open in all" in said
    assert shown("--max-open", "3")[0] == 0
    assert shown("--max-open", "2")[0] == 1
    run = case.run(RUN.FAILURE, 17, judged=True)
    code, said = shown()
    assert code == 1
    assert "failed: 2026-01-18: the run failed" in said
    assert "cure:   repair the data or the program, then `hydrotick backfill small`" in said
    assert "stopped: tick 2026-01-18 failed, and would again: stopped since" in said
    code, said = shown("--format", "json")
    assert code == 1
    (found,) = json.loads(said)["flows"]
    assert (found["open"], found["lag_seconds"], found["stopped"]) == (3, 49 * 3600, True)
    assert found["failed"]["run"] == run
    assert not found["running"]


@pytest.mark.parametrize(
    ("keys", "cause"),
    [
        (("2026-01-18", "2026-01-18"), "a check failed"),
        (("2026-01-18", "2026-01-20"), "2026-01-18: a check failed"),
    ],
)
def test_a_failed_tick_is_named_once(
    case: Case, keys: tuple[str, str], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run names it; of the ticks of a range the failure says which."""
    message = "2026-01-18: a check failed\nhelp: mend its cause"
    monkeypatch.setattr("hydrotick.code_location.sensors._message", lambda *_: message)
    first, last = keys
    tags = {PARTITION: first} if first == last else range_tags(first, last)
    run = dg.DagsterRun(job_name="small", tags={FLOW_TAG: "small", **tags})
    found = failed_run(case.instance, run)
    assert (found.ticks, found.cause) == (keys, cause)


def test_status_makes_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, [case.flow], case.runner.project)
    monkeypatch.setattr("hydrotick.cli.status.Flows", lambda _: case.runner)
    assert run_command(["status"]) == 0
    assert "small" in capsys.readouterr().out
    assert not case.runner.project.dagster_home.exists()


def test_a_failure_is_told_to_a_command_and_to_a_webhook(tmp_path: Path, case: Case) -> None:
    failed = failed_run(case.instance, _run(case, case.run(RUN.FAILURE, 2, judged=True)))
    assert "`hydrotick backfill small`, or a launch in the UI" in failed.cure
    told: list[dict[str, Any]] = []
    with Webhook(told) as url:
        file = tmp_path / "told.json"
        script = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read())"
        project = ProjectSettings(
            failure_command=f'{sys.executable} -c "{script}"', failure_webhook=url
        )
        assert tell(failed, project) == []
    for found in (told[0], json.loads(file.read_text())):
        assert (found["flow"], found["ticks"]) == ("small", ["2026-01-03", "2026-01-03"])
        assert found["judged"]
        assert found["text"].startswith("small: 2026-01-03 failed: ")


def test_who_cannot_be_told_is_said(case: Case) -> None:
    failed = FailedRun("small", None, "a run", True, "cause", "cure")
    project = ProjectSettings(
        failure_command="no-such-command", failure_webhook="file:///etc/passwd"
    )
    command, webhook = tell(failed, project)
    assert command.startswith("HYDROTICK_FAILURE_COMMAND: ")
    assert webhook == "HYDROTICK_FAILURE_WEBHOOK: `file:///etc/passwd` is no http or https address"


def test_a_webhook_that_answers_no_http_is_a_problem_in_words() -> None:
    failed = FailedRun("totals", None, "a run", judged=True, cause="it failed", cure="mend it")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"what is this?\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        (problem,) = tell(failed, ProjectSettings(failure_webhook=url))
    assert problem.startswith("HYDROTICK_FAILURE_WEBHOOK: ")


def _run(case: Case, run_id: str) -> dg.DagsterRun:
    run = case.instance.get_run_by_id(run_id)
    assert run is not None
    return run


class Webhook:
    """A server on this machine that keeps what is posted to it."""

    def __init__(self, told: list[dict[str, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_records_are_opened_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, from_ref = list[object](), dg.DagsterInstance.from_ref
    monkeypatch.setattr(
        dg.DagsterInstance, "from_ref", lambda ref: opened.append(ref) or from_ref(ref)
    )
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "one")) as one:
        run = one.create_run_for_job(_nothing)
        for _ in range(3):
            records = records_of(dg.build_sensor_context(instance_ref=one.get_ref()))
            assert [known.run_id for known in records.get_runs()] == [run.run_id]
        assert len(opened) == 1
    with dg.DagsterInstance.local_temp(str(tmp_path / "other")) as other:
        assert not records_of(dg.build_sensor_context(instance_ref=other.get_ref())).get_runs()
    with dg.DagsterInstance.ephemeral() as passing:
        assert records_of(dg.build_sensor_context(passing)) is passing


@dg.job
def _nothing() -> None:
    """No step."""
