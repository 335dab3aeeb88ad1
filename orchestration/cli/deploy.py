"""`hydrotick plan`, `deploy`, `rollback`: what a changed program does, doing it, and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result, print_error
from hydro_core.project.flow_asset import FlowAsset

from ..deploy.planning import DeployOptions, DeployPlan, plan_deployment, readers_of_dropped
from ..deploy.report import PlanReport, report_of_first, report_of_nothing, report_of_plan
from ..deploy.switch import compare, predecessor, roll_back
from ..deploy.switch import deploy as switch_to
from ..project import project
from ..project.console import Console, asked_flow, telling_computed
from ..runner.correction import OnComputed, with_another_jvm
from ..runner.runner import TickRunner

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.records import Commit


NOTHING, CHANGES = 0, 3
"""Exit codes of `plan`; 1 says that the program cannot be deployed."""


def plan(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    planned, report = _planned(flow, TickRunner(settings), options)
    changes = report.active is None if planned is None else not planned.changes_nothing
    return Result(report, str(report), CHANGES if changes else NOTHING)


def deploy(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    planned, report = _planned(flow, runner, options, write=True)
    if planned is None:
        return Result(report, str(report))
    console.say(str(report).rstrip())
    if not console.agreed():
        return Result(code=1)
    commit, spent = _switched(flow, runner, console, partial(switch_to, planned, runner))
    number = runner.deployments.prepare(flow).number
    active = f"{flow.name}: deployment {number} is active after {spent:.1f} s"
    console.say(f"{active} (commit {commit.sequence})")
    console.say("  Reload the code location in the Dagster UI to see its assets.")
    return Result({**report.as_json(), "serves": number, "commit": commit.sequence})


def rollback(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    to = predecessor(flow, runner)
    window = flow.ticks.calendar.window
    since = to.last + 1 - to.first
    console.say(f"{flow.name}: deployment {to.active.number} → {to.target.number}")
    again = f"{window(to.first).key} to {window(to.last).key}" if since else "no tick"
    tables = f"its tables are those of tick {window(to.commit.last).key}"
    console.say(f"  {tables}; {again} computed again")
    if to.first <= to.commit.last:
        first, last = window(to.first).key, window(to.commit.last).key
        console.say(
            f"  {first} to {last} were corrected since, so its tables of these do not serve"
        )
    if not console.agreed():
        return Result(code=1)
    commit, spent = _switched(flow, runner, console, partial(roll_back, flow, runner, to))
    active = f"deployment {to.target.number} is active again after {spent:.1f} s"
    console.say(f"{flow.name}: {active} (commit {commit.sequence})")
    undeployed = runner.deployments.undeployed(flow).says
    if undeployed:
        console.say(f"  {undeployed}: `hydrotick deploy {flow.name}` would deploy it again")
    return Result(
        {
            "flow": flow.name,
            "before": to.active.number,
            "serves": to.target.number,
            "computed_again": since,
            "commit": commit.sequence,
        }
    )


def _switched(
    flow: FlowAsset, runner: TickRunner, console: Console, work: Callable[[OnComputed], Commit]
) -> tuple[Commit, float]:
    """Activates another deployment; gives the commit that did it, and the seconds that it took."""
    # Imported here: `plan` does without the second that Dagster takes.
    from .backfill import record_deployed

    began = time.monotonic()
    progress = telling_computed(console.say, runner.next_tick(flow))
    commit = with_another_jvm(lambda: work(progress), console.say)
    record_deployed(flow, runner)
    return commit, time.monotonic() - began


def _planned(
    flow: FlowAsset, runner: TickRunner, options: Asked, *, write: bool = False
) -> tuple[DeployPlan | None, PlanReport]:
    """The plan with its report; None where no deployment is active, or nothing changes.

    `write`: whether a draft that the first tick activates is written.
    """
    if runner.deployments.active(flow) is None:
        return None, report_of_first(flow, runner.deployments.prepare(flow, write=write))
    first = flow.ticks.calendar.window_of(options.first) if options.first else None
    asked = DeployOptions(first, options.forward_only, options.from_now)
    planned = plan_deployment(flow, runner, asked)
    if planned is None:
        return None, report_of_nothing(flow, runner)
    if any(output.change == "gone" for output in planned.difference.outputs.values()):
        readers = readers_of_dropped(planned, project.current().flows)
        planned = replace(planned, read_by=readers)
    if options.compare is not None:
        progress = telling_computed(print_error, runner.next_tick(flow))
        work = partial(compare, planned, runner, options.compare, progress)
        planned = replace(planned, compared=with_another_jvm(work, print_error))
    return planned, report_of_plan(planned, runner)
