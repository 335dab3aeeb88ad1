"""The words after a command that is about one flow."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from hydro_core.cli.output import add_format_argument
from hydro_core.lang.similar import did_you_mean
from hydro_core.project.flow_asset import FlowAsset

from . import project
from .logs import open_logs
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


def number_of(what: str, least: int = 1) -> Callable[[str], int]:
    """The type of an argument that is a whole number."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}")
        return int(text)

    return number


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Declares `--yes`."""
    parser.add_argument("--yes", action="store_true", help="do not ask")


def parsed(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, FlowAsset, ProjectSettings]:
    """What the words of a command about one flow say, the flow, and the project's settings.

    All of these commands take `--format`.

    Raises:
        HydroError: there is no project, or what it says of the flow is wrong.
    """
    add_format(parser)
    options = parser.parse_args(arguments)
    found = project.current()
    open_logs(found.settings.log_format)
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
