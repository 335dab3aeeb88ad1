"""The commands of the orchestrated side, as plug-ins of `hydrotick`: each takes the words after its
name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assets import ALL_ASSETS
from assets.spec import FlowAsset
from orchestration.settings import project_settings

if TYPE_CHECKING:
    from orchestration.readiness import Ready
    from orchestration.runner import TickRunner

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
    from orchestration.runner import TickRunner
    from orchestration.status import status as show_status

    return show_status(arguments, ALL_ASSETS, TickRunner(project_settings()))


def backfill(arguments: Sequence[str]) -> int:
    """Runs the open ticks of a flow, in order, as Dagster runs in this process."""
    parser = argparse.ArgumentParser(prog="hydrotick backfill", description=backfill.__doc__)
    parser.add_argument("flow", choices=[flow.name for flow in ALL_ASSETS])
    parser.add_argument(
        "--to", metavar="KEY", help="the last tick (default: the last one that may run)"
    )
    options = parser.parse_args(arguments)
    from orchestration.runner import TickRunner

    flow = next(flow for flow in ALL_ASSETS if flow.name == options.flow)
    runner = TickRunner(project_settings())
    ready, last = runner.ready(flow), None
    if options.to:
        window = flow.ticks.calendar.window_of(options.to)
        ready.refuse(window)
        last = window.tick
    return _backfill(flow, runner, ready, ready.until - 1 if last is None else last)


def _backfill(flow: FlowAsset, runner: TickRunner, ready: Ready, last: int) -> int:
    begun = runner.next_tick(flow)
    if begun > last:
        why = ready.why if begun >= ready.until else "later ticks were not asked for"
        committed = (
            f"the last one is {flow.ticks.calendar.window(begun - 1).key}; " if begun else ""
        )
        sys.stdout.write(
            f"{flow.name}: nothing is open: {begun:,} tick(s) are committed, {committed}{why}\n"
        )
        return 0
    from orchestration.ticking import run_ticks

    together, total = runner.project.range_ticks, last - begun + 1
    for done in run_ticks(flow, runner, last, lambda _: None, together=together):
        ticks = done.window.tick - done.first.tick + 1
        span = f"{done.first.key} to {done.window.key}" if ticks > 1 else done.window.key
        sys.stdout.write(
            f"{span}: {ticks} tick(s) committed in {done.seconds:.1f} s; "
            f"{done.window.tick - begun + 1:,} of {total:,} done\n"
        )
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
