"""`hydrotick`: finds the command, and is where errors that a user is meant to read end.

A command is a function of the words after its name, which gives the exit code; the first line of
its docstring lists it. Those of the core are modules here, those of other packages are entry points
`hydrotick.commands`.
"""

from __future__ import annotations

import argparse
import ast
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from hydro_core.cli import output
from hydro_core.errors import HydroError
from hydro_core.lang.similar import did_you_mean
from hydro_core.machine.faults import fault_of

PLUGINS = "hydrotick.commands"
DEBUG = "--debug"
"""Wherever it stands: an error shows where it came from, in Python and in Java."""

COMMANDS: Mapping[str, EntryPoint] = MappingProxyType(
    {
        name: EntryPoint(name, f"hydro_core.cli.{name}:command", PLUGINS)
        for name in (
            *("run", "check", "optimize", "partition", "lineage", "graph", "rules", "ready"),
        )
    }
)
"""The commands of the core."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives 0, 1 when the program or data is at fault, 2 on misuse."""
    try:
        return _run(arguments)
    finally:
        output.write("")  # what a library printed, such as help, has a reader or has none, too


def _run(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words
    words = [word for word in words if word != DEBUG]
    there = commands()
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None and words[0] == name and name in there:
        return _guarded(lambda: _called(there[name], words[1:]), words, debug)
    parser = _parser(there)
    if name is not None and words[0] == name:
        near = did_you_mean(name, there)
        parser.error(f"there is no command `{name}`" + (f": {near}" if near else ""))
    parser.parse_args(words)
    parser.print_help()
    return 2


def commands() -> Mapping[str, EntryPoint]:
    """The commands that there are, by name: those of the core, then others."""
    others = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    return {**COMMANDS, **{point.name: point for point in others}}


def _guarded(run: Callable[[], int], words: Sequence[str], debug: bool) -> int:
    try:
        return run()
    except HydroError as error:
        if debug:
            output.print_error("".join(traceback.format_exception(error)))
        output.print_problem(error, _style(words))
        return 1
    except KeyboardInterrupt:
        output.print_error("interrupted")
        return 130
    except Exception as error:
        told = fault_of(error)
        if told is None or debug:
            raise
        output.print_problem(told, _style(words))
        return 1


def _style(words: Sequence[str]) -> str:
    """The `--format` that was asked for: errors follow it, whatever the command."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if (word == "--format" and after == "json") or word == "--format=json":
            return "json"
    return "text"


def _called(point: EntryPoint, words: Sequence[str]) -> int:
    try:
        command = point.load()
    except (ImportError, AttributeError) as problem:
        cure = "install the package that brings it again: what is installed is older or newer"
        message = f"the command `{point.name}` cannot be loaded: {problem}"
        raise HydroError.of("config", message, help=cure) from problem
    return int(command(list(words)) or 0)


def _parser(there: Mapping[str, EntryPoint]) -> argparse.ArgumentParser:
    """The parser of the line before a command, whose help lists the commands."""
    parser = argparse.ArgumentParser(
        prog="hydrotick",
        description="Stateful dataflow programs, run tick by tick.",
        epilog="`hydrotick COMMAND --help` says what a command takes. With `--debug`, an error "
        "also shows where it came from, in Python and in Spark.",
    )
    listed = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, point in there.items():
        listed.add_parser(name, help=_says(point), add_help=False)
    return parser


def _says(point: EntryPoint) -> str:
    """The first line of a command's docstring."""
    try:
        described = _documented(point) or str(point.load().__doc__ or f"from {point.module}")
    except (ImportError, AttributeError) as problem:
        return f"cannot be loaded: {problem}"
    first = described.strip().partition("\n")[0].rstrip(".")
    return f"{first[:1].lower()}{first[1:]}"


def _documented(point: EntryPoint) -> str | None:
    """The docstring as it stands in the command's module, which is not run: that takes seconds."""
    found = find_spec(point.module)
    if found is None or not (found.origin or "").endswith(".py"):
        return None
    for node in ast.parse(Path(str(found.origin)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            return ast.get_docstring(node)
    return None


if __name__ == "__main__":
    sys.exit(main())
