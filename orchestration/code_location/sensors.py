"""Sensors and schedules of a flow: its next tick, upkeep of tables, reports of failed runs.

A code location has the assets and partitions of the flow that it was loaded with, until somebody
reloads it. What else the flow's folder declares, such as when ticks may run, counts as soon as it
is written; of the rest it is said that it does not count yet.

The upkeep of stored tables is a schedule: small files are joined, what was replaced is removed. It
takes the flow's place in its pool, so it is done between two runs of the flow.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster._serdes import deserialize_value, serialize_value

from hydro_core.project.discover import ASSETS, DECLARATIONS, found_in
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import span

from ..deploy.deployments import Deployments
from ..instance.run_tags import (
    CORRECT,
    CORRECT_TAG,
    FLOW_TAG,
    flow_of,
    is_judged,
    keys_of,
    range_tags,
    runs_it_again,
)
from ..openlineage import post_json
from ..project.settings import ProjectSettings
from ..runner.runner import TickRunner
from .next_run import next_run
from .records import end_orphans


def next_tick_sensor(flow: FlowAsset, job: Any, runner: TickRunner) -> dg.SensorDefinition:
    declared = SinceLoaded(flow, runner.project.root, runner.deployments)

    @dg.sensor(
        name=f"{flow.name}_next_tick",
        job=job,
        minimum_interval_seconds=runner.project.sensor_seconds,
        default_status=(
            dg.DefaultSensorStatus.RUNNING
            if runner.project.sensors_run
            else dg.DefaultSensorStatus.STOPPED
        ),
        description="The next tick, once it may run and the tick before it is committed.",
    )
    def next_tick(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        now = declared.now()
        if now.flow is None:
            context.update_cursor(now.says)
            return dg.SkipReason(now.says)
        records = records_of(context)
        found = next_run(now.flow, runner, records)
        if found.busy:
            end_orphans(records, now.flow)
            found = next_run(now.flow, runner, records)
        if now.says:
            found = replace(found, says=f"{found.says}; {now.says}")
        # Of what a sensor says, its page shows the cursor at once and the rest behind a click.
        context.update_cursor(found.says)
        if found.ticks is None:
            return dg.SkipReason(found.says)
        context.log.info(found.says)
        first, last = found.ticks
        tags = {FLOW_TAG: flow.name, **({CORRECT_TAG: CORRECT} if found.again else {})}
        if first == last:
            return dg.RunRequest(partition_key=first.key, tags=tags)
        return dg.RunRequest(tags={**tags, **range_tags(first.key, last.key)})

    return next_tick


def records_of(context: dg.SensorEvaluationContext) -> dg.DagsterInstance:
    """Dagster's records, opened once in a process.

    `context.instance` opens them for each evaluation, and reads some hundred migrations to find
    that the tables are current: that is most of what an evaluation takes.
    """
    ref = context.instance_ref
    return context.instance if ref is None else _opened(serialize_value(ref))


@lru_cache(maxsize=1)
def _opened(ref: str) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_ref(deserialize_value(ref, InstanceRef))


RELOAD = "reload the code location"

_State = frozenset[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class DeclaredNow:
    """The flow as it is declared now, or None with the reason; and remarks on it."""

    flow: FlowAsset | None
    says: str = ""


class SinceLoaded:
    """Declaration of a flow, read again when the files of its folder have changed."""

    def __init__(self, flow: FlowAsset, root: Path | None, deployments: Deployments) -> None:
        self._loaded, self._root, self._deployments = flow, root, deployments
        self._at_load = self._seen = self._state()
        self._now = DeclaredNow(flow)

    def now(self) -> DeclaredNow:
        state = self._state()
        if state != self._seen:
            self._seen = state
            unchanged = state == self._at_load
            self._now = DeclaredNow(self._loaded) if unchanged else self._read()
        return self._now

    def _read(self) -> DeclaredNow:
        loaded, root = self._loaded, self._root
        if root is None:
            return DeclaredNow(loaded)
        found = found_in(root)
        for broken in found.broken:
            if broken.name == loaded.name:
                return DeclaredNow(None, f"what it declares is wrong by now:\n{broken.error}")
        flow = next((flow for flow in found.flows if flow.name == loaded.name), None)
        if flow is None:
            return DeclaredNow(None, f"the flow is not declared any more: {RELOAD}")
        if _axis(flow) != _axis(loaded):
            return DeclaredNow(
                None, f"its ticks are others since the location was loaded: {RELOAD}"
            )
        return DeclaredNow(flow, "; ".join(self._says(flow)))

    def _says(self, flow: FlowAsset) -> Iterator[str]:
        if flow != self._loaded:
            yield f"what it declares has changed, and counts; {RELOAD} to see it in the UI"
        code = {name for name, *_ in self._seen ^ self._at_load if name.endswith(".py")}
        if code:
            listed = ", ".join(f"`{Path(name).name}`" for name in sorted(code))
            yield f"{listed} changed, which this process has loaded before: {RELOAD}"
        undeployed = self._deployments.undeployed(flow).says
        if undeployed:
            yield undeployed

    def _state(self) -> _State:
        root, folder = self._root, self._loaded.folder
        if root is None or folder is None:
            return frozenset()
        declared = (file for name in DECLARATIONS for file in (root / ASSETS).glob(f"*/{name}"))
        return frozenset(
            (str(file), stat.st_mtime_ns, stat.st_size)
            for file in {*declared, *folder.rglob("*")}
            if file.suffix != ".pyc" and file.is_file()
            for stat in (file.stat(),)
        )


def _axis(flow: FlowAsset) -> tuple[object, ...]:
    return flow.ticks.start, flow.ticks.every, flow.ticks.end, flow.ticks.zone


KEPT = timedelta(days=7)
"""Going back to earlier ticks stays possible for so long."""

CRON: Mapping[str, str] = MappingProxyType(
    {"daily": "0 3 * * *", "weekly": "0 3 * * 0", "monthly": "0 3 1 * *"}
)
"""When it is done, by the words of the settings: at night."""


def upkeep_of(flow: FlowAsset, runner: TickRunner) -> dg.ScheduleDefinition | None:
    """The schedule of the job that compacts a flow's tables; None: the project asks for none."""
    often = runner.project.compact
    if often is None:
        return None

    @dg.op(
        name=f"{flow.name}__compact",
        pool=runner.project.pool or flow.name,
        description=f"Joins the small files of {flow.name}'s tables.",
    )
    def compact(context: dg.OpExecutionContext) -> None:
        if runner.deployments.active(flow) is None:
            context.log.info("nothing is committed yet")
            return
        runner.wait_for_work(flow, context.log.info)
        runner.pipeline(flow).compact(KEPT // timedelta(hours=1))
        gone = runner.deployments.forget(flow, KEPT, runner.now())
        context.log.info(f"compacted; {len(gone)} deployments that were given up are removed")

    graph = dg.GraphDefinition(name=f"{flow.name}_compact", node_defs=[compact])
    job = graph.to_job(
        executor_def=dg.in_process_executor,
        description=f"Joins the small files of {flow.name}'s tables, and removes what was "
        "replaced more than a week ago.",
    )
    status = dg.DefaultScheduleStatus
    return dg.ScheduleDefinition(
        job=job,
        cron_schedule=CRON[often],
        execution_timezone=flow.ticks.zone,
        default_status=status.RUNNING if runner.project.sensors_run else status.STOPPED,
    )


_HELP = "\nhelp: "
_SECONDS_TO_TELL = 30


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run in words: its flow, ticks (first and last key), cause and cure.

    `judged`: it would fail again, so the flow is stopped; otherwise it is tried again.
    """

    flow: str
    ticks: tuple[str, str] | None
    run: str
    judged: bool
    cause: str
    cure: str

    @property
    def says(self) -> str:
        """All of it, for a log."""
        return f"{self.flow}: {span(self.ticks)} failed: {self.cause}\n{self.cure} (run {self.run})"


def failed_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> FailedRun:
    said, _, cure = _message(instance, run).partition(_HELP)
    judged = is_judged(run)
    again = runs_it_again(flow_of(run))
    default = (
        f"repair the data or the program, then {again}; the flow is stopped until then"
        if judged
        else f"a sensor tries it again while `hydrotick dev` is open; {again} at once"
    )
    keys, cause = keys_of(run.tags), said.strip()
    if keys and keys[0] == keys[1]:
        # The run says which tick it is; of a range the failure does.
        cause = cause.removeprefix(f"{keys[0]}: ")
    return FailedRun(flow_of(run), keys, run.run_id, judged, cause, cure.strip() or default)


def failure_sensor(flows: Sequence[FlowAsset], project: ProjectSettings) -> dg.SensorDefinition:
    """Tells of every failed run of the flows: in the log, and as the settings ask for it."""
    names = {flow.name for flow in flows}

    @dg.run_failure_sensor(
        name="failed_ticks",
        description="Tells of failed ticks: in its log, and to HYDROTICK_FAILURE_COMMAND and "
        "HYDROTICK_FAILURE_WEBHOOK where they are set.",
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=30,
    )
    def failed_ticks(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if flow_of(context.dagster_run) not in names:
            return dg.SkipReason("it is no run of a flow")
        failed = failed_run(context.instance, context.dagster_run)
        context.log.error(failed.says)
        problems = tell(failed, project)
        if problems:
            raise RuntimeError("; ".join(problems))
        return None

    return failed_ticks


def tell(failed: FailedRun, project: ProjectSettings) -> list[str]:
    """Gives a failure to the command and to the webhook of the settings, as a JSON object.

    The command reads it from standard input, the webhook gets it as a POST. Both are tried; what
    did not work is returned in words.
    """
    body = json.dumps({**asdict(failed), "text": failed.says}).encode()
    problems = []
    if project.failure_command:
        try:
            words = shlex.split(project.failure_command)
            subprocess.run(
                words, input=body, check=True, capture_output=True, timeout=_SECONDS_TO_TELL
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            problems.append(f"HYDROTICK_FAILURE_COMMAND: {error}")
    if project.failure_webhook:
        try:
            post_json(project.failure_webhook, body, seconds=_SECONDS_TO_TELL)
        except (OSError, HTTPException, ValueError) as error:
            problems.append(f"HYDROTICK_FAILURE_WEBHOOK: {error}")
    return problems


def _message(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Innermost cause of the failed step's error, or else Dagster's message about the run."""
    for log in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        data = log.get_dagster_event().step_failure_data
        if data.user_failure_data is not None and data.user_failure_data.description:
            return data.user_failure_data.description
        error = data.error
        while error is not None and error.cause is not None:
            error = error.cause
        if error is not None:
            return error.message
    for log in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE):
        return log.get_dagster_event().message or ""
    return "the run failed"
