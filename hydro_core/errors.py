"""What is said to a user when a program or its data is wrong.

A diagnostic has a code, a place, an operator and a cure. A step collects its diagnostics and
raises them once, in a `ProgramError` (the program is at fault, found before a tick runs), a
`DataError` (a tick, its data or its state is at fault) or a `TransientError` (none of them is: the
store does not answer, another process is at work). They are caught at one boundary, the command
line or the asset factory; anything else is a bug. None is a kind of another, so whoever catches bad
data does not take an outage for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

Code = Literal[
    "syntax",
    "name",
    "undefined",
    "unknown-operator",
    "port",
    "arity",
    "type",
    "ordering",
    "cycle",
    "input",
    "runtime",
    "state",
    "config",
]
CODES: Mapping[Code, str] = MappingProxyType(
    {
        "syntax": "What is written is no statement.",
        "name": "A function, or an argument, uses a name that there is not.",
        "undefined": "A name is read and written like something that is defined, and is not.",
        "unknown-operator": "There is no operator of that name.",
        "port": "An input or an output of an operator is not named, or named twice.",
        "arity": "An argument is missing, or there is one too many.",
        "type": "Columns or values are not what an operator or a function needs.",
        "ordering": "An operator goes by the order of a stream that has none.",
        "cycle": "A cycle through an input that waits, without `prev` or `old`.",
        "input": "The data are not what the schema says, or belong to no input.",
        "runtime": "A function failed on an item, or an operator on what it got.",
        "state": "What is stored does not fit, or is not there, or somebody else is at work on it.",
        "config": "A project, a setting, a path, a command line or the environment is at fault.",
    }
)
"""What each code says."""


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Characters that a terminal obeys: escapes, line ends that only some see, directions of text."""


def visible(text: str) -> str:
    """A text of lines as it is shown: what a terminal would obey is escaped, as JSON does it."""
    return _UNSEEN.sub(_escaped, text)


def in_a_line(name: str) -> str:
    """A name that somebody has chosen, as it is shown within a line."""
    return re.sub(r"[\t\n]", _escaped, visible(name))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def shown_file(file: str | Path) -> str:
    """A file as a person writes it: relative to the current folder if it is in there."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(file)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a program; lines and columns count from 1, `end_column` is one past the end."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str = field(default="", compare=False, repr=False)
    """The source lines, `line` to `end_line`, for the picture; empty where they are not known."""

    @property
    def place(self) -> str:
        """Where it is, as a person is told: `FILE:LINE:COLUMN`."""
        return f"{shown_file(self.file)}:{self.line}:{self.column}"

    @property
    def first_line(self) -> str:
        """The source line on which the place begins."""
        return self.text.partition("\n")[0]

    def at(self, line: int, column: int) -> Span:
        """The place of one character within this one."""
        lines = self.text.split("\n")
        inside = 0 <= line - self.line < len(lines)
        text = lines[line - self.line] if inside else ""
        return Span(self.file, line, column, line, column + 1, text)


def beginning(span: Span | None) -> tuple[int, int]:
    """The line and column of a place; (0, 0) where it is not known, which comes first."""
    return (span.line, span.column) if span else (0, 0)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong: what, where, in which operator, and how to mend it."""

    code: Code
    message: str
    span: Span | None = None
    operator: str | None = None
    help: str = field(kw_only=True)
    severity: Literal["error", "warning"] = "error"

    def render(self) -> str:
        """The diagnostic as it is printed: what it says, and the cure."""
        return f"{self.severity}[{self.code}]: {self.says()}\nhelp: {self.help}"

    def says(self) -> str:
        """The message, with the place and the line with its underlining."""
        lines = [self.message]
        if self.span is not None:
            lines += _picture(self.span)
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The object that `--format json` prints under "error"."""
        span = self.span
        return {
            "code": self.code,
            "message": self.message,
            "file": span.file if span else None,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "operator": self.operator,
            "help": self.help,
        }


MOST_SHOWN = 20
"""So many diagnostics of a step are printed; who mends those sees the others."""


class HydroError(Exception):
    """The base of all errors that a user is meant to read."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        shown = [d.render() for d in diagnostics[:MOST_SHOWN]]
        if len(diagnostics) > MOST_SHOWN:
            shown.append(f"… and {len(diagnostics) - MOST_SHOWN:,} more")
        super().__init__("\n\n".join(shown))
        self.diagnostics = diagnostics

    @classmethod
    def of(
        cls,
        code: Code,
        message: str,
        span: Span | None = None,
        operator: str | None = None,
        *,
        help: str,  # noqa: A002
    ) -> Self:
        """The error that one thing is wrong; see `Diagnostic`."""
        return cls(Diagnostic(code, message, span, operator, help=help))

    @property
    def code(self) -> Code:
        """The code of the first diagnostic."""
        return self.diagnostics[0].code

    def as_json(self) -> Mapping[str, Any]:
        """The first diagnostic as the command line prints it; the others follow under "more"."""
        first, *more = (d.as_json() for d in self.diagnostics)
        return {**first, "more": more} if more else first


class ProgramError(HydroError):
    """The program cannot mean anything: found before any tick runs."""


class DataError(HydroError):
    """A tick failed or cannot start: its data, a function or the stored state is at fault."""


class TransientError(HydroError):
    """A tick did not run for what passes by itself: another process is at work on its flow, or it
    is not due. Tried again, it may succeed, with nothing changed by anybody.
    """


class InfrastructureError(TransientError):
    """A tick failed by what it runs on (Spark, the disk, the network) and not by its program or its
    data: tried again, it may succeed.
    """


class EngineEndedError(InfrastructureError):
    """The process that computes ended in the middle of its work: another one can begin again."""


class InternalSparkError(Exception):
    """Spark failed by a fault of its own or of a plan of ours: a bug, and no data's fault.

    It is not for people, keeps its traceback, and comes again whenever the tick is tried.
    """


class TypeProblem(Exception):  # noqa: N818 - it becomes a Diagnostic, it is not one
    """Why something of the program has no meaning or no type.

    Steps turn it into a diagnostic at the node at hand, or at `place` (line and column) within a
    function.
    """

    def __init__(
        self,
        message: str,
        help: str | None = None,  # noqa: A002
        *,
        place: tuple[int, int] = (0, 0),
        code: Code = "type",
    ) -> None:
        super().__init__(message)
        self.message, self.help, self.place, self.code = message, help, place, code


def _picture(span: Span) -> list[str]:
    where = f" --> {span.place}"
    if not span.text:
        return [where]
    gutter = " " * len(str(span.line))
    last = span.end_column if span.end_line == span.line else len(span.first_line) + 1
    text, column, width = _clipped(span.first_line, span.column - 1, max(1, last - span.column))
    # Tabs stay tabs under the line, so the underlining stands where the reader's eye is.
    indent = "".join("\t" if c == "\t" else " " for c in text[:column])
    underline = indent + "^" * width
    return [where, f"{gutter} |", f"{span.line} | {text}", f"{gutter} | {underline}"]


_LINE, _BEFORE = 160, 60


def _clipped(text: str, column: int, width: int) -> tuple[str, int, int]:
    """A line, the place in it and how wide that is, cut to what a screen shows."""
    if len(text) <= _LINE:
        return text, column, width
    start = max(0, column - _BEFORE)
    cut = text[start : start + _LINE]
    head, tail = "…" * (start > 0), "…" * (start + _LINE < len(text))
    at = column - start + len(head)
    return f"{head}{cut}{tail}", at, min(width, max(1, len(cut) - (column - start)))
