"""`hydrotick plan`, `deploy`, `rollback`: what a changed program would do, doing it, and back."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TextIO

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, span

from ..deployment.changes import Change, change_of
from ..deployment.deploying import before, compare, roll_back
from ..deployment.deploying import deploy as take_over
from ..deployment.seams import DeployOptions
from ..project.arguments import add_format, agreed, flow_parser, parsed, told_to
from ..runner.runner import TickRunner
from .plan_shown import (
    as_json,
    as_text,
    first_as_json,
    first_as_text,
    nothing_as_json,
)

NOTHING, CHANGES = 0, 3
"""Exit codes of `plan`; 1 says that the program cannot be deployed."""


def plan(arguments: Sequence[str]) -> int:
    """Shows what deploying the program of a flow as it is now would do; nothing is done."""
    parser = flow_parser("plan", plan.__doc__)
    _add_options(parser)
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    runner = TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.first(flow)
        _show(options, lambda: first_as_json(flow, first), lambda: first_as_text(flow, first))
        return CHANGES
    found = _planned(flow, runner, options)
    if found is None:
        _show(options, lambda: nothing_as_json(flow, runner), lambda: _nothing(flow))
        return NOTHING
    _show(options, lambda: as_json(found, runner), lambda: as_text(found, runner))
    return NOTHING if found.is_nothing else CHANGES


def deploy(arguments: Sequence[str]) -> int:
    """Deploys the program of a flow as it is now: shows what that does, asks, and does it."""
    parser = flow_parser("deploy", deploy.__doc__)
    _add_options(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    runner = TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.prepared(flow)
        _show(options, lambda: first_as_json(flow, first), lambda: first_as_text(flow, first))
        return 0
    found = _planned(flow, runner, options)
    if found is None:
        _show(options, lambda: nothing_as_json(flow, runner), lambda: _nothing(flow))
        return 0
    # What was planned is told as it was, and not as it is when it is done.
    plan_of, to = as_json(found, runner), told_to(options)
    to.write(as_text(found, runner))
    if not options.yes and not agreed(to):
        _say("Nothing was changed.", to)
        return 1
    began = time.monotonic()
    commit = take_over(found, runner, _progress(flow, runner, began, to))
    _record(flow, runner)
    number = runner.deployments.prepared(flow).number
    spent = time.monotonic() - began
    said = f"{flow.name}: deployment {number} serves after {spent:.1f} s"
    _say(f"{said} (commit {commit.sequence})", to)
    _say("  Reload the code location in the Dagster UI to see its assets.", to)
    if options.format == "json":
        sys.stdout.write(
            json.dumps({**plan_of, "serves": number, "commit": commit.sequence}) + "\n"
        )
    return 0


def rollback(arguments: Sequence[str]) -> int:
    """Goes back to the deployment before, and computes the ticks since then by its program."""
    parser = flow_parser("rollback", rollback.__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    runner = TickRunner(settings)
    to = before(flow, runner)
    window = flow.ticks.calendar.window
    since = to.last - to.commit.last
    out = told_to(options)
    _say(f"{flow.name}: deployment {to.serving.number} → {to.target.number}", out)
    again = f"{window(to.commit.last + 1).key} to {window(to.last).key}" if since else "no tick"
    _say(
        f"  its tables are those of tick {window(to.commit.last).key}; {again} computed again", out
    )
    if not options.yes and not agreed(out):
        _say("Nothing was changed.", out)
        return 1
    began = time.monotonic()
    commit = roll_back(flow, runner, to, _progress(flow, runner, began, out))
    _record(flow, runner)
    spent = time.monotonic() - began
    _say(
        f"{flow.name}: deployment {to.target.number} serves again after {spent:.1f} s "
        f"(commit {commit.sequence})",
        out,
    )
    undeployed = runner.deployments.undeployed(flow).says
    if undeployed:
        _say(f"  {undeployed}: `hydrotick deploy {flow.name}` would deploy it again", out)
    if options.format == "json":
        done = {
            "flow": flow.name,
            "before": to.serving.number,
            "serves": to.target.number,
            "computed_again": since,
            "commit": commit.sequence,
        }
        sys.stdout.write(json.dumps(done) + "\n")
    return 0


def _record(flow: FlowAsset, runner: TickRunner) -> None:
    # Imported here: `plan` does without the second that Dagster takes.
    from .ticking import record_deployed

    record_deployed(flow, runner)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compare",
        metavar="N",
        type=_count,
        help="also run the last N ticks with the new program, and say how their outputs differ",
    )
    parser.add_argument(
        "--from-now",
        action="store_true",
        help="what has no landed past to be computed from starts empty",
    )
    past = parser.add_mutually_exclusive_group()
    past.add_argument(
        "--forward-only", action="store_true", help="changed outputs keep their past as it is"
    )
    past.add_argument(
        "--from", dest="first", metavar="KEY", help="the first tick of changed outputs to restate"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of ticks")
    return int(text)


def _planned(flow: FlowAsset, runner: TickRunner, options: argparse.Namespace) -> Change | None:
    first = flow.ticks.calendar.window_of(options.first) if options.first else None
    found = change_of(flow, runner, DeployOptions(first, options.forward_only, options.from_now))
    if found is None or options.compare is None:
        return found
    progress = _progress(flow, runner, time.monotonic(), sys.stderr)
    return replace(found, compared=compare(found, runner, options.compare, progress))


def _show(
    options: argparse.Namespace, shown: Callable[[], dict[str, Any]], text: Callable[[], str]
) -> None:
    sys.stdout.write(json.dumps(shown()) + "\n" if options.format == "json" else text())


def _nothing(flow: FlowAsset) -> str:
    return f"{flow.name}: nothing to deploy: the program is the one that serves\n"


def _progress(
    flow: FlowAsset, runner: TickRunner, began: float, to: TextIO | None = None
) -> Callable[[Sequence[TickWindow]], None]:
    total = runner.next_tick(flow)

    def computed(windows: Sequence[TickWindow]) -> None:
        spent = time.monotonic() - began
        done = f"{windows[-1].tick + 1:,} of {total:,}"
        _say(f"{span(w.key for w in windows)}: computed; {done} after {spent:.1f} s", to)

    return computed


def _say(text: str, to: TextIO | None = None) -> None:
    to = sys.stdout if to is None else to
    to.write(f"{text}\n")
    to.flush()
