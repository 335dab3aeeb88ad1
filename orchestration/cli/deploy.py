"""`hydrotick plan`, `deploy`, `rollback`: what a changed program would do, doing it, and back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hydro_core.cli.command import Asked
from hydro_core.cli.output import print_error
from hydro_core.project.flow_asset import FlowAsset

from ..project import project
from ..project.console import Console, asked_flow, telling_computed
from ..runner.ranges import OnComputed, with_another_jvm
from ..runner.runner import TickRunner
from ..takeover.changes import Change, DeployOptions, change_of, read_by
from ..takeover.deploying import before, compare, roll_back
from ..takeover.deploying import deploy as take_over
from .plan_shown import (
    as_json,
    as_text,
    first_as_json,
    first_as_text,
    nothing_as_json,
)

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.commit import Commit

NOTHING, CHANGES = 0, 3
"""Exit codes of `plan`; 1 says that the program cannot be deployed."""


def plan(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.first(flow)
        console.give(first_as_json(flow, first), first_as_text(flow, first))
        return CHANGES
    found = _planned(flow, runner, options)
    if found is None:
        console.give(nothing_as_json(flow, runner), _nothing(flow))
        return NOTHING
    console.give(as_json(found, runner), as_text(found, runner))
    return NOTHING if found.resumes_alike else CHANGES


def deploy(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.prepared(flow)
        console.give(first_as_json(flow, first), first_as_text(flow, first))
        return 0
    found = _planned(flow, runner, options)
    if found is None:
        console.give(nothing_as_json(flow, runner), _nothing(flow))
        return 0
    # What was planned is told as it was, and not as it is when it is done.
    plan_of = as_json(found, runner)
    console.say(as_text(found, runner).rstrip())
    if not console.agreed():
        return 1
    commit, spent = _done(flow, runner, console, partial(take_over, found, runner))
    number = runner.deployments.prepared(flow).number
    said = f"{flow.name}: deployment {number} serves after {spent:.1f} s"
    console.say(f"{said} (commit {commit.sequence})")
    console.say("  Reload the code location in the Dagster UI to see its assets.")
    console.give({**plan_of, "serves": number, "commit": commit.sequence})
    return 0


def rollback(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    to = before(flow, runner)
    window = flow.ticks.calendar.window
    since = to.last + 1 - to.first
    console.say(f"{flow.name}: deployment {to.serving.number} → {to.target.number}")
    again = f"{window(to.first).key} to {window(to.last).key}" if since else "no tick"
    tables = f"its tables are those of tick {window(to.commit.last).key}"
    console.say(f"  {tables}; {again} computed again")
    if to.first <= to.commit.last:
        first, last = window(to.first).key, window(to.commit.last).key
        console.say(
            f"  {first} to {last} were corrected since, so its tables of these do not serve"
        )
    if not console.agreed():
        return 1
    commit, spent = _done(flow, runner, console, partial(roll_back, flow, runner, to))
    serves = f"deployment {to.target.number} serves again after {spent:.1f} s"
    console.say(f"{flow.name}: {serves} (commit {commit.sequence})")
    undeployed = runner.deployments.undeployed(flow).says
    if undeployed:
        console.say(f"  {undeployed}: `hydrotick deploy {flow.name}` would deploy it again")
    console.give(
        {
            "flow": flow.name,
            "before": to.serving.number,
            "serves": to.target.number,
            "computed_again": since,
            "commit": commit.sequence,
        }
    )
    return 0


def _done(
    flow: FlowAsset, runner: TickRunner, console: Console, work: Callable[[OnComputed], Commit]
) -> tuple[Commit, float]:
    """Has another deployment serve; gives the commit that did it, and the seconds that it took."""
    # Imported here: `plan` does without the second that Dagster takes.
    from .ticking import record_deployed

    began = time.monotonic()
    progress = telling_computed(console.say, runner.next_tick(flow))
    commit = with_another_jvm(lambda: work(progress), console.say)
    record_deployed(flow, runner)
    return commit, time.monotonic() - began


def _planned(flow: FlowAsset, runner: TickRunner, options: Asked) -> Change | None:
    first = flow.ticks.calendar.window_of(options.first) if options.first else None
    found = change_of(flow, runner, DeployOptions(first, options.forward_only, options.from_now))
    if found is not None and any(o.change == "gone" for o in found.difference.outputs.values()):
        found = replace(found, read_by=read_by(found, project.current().flows))
    if found is None or options.compare is None:
        return found
    progress = telling_computed(print_error, runner.next_tick(flow))
    ticks: int = options.compare
    compared = with_another_jvm(lambda: compare(found, runner, ticks, progress), print_error)
    return replace(found, compared=compared)


def _nothing(flow: FlowAsset) -> str:
    return f"{flow.name}: nothing to deploy: the program is the one that serves\n"
