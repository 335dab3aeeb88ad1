"""Program text and locations in it, for errors to point at."""

from __future__ import annotations

import inspect
import linecache
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from types import FrameType
from typing import Any

from hydro_core.errors import ProgramError, Span

# Suggestions for misspelled names.


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A question after the likeliest of the known words, None where none is near.

    >>> did_you_mean("persits", ["prev", "persist", "map"])
    'did you mean `persist`?'
    """
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def no_such_input(name: str, known: Iterable[str]) -> ProgramError:
    there = list(known)
    cure = did_you_mean(name, there) or f"the inputs are {', '.join(there) or 'none'}"
    return ProgramError.of("input", f"`{name}` is not an input", help=cure)


# Suffixes of the files of programs.


RULES = ".dl"
"""Rules over time."""
PROGRAMS = (".hydro", RULES)
"""Programs that are read from their text."""
FORMS = "`*.hydro`, rules `*.dl`, or `module:attribute`"
"""The forms of FILE on the command line."""


# The text of a program, and locations in it.


@dataclass(frozen=True)
class Source:
    """A file's text. Offsets count characters from 0; lines and columns count from 1."""

    file: str
    text: str
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _lines: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]
        object.__setattr__(self, "_starts", tuple(starts))
        # Every span holds its line: all spans of one line share one string.
        lines = tuple(line.rstrip("\r") for line in self.text.split("\n"))
        object.__setattr__(self, "_lines", lines)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column - 1

    @staticmethod
    def offset_within(start: int, lines: Sequence[str], line: int, column: int) -> int:
        """The offset of a position of Python's in a part of the text.

        Args:
            start: the start of the part.
            lines: the lines that Python has read: the part, after a bracket that is opened before
                it.
            line: counts from 1.
            column: counts bytes of UTF-8, as Python does, where we count characters.
        """
        head = lines[line - 1] if line <= len(lines) else ""
        characters = len(head.encode()[:column].decode(errors="ignore"))
        before = sum(len(text) + 1 for text in lines[: line - 1])
        return start + max(0, before + characters - lines[0].index("(") - 1)

    def line(self, number: int) -> str:
        """A line without its end."""
        return self._lines[number - 1]

    def span(self, start: int, end: int) -> Span:
        """The location from one offset to another."""
        line, column = self.position(start)
        end_line, end_column = self.position(max(start, end))
        text = self.line(line)
        if end_line > line:
            text = "\n".join(self.line(n) for n in range(line, end_line + 1))
        return Span(self.file, line, column, end_line, end_column, text)


# Locations of calls of the API in a Python program, and of its functions, for errors to point at.


_OWN = "hydro_core."


def caller() -> Span | None:
    """The call outside this package that led here."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - Python has no other way to the caller's place
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return None
    positions = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    line, end_line, column, end_column = next(positions, (frame.f_lineno, None, None, None))
    file = frame.f_code.co_filename
    first, last = line or frame.f_lineno, end_line or line or frame.f_lineno
    text = [
        linecache.getline(file, n, frame.f_globals).rstrip("\n") for n in range(first, last + 1)
    ]
    begin = _characters(text[0], column or 0) + 1
    end = _characters(text[-1], end_column) + 1 if end_column is not None else len(text[-1]) + 1
    return Span(file, first, begin, last, end, "\n".join(text) if any(text) else "")


def _characters(text: str, count: int) -> int:
    """Python counts bytes of UTF-8, we count characters."""
    return len(text.encode()[:count].decode(errors="ignore"))


def of_function(f: Callable[..., Any]) -> Span | None:
    """The lines of a Python function; None if they are unknown."""
    try:
        lines, first = inspect.getsourcelines(f)
        file = inspect.getsourcefile(f) or "<unknown>"
    except (OSError, TypeError):
        return None
    text = [line.rstrip("\n") for line in lines]
    column = len(text[0]) - len(text[0].lstrip()) + 1
    return Span(file, first, column, first + len(text) - 1, len(text[-1]) + 1, "\n".join(text))
