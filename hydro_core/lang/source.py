"""The text of a program, and places in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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

    @staticmethod
    def offset_within(start: int, lines: Sequence[str], line: int, column: int) -> int:
        """The offset of a place of Python's in a part of the text.

        Args:
            start: where the part begins.
            lines: what Python has read: the part, behind a bracket that is opened before it.
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
        """The place from one offset to another."""
        line, column = self.position(start)
        end_line, end_column = self.position(max(start, end))
        text = self.line(line)
        if end_line > line:
            text = "\n".join(self.line(n) for n in range(line, end_line + 1))
        return Span(self.file, line, column, end_line, end_column, text)
