"""`hydrotick`: finds the command, and is where errors that a user is meant to read end.

Commands are entries of tables: the core's here, those of other packages are what entry points
`hydrotick.commands` give, a tuple of commands each.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import get_args

from hydro_core.cli import output
from hydro_core.cli.command import Command, Topic
from hydro_core.cli.table import COMMANDS
from hydro_core.errors import HydroError
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.faults import fault_of

PLUGINS = "hydrotick.commands"
DEBUG = "--debug"
"""Wherever it stands: an error shows where it came from, in Python and in Java."""

_USAGE = "usage: hydrotick [-h] COMMAND ...\n"
_INDENT = 15
"""Where the sentences about commands begin in the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives 0, 1 when the program or data is at fault, 2 on misuse."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        debug = DEBUG in words
        words = [word for word in words if word != DEBUG]
        return _guarded(lambda: run_command(words), words, debug)
    finally:
        output.write("")  # what a library printed, such as help, has a reader or has none, too


def run_command(words: Sequence[str]) -> int:
    """Runs the command that the first word names on the others; gives the exit code.

    Raises:
        HydroError: what a user is to read.
        SystemExit: the words are misuse, or help was asked for.
    """
    if not words:
        output.write(_help())
        return 2
    name, *after = words
    own = next((command for command in COMMANDS if command.name == name), None)
    command = own or commands().get(name)
    if command is not None:
        return command.called(after)
    if name in ("-h", "--help"):
        output.write(_help())
        raise SystemExit(0)
    output.print_error(f"{_USAGE}hydrotick: error: {_unknown(name)}")
    raise SystemExit(2)


def commands() -> Mapping[str, Command]:
    """The commands that there are, by name: those of the core, then others."""
    tables = (COMMANDS, *(found for _, found in _tables() if not isinstance(found, Exception)))
    return {command.name: command for table in tables for command in table}


def _tables() -> Iterator[tuple[str, Sequence[Command] | Exception]]:
    """By the name of each package's entry point its commands, or why they cannot be loaded."""
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name):
        try:
            yield point.name, point.load()
        except (ImportError, AttributeError) as problem:
            yield point.name, problem


def _unknown(name: str) -> str:
    near = "" if name.startswith("-") else did_you_mean(name, commands())
    if name.startswith("-"):
        return f"there is no option `{name}` before a command"
    return f"there is no command `{name}`" + (f": {near}" if near else "")


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


def _help() -> str:
    """Help of `hydrotick`: the commands, by topic."""
    width = shutil.get_terminal_size().columns - 2
    there = commands()
    parts = [f"{_USAGE}\nStateful dataflow programs, run tick by tick."]
    for about in get_args(Topic):
        listed = [_listed(one, width) for one in there.values() if one.about == about]
        parts.append("\n".join([f"{about}:", *listed]))
    parts += [
        f"The commands `{name}` cannot be loaded: {found}"
        for name, found in _tables()
        if isinstance(found, Exception)
    ]
    parts.append(
        textwrap.fill(
            "`hydrotick COMMAND --help` says what a command takes. With `--debug`, an error also "
            "shows where it came from, in Python and in Spark.",
            width,
        )
    )
    return "\n\n".join(parts) + "\n"


def _listed(command: Command, width: int) -> str:
    says = f"{command.does[:1].lower()}{command.does[1:].rstrip('.')}"
    first = f"    {command.name} ".ljust(_INDENT)
    return textwrap.fill(f"{first}{says}", width, subsequent_indent=" " * _INDENT)


if __name__ == "__main__":
    sys.exit(main())
