"""The text of a program, and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from hydro_core.errors import Span


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
        # Every place holds its line: all of one line share one string.
        lines = tuple(line.rstrip("\r") for line in self.text.split("\n"))
        object.__setattr__(self, "_lines", lines)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """A line without its end."""
        return self._lines[number - 1]

    def span(self, start: int, end: int) -> Span:
        """The place from one offset to another."""
        line, column = self.position(start)
        end_line, end_column = self.position(max(start, end))
        text = self.line(line)
        if end_line > line:
            text = "\n".join(self.line(n) for n in range(line, end_line + 1))
        return Span(self.file, line, column, end_line, end_column, text)
