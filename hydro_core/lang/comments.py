"""What a program says of its statements: the comments beside and above them.

A comment says something of the statement that it stands behind; else of the one right below it;
else of all statements up to the next empty line. What stands inside of brackets is said of columns.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

from hydro_core.errors import Span
from hydro_core.lang.column_comments import comment_lines_of_calls, comments_of_columns
from hydro_core.lang.source import Source
from hydro_core.lang.tokens import tokenize

_SIGNS = ("#", "//")
_DOT = "."
"""Ends a rule, and a comment may follow it."""
_INSIDE = "…"
"""What stands for a line inside of brackets where statements are looked for."""


class Comments:
    """The comments of programs, by the names of their files; a text that is not given is read."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._known: dict[str, _Text] = {}

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
        text = self._of(place)
        last = text.lines[place.end_line - 1] if place.end_line <= len(text.lines) else ""
        behind = last[place.end_column - 1 :].strip().removeprefix(_DOT).strip()
        if _is_comment(behind):
            return _joined([behind])
        above = text.statements[: place.line - 1][::-1]
        own = list(takewhile(_is_comment, above))
        if not own:
            above = list(dropwhile(lambda line: line.strip() and not _is_comment(line), above))
            own = list(takewhile(_is_comment, above))
        return _joined(reversed(own))

    def of_any(self, places: Iterable[Span | None]) -> str:
        """What is said of the first of these places of which something is said."""
        return next(filter(None, map(self.of, places)), "")

    def of_columns(self, place: Span | None, columns: Collection[str]) -> Mapping[str, str]:
        """What the operator at a place says of columns that it gives, by their names."""
        if place is None or place.line == place.end_line:
            return {}
        lines = list(self._of(place).lines[place.line - 1 : place.end_line])
        if len(lines) <= place.end_line - place.line:
            return {}
        lines[-1] = lines[-1][: place.end_column - 1]
        lines[0] = lines[0][place.column - 1 :]
        return comments_of_columns("\n".join(lines), columns)

    def _of(self, place: Span) -> _Text:
        name = Path(place.file).name
        if name not in self._known:
            text = self._texts.get(name)
            if text is None and Path(place.file).is_file():
                text = Path(place.file).read_text(encoding="utf-8")
            self._known[name] = _text(name, text or "")
        return self._known[name]


@dataclass(frozen=True, slots=True)
class _Text:
    lines: Sequence[str]
    statements: Sequence[str]
    """The lines, but for those inside of brackets."""


def _text(name: str, text: str) -> _Text:
    lines = text.split("\n")
    inside = _inside_of_brackets(name, text)
    statements = [_INSIDE if n in inside else line for n, line in enumerate(lines, 1)]
    return _Text(lines, statements)


def _inside_of_brackets(name: str, text: str) -> Collection[int]:
    """The lines whose comments are none of statements."""
    if name.endswith(".py"):
        return comment_lines_of_calls(text)
    source = Source(name, text)
    arguments = (token for token in tokenize(source)[0] if token.kind == "arguments")
    places = (source.span(token.start, token.end) for token in arguments)
    return {line for place in places for line in range(place.line + 1, place.end_line + 1)}


def _is_comment(line: str) -> bool:
    return line.strip().startswith(_SIGNS)


def _joined(lines: Iterable[str]) -> str:
    return " ".join(text for line in lines if (text := line.strip().lstrip("#/").strip()))


def _docstring(text: str) -> str:
    try:
        found = ast.get_docstring(ast.parse(text)) or ""
    except SyntaxError:
        return ""
    return " ".join(found.partition("\n\n")[0].split())
