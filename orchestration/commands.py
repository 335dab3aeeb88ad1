"""The commands of the orchestrated side, as plug-ins of `hydrotick`: each takes the words after its
name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from assets import ALL_ASSETS
from orchestration.settings import project_settings

# Dagster takes seconds to import, so each command imports what it needs when it runs.


def demo(arguments: Sequence[str]) -> int:
    """Runs the first days of the NYC flights of 2013 through Dagster, Spark and Delta."""
    from orchestration.demo import demo as run_demo

    return run_demo(arguments)


def dev(arguments: Sequence[str]) -> int:
    """Opens the Dagster UI with its daemon, on this machine only."""
    from orchestration.dev import dev as run_dev

    return run_dev(arguments)


def status(arguments: Sequence[str]) -> int:
    """Shows how far every flow is: committed ticks, what is open, runs, failed, and comes next."""
    from orchestration.status import status as show_status

    return show_status(arguments)


def backfill(arguments: Sequence[str]) -> int:
    """Runs the open ticks of a flow, in order, as Dagster runs in this process."""
    parser = argparse.ArgumentParser(prog="hydrotick backfill", description=backfill.__doc__)
    parser.add_argument("flow", choices=[flow.name for flow in ALL_ASSETS])
    parser.add_argument("--to", metavar="KEY", help="the last tick (default: the last closed one)")
    options = parser.parse_args(arguments)
    from orchestration.runner import TickRunner
    from orchestration.ticks import TickAxis

    flow = next(flow for flow in ALL_ASSETS if flow.name == options.flow)
    axis = TickAxis(flow.ticks)
    try:
        last = axis.window_of(options.to).tick if options.to else axis.closed(datetime.now(UTC)) - 1
    except ValueError as error:
        parser.error(str(error))
    from orchestration.ticking import run_ticks

    runner = TickRunner(project_settings())
    together = runner.project.range_ticks
    for done in run_ticks(flow, runner, last, lambda _: None, together=together):
        ticks = done.window.tick - done.first.tick + 1
        span = f"{done.first.key} to {done.window.key}" if ticks > 1 else done.window.key
        sys.stdout.write(f"{span}: {ticks} tick(s) committed in {done.seconds:.1f} s\n")
        sys.stdout.flush()
    return 0


def land(arguments: Sequence[str]) -> int:
    """Lands the data that a flow of this project brings with it."""
    landings = {flow.name: flow.land for flow in ALL_ASSETS if flow.land is not None}
    parser = argparse.ArgumentParser(prog="hydrotick land", description=land.__doc__)
    parser.add_argument("flow", choices=sorted(landings))
    options = parser.parse_args(arguments)
    directory: Path = project_settings().landing
    landings[options.flow](directory)
    sys.stdout.write(f"landed below {directory / options.flow}\n")
    return 0


def compact(arguments: Sequence[str]) -> int:
    """Joins the small files of a flow's tables, and removes those that were replaced long ago."""
    parser = argparse.ArgumentParser(prog="hydrotick compact", description=compact.__doc__)
    parser.add_argument("flow", choices=[flow.name for flow in ALL_ASSETS])
    parser.add_argument(
        "--keep-hours",
        type=int,
        default=7 * 24,
        help="going back to earlier ticks stays possible within these hours (a week)",
    )
    options = parser.parse_args(arguments)
    from orchestration.runner import TickRunner

    flow = next(flow for flow in ALL_ASSETS if flow.name == options.flow)
    done = TickRunner(project_settings()).pipeline(flow).compact(options.keep_hours)
    sys.stdout.write(
        f"{flow.name}: nothing to do\n" if done is None else f"{flow.name}: compacted\n"
    )
    return 0
