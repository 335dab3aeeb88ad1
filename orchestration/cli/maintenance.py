"""The commands that look after stored pipelines: compact, copy, reset, and `status --verify`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from hydro_core.project.flow_asset import FlowAsset

from ..project.arguments import add_format, flow_parser, parsed, told_to
from ..project.settings import ProjectSettings

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.verify import Verified

    from ..flows.flows import Flows
    from ..runner.runner import TickRunner


def compact(arguments: Sequence[str]) -> int:
    """Joins the small files of a flow's tables, and removes those that were replaced long ago."""
    parser = flow_parser("compact", compact.__doc__)
    parser.add_argument(
        "--keep-hours",
        type=int,
        default=7 * 24,
        metavar="N",
        help="going back to earlier ticks stays possible within these hours (a week)",
    )
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    runner = _runner(settings)
    if runner.deployments.serving(flow) is None:
        _told(options, f"{flow.name}: nothing to do", {"flow": flow.name, "compacted": False})
        return 0
    runner.pipeline(flow).compact(options.keep_hours)
    keep = timedelta(hours=options.keep_hours)
    gone = runner.deployments.forget(flow, keep, runner.now())
    said = f"{flow.name}: compacted"
    if gone:
        listed = ", ".join(map(str, gone))
        said += f"\n  deployments that were given up before are removed: {listed}"
    done = {"flow": flow.name, "compacted": True, "removed_deployments": list(gone)}
    _told(options, said, done)
    return 0


def copy(arguments: Sequence[str]) -> int:
    """Copies a flow's tables and ledger to a directory as of its last commit; ticks may run."""
    parser = flow_parser("copy", copy.__doc__)
    parser.add_argument("to", metavar="DIR", type=Path, help="a directory that is not there yet")
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    from hydro_core.spark.pipeline.copy import copy_pipeline

    runner = _runner(settings)
    found = copy_pipeline(runner.directory(flow), options.to)
    last = flow.ticks.calendar.window(found.last).key
    said = f"{flow.name}: copied up to tick {last}: {_counted(found)}, all read again\n"
    said += f"To go back to it, put {options.to} in the place of {runner.directory(flow)}."
    _told(options, said, {"flow": flow.name, "tick": last, "to": str(options.to), **asdict(found)})
    return 0


def reset(arguments: Sequence[str]) -> int:
    """Starts a flow over: removes its tables, and what Dagster has recorded of it."""
    parser = flow_parser("reset", reset.__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    from .start_over import start_over, what_there_is

    runner = _runner(settings)
    there = what_there_is(flow, runner)
    if not there:
        nothing = f"{flow.name}: there is nothing to remove"
        _told(options, nothing, {"flow": flow.name, "removed": []})
        return 0
    to = told_to(options)
    _say(f"{flow.name}: this removes", to)
    for line in there:
        _say(f"  {line}", to)
    _say("What has landed stays. There is no way back but a copy (`hydrotick copy`).", to)
    if not options.yes and not _agreed(flow.name, to):
        _say("Nothing was removed.", to)
        return 1
    start_over(flow, runner)
    said = f"{flow.name}: starts over with its first tick"
    _told(options, said, {"flow": flow.name, "removed": there})
    return 0


def print_verified(asked: Iterable[FlowAsset], flows: Flows, style: str) -> bool:
    """Says of each flow whether its tables are whole, as text or JSON; gives whether all are."""
    from hydro_core.spark.pipeline.verify import verify

    from ..quality.facts import measure

    found = {flow.name: verify(flows.directory(flow), measure) for flow in asked}
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


def _runner(settings: ProjectSettings) -> TickRunner:
    from ..runner.runner import TickRunner

    return TickRunner(settings)


def _agreed(name: str, to: TextIO) -> bool:
    to.write(f"Type {name} to go on: ")
    to.flush()
    return sys.stdin.readline().strip() == name


def _told(options: argparse.Namespace, said: str, done: Mapping[str, object]) -> None:
    """Says what was done, in words or as JSON."""
    _say(json.dumps(done) if options.format == "json" else said)


def _say(text: str, to: TextIO | None = None) -> None:
    to = sys.stdout if to is None else to
    to.write(f"{text}\n")
    to.flush()
