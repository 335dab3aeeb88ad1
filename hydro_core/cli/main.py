"""`hydrotick`: finds the command, and is where errors that a user is meant to read end.

A command is a module with `add_arguments(parser)` and `run(arguments)`, which gives the exit
code, and maybe `misuse(arguments)`, which says what is wrong with the arguments together.
Commands of other packages are entry points `hydrotick.commands`: functions of the arguments after
the command's name, listed by the first line of their docstring.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from hydro_core.cli import output
from hydro_core.errors import Diagnostic, HydroError
from hydro_core.faults import fault_of
from hydro_core.lang.similar import did_you_mean

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "run": "runs a program on ticks and prints its outputs",
        "check": "parses, types and stratifies a program, or every flow of the project",
        "optimize": "the optimized program, its cost before and after",
        "partition": "how a program can be cut into shards",
        "lineage": "which input fields an output field comes from",
        "graph": "draws a program with its strata",
        "ready": "makes ready what Spark needs, once: a Java, jars, an archive of its classes",
    }
)
"""The commands of the core; each is a module of its own here, as soon as it exists."""

PLUGINS = "hydrotick.commands"
DEBUG = "--debug"
"""Wherever it stands: an error shows where it came from, in Python and in Java."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives 0, 1 when the program or data is at fault, 2 on misuse."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words
    words = [word for word in words if word != DEBUG]
    plugins = {point.name: point for point in entry_points(group=PLUGINS)}
    available = [name for name in COMMANDS if find_spec(f"hydro_core.cli.{name}")]
    command = next((word for word in words if not word.startswith("-")), None)
    if words and words[0] == command and command in plugins:
        return _guarded(lambda: _plugin(plugins[str(command)], words[1:]), words, debug)
    parser = _parser(available, plugins, command)
    if words and words[0] == command and command not in available:
        near = did_you_mean(command, [*available, *plugins])
        parser.error(f"there is no command `{command}`" + (f": {near}" if near else ""))
    parsed = parser.parse_args(words)
    if parsed.command is None:
        parser.print_help()
        return 2
    module = importlib.import_module(f"hydro_core.cli.{parsed.command}")
    wrong = module.misuse(parsed) if hasattr(module, "misuse") else None
    if wrong:
        parser.error(f"{parsed.command}: {wrong}")
    return _guarded(lambda: int(module.run(parsed)), words, debug)


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


def _plugin(point: EntryPoint, words: Sequence[str]) -> int:
    try:
        command = point.load()
    except (ImportError, AttributeError) as problem:
        cure = "install the package that brings it again: what is installed is older or newer"
        message = f"the command `{point.name}` cannot be loaded: {problem}"
        raise HydroError(Diagnostic("config", message, help=cure)) from problem
    return int(command(list(words)) or 0)


def _parser(
    available: Sequence[str], plugins: Mapping[str, EntryPoint], command: str | None
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hydrotick",
        description="Stateful dataflow programs, run tick by tick.",
        epilog="`hydrotick COMMAND --help` says what a command takes. With `--debug`, an error "
        "also shows where it came from, in Python and in Spark.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in available:
        described = COMMANDS[name]
        sub = commands.add_parser(
            name, help=described, description=f"{described[0].upper()}{described[1:]}."
        )
        if name == command:
            # Only the command at hand is imported: the others may bring half the world along.
            importlib.import_module(f"hydro_core.cli.{name}").add_arguments(sub)
    for name in sorted(plugins):
        says = _says(plugins[name]) if command is None else None
        commands.add_parser(name, help=says, add_help=False)
    return parser


def _says(point: EntryPoint) -> str:
    """The first line of a plug-in's docstring."""
    try:
        described = _documented(point) or str(point.load().__doc__ or f"from {point.module}")
    except (ImportError, AttributeError) as problem:
        return f"cannot be loaded: {problem}"
    first = described.strip().partition("\n")[0].rstrip(".")
    return f"{first[:1].lower()}{first[1:]}"


def _documented(point: EntryPoint) -> str | None:
    """The docstring as it stands in the plug-in's module, which is not run: that takes seconds."""
    found = find_spec(point.module)
    if found is None or not (found.origin or "").endswith(".py"):
        return None
    for node in ast.parse(Path(str(found.origin)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            return ast.get_docstring(node)
    return None


if __name__ == "__main__":
    sys.exit(main())
