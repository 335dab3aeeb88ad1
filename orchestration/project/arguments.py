"""The words after a command that is about one flow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TextIO

from hydro_core.cli.output import add_format_argument
from hydro_core.errors import DataError, Diagnostic
from hydro_core.lang.similar import did_you_mean
from hydro_core.project.flow_asset import FlowAsset

from . import project
from .project import Project
from .settings import ProjectSettings


def flow_parser(command: str, says: str | None) -> argparse.ArgumentParser:
    """The parser of `hydrotick COMMAND FLOW`, to which the command adds its own options."""
    parser = argparse.ArgumentParser(prog=f"hydrotick {command}", description=says)
    parser.add_argument("flow", metavar="FLOW", help="a flow of the project")
    return parser


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declares `--format`."""
    add_format_argument(parser)


def told_to(options: argparse.Namespace) -> TextIO:
    """Where progress and questions go: JSON has standard output for itself."""
    return sys.stderr if options.format == "json" else sys.stdout


def parsed(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, FlowAsset, ProjectSettings]:
    """What the words of a command about one flow say, the flow, and the project's settings.

    Raises:
        HydroError: there is no project, or what it says of the flow is wrong.
    """
    options = parser.parse_args(arguments)
    found = project.current()
    return options, flow_named(options.flow, found, parser), found.settings


def flow_named(name: str, found: Project, parser: argparse.ArgumentParser) -> FlowAsset:
    """The flow of that name; without one, the command ends as misused.

    Raises:
        HydroError: what the project says of the flow is wrong.
    """
    flow = next((flow for flow in found.flows if flow.name == name), None)
    if flow is not None:
        return flow
    for broken in found.broken:
        if broken.name == name:
            raise broken.error
    there = ", ".join(found.names) or f"none in {found.settings.root}/assets"
    near = did_you_mean(name, found.names)
    return parser.error(f"there is no flow `{name}`{f': {near}' if near else ''} (flows: {there})")


def agreed(to: TextIO) -> bool:
    """Asks whether to go on, and gives the answer.

    Raises:
        DataError: there is nobody to ask (code `config`).
    """
    if not sys.stdin.isatty():
        raise DataError(
            Diagnostic(
                "config",
                "this is asked before it is done, and there is no terminal to ask at",
                help="give `--yes` to do it without a question",
            )
        )
    to.write("Go on? [y/N] ")
    to.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
