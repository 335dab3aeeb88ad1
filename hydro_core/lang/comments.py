"""What a program says of its statements: the comments beside and above them.

A comment says something of the statement that it stands behind; else of the one right below it;
else of all statements up to the next empty line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from itertools import dropwhile, takewhile
from pathlib import Path

from hydro_core.errors import Span


class Comments:
    """The comments of programs, by the names of their files; a text that is not given is read."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._lines: dict[str, list[str]] = {}

    @property
    def head(self) -> str:
        """What the program says of itself: the comment, or the docstring, that it begins with."""
        for name, text in self._texts.items():
            if name.endswith(".py"):
                return _docstring(text)
            lines = dropwhile(lambda line: not line.strip(), text.splitlines())
            return _joined(takewhile(_is_comment, lines))
        return ""

    def of(self, place: Span | None) -> str:
        """What is said of what stands at a place; empty where nothing is."""
        if place is None:
            return ""
        lines = self._of(place)
        last = lines[place.end_line - 1] if place.end_line <= len(lines) else ""
        behind = last[place.end_column - 1 :].strip()
        if behind.startswith("#"):
            return _joined([behind])
        above = lines[: place.line - 1][::-1]
        own = list(takewhile(_is_comment, above))
        if not own:
            above = list(dropwhile(lambda line: line.strip() and not _is_comment(line), above))
            own = list(takewhile(_is_comment, above))
        return _joined(reversed(own))

    def of_any(self, places: Iterable[Span | None]) -> str:
        """What is said of the first of these places of which something is said."""
        return next(filter(None, map(self.of, places)), "")

    def _of(self, place: Span) -> list[str]:
        name = Path(place.file).name
        if name not in self._lines:
            text = self._texts.get(name)
            if text is None and Path(place.file).is_file():
                text = Path(place.file).read_text(encoding="utf-8")
            self._lines[name] = (text or "").splitlines()
        return self._lines[name]


def _is_comment(line: str) -> bool:
    return line.strip().startswith("#")


def _joined(lines: Iterable[str]) -> str:
    return " ".join(text for line in lines if (text := line.strip().lstrip("#").strip()))


def _docstring(text: str) -> str:
    try:
        found = ast.get_docstring(ast.parse(text)) or ""
    except SyntaxError:
        return ""
    return " ".join(found.partition("\n\n")[0].split())
