"""The commands that look after stored pipelines: compact, copy, reset, and `status --verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assets import ALL_ASSETS
from assets.spec import FlowAsset
from orchestration.arguments import flow_named, flow_parser
from orchestration.settings import project_settings

if TYPE_CHECKING:
    from hydro_core.spark.pipeline_verify import Verified
    from orchestration.runner import TickRunner


def compact(arguments: Sequence[str]) -> int:
    """Joins the small files of a flow's tables, and removes those that were replaced long ago."""
    parser = flow_parser("compact", compact.__doc__, ALL_ASSETS)
    parser.add_argument(
        "--keep-hours",
        type=int,
        default=7 * 24,
        metavar="N",
        help="going back to earlier ticks stays possible within these hours (a week)",
    )
    options = parser.parse_args(arguments)
    flow, runner = _opened(options.flow)
    if runner.deployments.serving(flow) is None:
        _say(f"{flow.name}: nothing to do")
        return 0
    runner.pipeline(flow).compact(options.keep_hours)
    keep = timedelta(hours=options.keep_hours)
    gone = runner.deployments.forget(flow, keep, runner.now())
    _say(f"{flow.name}: compacted")
    if gone:
        _say(f"  deployments that were given up before are removed: {', '.join(map(str, gone))}")
    return 0


def copy(arguments: Sequence[str]) -> int:
    """Copies a flow's tables and ledger to a directory as of its last commit; ticks may run."""
    parser = flow_parser("copy", copy.__doc__, ALL_ASSETS)
    parser.add_argument("to", metavar="DIR", type=Path, help="a directory that is not there yet")
    options = parser.parse_args(arguments)
    from hydro_core.spark.pipeline_copy import copy_pipeline

    flow, runner = _opened(options.flow)
    found = copy_pipeline(runner.directory(flow), options.to)
    last = flow.ticks.calendar.window(found.last).key
    _say(f"{flow.name}: copied up to tick {last}: {_counted(found)}, all read again")
    _say(f"To go back to it, put {options.to} in the place of {runner.directory(flow)}.")
    return 0


def reset(arguments: Sequence[str]) -> int:
    """Starts a flow over: removes its tables, and what Dagster has recorded of it."""
    parser = flow_parser("reset", reset.__doc__, ALL_ASSETS)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args(arguments)
    from orchestration.start_over import start_over, what_there_is

    flow, runner = _opened(options.flow)
    there = what_there_is(flow, runner)
    if not there:
        _say(f"{flow.name}: there is nothing to remove")
        return 0
    _say(f"{flow.name}: this removes")
    for line in there:
        _say(f"  {line}")
    _say("What has landed stays. There is no way back but a copy (`hydrotick copy`).")
    if not options.yes and not _agreed(flow.name):
        _say("Nothing was removed.")
        return 1
    start_over(flow, runner)
    _say(f"{flow.name}: starts over with its first tick")
    return 0


def print_verified(flows: Iterable[FlowAsset], runner: TickRunner, style: str) -> bool:
    """Says of each flow whether its tables are whole, as text or JSON; gives whether all are."""
    from hydro_core.spark.pipeline_verify import verify
    from orchestration.quality.facts import measure

    found = {flow.name: verify(runner.directory(flow), measure) for flow in flows}
    if style == "json":
        _say(json.dumps({"flows": [{"flow": name, **asdict(v)} for name, v in found.items()]}))
    else:
        for name, verified in found.items():
            _say(f"{name}: {_in_words(verified)}")
            for line in (*verified.problems, *verified.notes):
                _say(f"  {line}")
    return not any(verified.problems for verified in found.values())


def _in_words(found: Verified) -> str:
    if found.problems:
        return f"{len(found.problems)} problem(s)"
    return f"whole: {_counted(found)}" if found.last >= 0 else "nothing is committed"


def _counted(found: Verified) -> str:
    return (
        f"{found.tables:,} tables, {found.files:,} files, {found.rows:,} rows, "
        f"{found.bytes / 1e6:,.1f} MB"
    )


def _opened(name: str) -> tuple[FlowAsset, TickRunner]:
    from orchestration.runner import TickRunner

    return flow_named(name, ALL_ASSETS), TickRunner(project_settings())


def _agreed(name: str) -> bool:
    sys.stdout.write(f"Type {name} to go on: ")
    sys.stdout.flush()
    return sys.stdin.readline().strip() == name


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
