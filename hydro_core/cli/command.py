"""A command as a value: its words, what it needs, whether it writes, its examples.

Parser, help, completion, page and tests are made of it. The module that runs it is imported when it
is called, and not before: it may take seconds.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from hydro_core.cli.output import Result, print_result
from hydro_core.errors import HydroError

Topic = Literal["A program by itself", "A project", "Ticks", "What is deployed", "Tables"]
Prerequisite = Literal["nothing", "a program", "a project"]
Asked = argparse.Namespace
"""Parsed arguments of a command line, by their names."""


class MisuseError(Exception):
    """The words after a command do not go together: its usage is shown, and the exit code is 2."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that a command takes: an option if its name begins with `--`, else one by its place.

    Args:
        name: as people read it: `--tick`, `FLOW`.
        help: what it says of itself.
        value: what the value of an option is called; an option without one and without choices is
            a switch.
        type: what makes the value of the text; what it raises is told as misuse.
        choices: the values that there are.
        default: the value where nothing is given.
        repeated: it may be given several times, or none, and is a list.
        optional: a word that may be left out.
        rest: this word and all after it, options too, which are a list.
        required: an option that may not.
        dest: its name among what was asked; empty: that of `name`, in small letters.
        instead: the name of what only one argument may be given of, as for `--from`.
    """

    name: str
    help: str
    value: str = ""
    type: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    repeated: bool = False
    optional: bool = False
    rest: bool = False
    required: bool = False
    dest: str = ""
    instead: str = ""

    @property
    def is_option(self) -> bool:
        """True for an option, False for a positional argument."""
        return self.name.startswith("--")

    @property
    def is_switch(self) -> bool:
        """True for an option without a value."""
        return self.is_option and not self.value and not self.choices

    def declare(self, parser: argparse._ActionsContainer) -> None:
        dest = self.dest or self.name.removeprefix("--").replace("-", "_").lower()
        if self.is_switch:
            parser.add_argument(self.name, dest=dest, action="store_true", help=self.help)
            return
        found: dict[str, Any] = {"help": self.help, "default": self.default}
        found |= {"type": self.type} if self.type is not None else {}
        found |= {"choices": self.choices} if self.choices else {}
        if not self.is_option:
            found |= {} if self.choices else {"metavar": self.name}
            found |= {"nargs": self._nargs} if self._nargs else {}
            parser.add_argument(dest, **found)
            return
        found |= {"metavar": self.value} if self.value else {}
        found |= {"action": "append", "default": []} if self.repeated else {}
        parser.add_argument(self.name, dest=dest, required=self.required, **found)

    @property
    def _nargs(self) -> str:
        if self.rest:
            return argparse.REMAINDER
        return "*" if self.repeated else "?" if self.optional else ""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of `hydrotick`.

    Args:
        name: the word after `hydrotick`.
        does: the sentence that lists it.
        run: `module:function`, a function of the parsed arguments to the `Result`.
        about: the part of the page of commands that it stands in.
        arguments: in the order of the page.
        examples: command lines, without `hydrotick`.
        needs: what has to be there.
        writes: whether it changes the project that it is called in, or its tables.
        more: what else is to be said of it.
        ends: exit codes that mean more than success, failure and misuse.
    """

    name: str
    does: str
    run: str
    about: Topic
    arguments: tuple[Word, ...]
    examples: tuple[str, ...]
    needs: Prerequisite = "a project"
    writes: bool = False
    more: str = ""
    ends: tuple[tuple[int, str], ...] = ()

    def parser(self) -> argparse.ArgumentParser:
        """Parser of the words after its name."""
        width = shutil.get_terminal_size().columns - 2
        parser = argparse.ArgumentParser(
            prog=f"hydrotick {self.name}",
            description=textwrap.fill(self.does, width),
            epilog="\n\n".join(self._epilog(width)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        instead: dict[str, argparse._ActionsContainer] = {}
        for argument in self.arguments:
            of: argparse._ActionsContainer = parser
            if argument.instead:
                if argument.instead not in instead:
                    instead[argument.instead] = parser.add_mutually_exclusive_group()
                of = instead[argument.instead]
            argument.declare(of)
        return parser

    def called(self, words: Sequence[str]) -> int:
        """Runs it on the words after its name and prints the result; gives the exit code.

        Raises:
            HydroError: the program, the data or the project is at fault, or the command cannot be
                loaded (code `config`).
            SystemExit: the words are none that it takes.
        """
        parser = self.parser()
        asked = parser.parse_args(list(words))
        try:
            return print_result(self._loaded()(asked), getattr(asked, "format", "text") or "text")
        except MisuseError as misuse:
            parser.error(str(misuse))

    def _loaded(self) -> Callable[[Asked], Result]:
        module, _, function = self.run.partition(":")
        try:
            found: Callable[[Asked], Result] = getattr(import_module(module), function)
        except (ImportError, AttributeError) as problem:
            cure = "install the package that brings it again: what is installed is older or newer"
            message = f"the command `{self.name}` cannot be loaded: {problem}"
            raise HydroError.of("config", message, help=cure) from problem
        return found

    def _epilog(self, width: int) -> Iterator[str]:
        if self.more:
            yield textwrap.fill(self.more, width)
        if self.ends:
            ends = (
                textwrap.fill(f"  {code}  {means}", width, subsequent_indent="     ")
                for code, means in self.ends
            )
            yield "\n".join(["exit codes:", *ends])
        yield "\n".join(["for example:", *(f"  hydrotick {line}" for line in self.examples)])


def number_of(what: str, least: int = 1) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}")
        return int(text)

    return number


def number_or(*words: str) -> Callable[[str], str]:
    def known(text: str) -> str:
        if text not in words and not text.isdecimal():
            there = ", nor ".join(words)
            raise argparse.ArgumentTypeError(f"{text!r} is neither {there}, nor a number")
        return text

    return known


def format_argument(*formats: str) -> Word:
    """`--format`, of which the first is the default; without any: text and JSON."""
    there = formats or ("text", "json")
    says = f"how it is printed (default: {there[0]})"
    return Word("--format", says, choices=there, default=there[0])


FORMAT = format_argument()
