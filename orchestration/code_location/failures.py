"""Why a run failed and what to do about it, and who is told."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import span

from ..instance.run_tags import flow_of, is_judged, keys_of, runs_it_again
from ..project.settings import ProjectSettings

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
            _post(project.failure_webhook, body)
        except (OSError, ValueError) as error:
            problems.append(f"HYDROTICK_FAILURE_WEBHOOK: {error}")
    return problems


def _post(url: str, body: bytes) -> None:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"`{url}` is no http or https address")
    request = urllib.request.Request(  # noqa: S310 - the schemes are those above
        url, body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_SECONDS_TO_TELL):  # noqa: S310
        pass


def _message(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """What the step that failed raised, its innermost cause; else what Dagster says of the run."""
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
