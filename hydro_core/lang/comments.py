"""Comments of a program's statements and columns.

A comment describes the statement before it on the line; else the statement right below it; else all
statements up to the next empty line. Comments inside of brackets describe columns: the column that
their line names, or, on a line of their own, the one that the next line names. A comment on a line
with several columns describes none.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import dropwhile, takewhile
from pathlib import Path

from hydro_core.errors import Span
from hydro_core.lang.source import Source
from hydro_core.lang.tokens import tokenize as tokens_of

_SIGNS = ("#", "//")
_DOT = "."
"""Ends a rule, and a comment may follow it."""
_INSIDE = "…"
"""Stands for a line inside of brackets in the search for statements."""


class Comments:
    """The comments of programs, by the names of their files; other files are read."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._known: dict[str, _Text] = {}

    @property
    def head(self) -> str:
        """The description of the program: the comment, or the docstring, that it begins with."""
        for name, text in self._texts.items():
            if name.endswith(".py"):
                try:
                    said = ast.get_docstring(ast.parse(text)) or ""
                except SyntaxError:
                    return ""
                return " ".join(said.partition("\n\n")[0].split())
            lines = dropwhile(lambda line: not line.strip(), text.split("\n"))
            return _joined(takewhile(_is_comment, lines))
        return ""

    def of(self, place: Span | None) -> str:
        """The comment of the statement at a location; empty if there is none."""
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
        """The first comment of the statements at these locations."""
        return next(filter(None, map(self.of, places)), "")

    def of_columns(self, place: Span | None, columns: Collection[str]) -> Mapping[str, str]:
        """The comments of the operator at a location about its output columns, by their names."""
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
            lines = (text or "").split("\n")
            inside = _inside_of_brackets(name, text or "")
            statements = [_INSIDE if n in inside else line for n, line in enumerate(lines, 1)]
            self._known[name] = _Text(lines, statements)
        return self._known[name]


@dataclass(frozen=True, slots=True)
class _Text:
    lines: Sequence[str]
    statements: Sequence[str]
    """The lines, without those inside of brackets."""


def _inside_of_brackets(name: str, text: str) -> Collection[int]:
    """The lines whose comments do not describe statements."""
    if name.endswith(".py"):
        return comment_lines_of_calls(text)
    source = Source(name, text)
    arguments = (token for token in tokens_of(source)[0] if token.kind == "arguments")
    places = (source.span(token.start, token.end) for token in arguments)
    return {line for place in places for line in range(place.line + 1, place.end_line + 1)}


def _is_comment(line: str) -> bool:
    return line.strip().startswith(_SIGNS)


def _joined(lines: Iterable[str]) -> str:
    return " ".join(text for line in lines if (text := line.strip().lstrip("#/").strip()))


_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_OPENS, _CLOSES = set("([{"), set(")]}")
_ADJACENT = {"<": 1, "(": 1, ">": -1, ")": -1}


def comments_of_columns(call: str, columns: Collection[str]) -> Mapping[str, str]:
    """The comments about columns, by their names.

    Args:
        call: the text of an operator with its arguments, in Python's syntax.
        columns: the columns of its output.

    >>> comments_of_columns('''source(
    ...     "user string, "   # who paid
    ...     # In cents.
    ...     "amount long"
    ... )''', ["user", "amount"])
    {'user': 'who paid', 'amount': 'In cents.'}
    """
    if "#" not in call or "\n" not in call:
        return {}
    lines: dict[int, _Line] = {}
    tokens = list(_tokens(call))
    for name, number in _named(tokens, columns):
        lines.setdefault(number, _Line()).names.append(name)
    for token in tokens:
        line = lines.setdefault(token.start[0], _Line())
        if token.type == tokenize.COMMENT:
            line.comment = token.string.lstrip("#").strip()
        else:
            line.has_code = True
    return dict(_said(line for _, line in sorted(lines.items())))


def comment_lines_of_calls(text: str) -> frozenset[int]:
    """The lines of a Python file that are comments inside the brackets of a call."""
    found, calls, before = set(), [False], tokenize.OP
    code = -1
    for token in _tokens(text, inside=False):
        if token.type == tokenize.COMMENT:
            if calls[-1] and token.start[0] != code:
                found.add(token.start[0])
            continue
        if token.string in _OPENS:
            calls.append(token.string == "(" and before == tokenize.NAME)
        elif token.string in _CLOSES and len(calls) > 1:
            calls.pop()
        before, code = token.type, token.end[0]
    return frozenset(found)


@dataclass(slots=True)
class _Line:
    names: list[str] = field(default_factory=list)
    comment: str = ""
    has_code: bool = False


def _said(lines: Iterable[_Line]) -> Iterator[tuple[str, str]]:
    above: list[str] = []
    for line in lines:
        if not line.has_code:
            above.append(line.comment)
            continue
        said = line.comment or " ".join(filter(None, above))
        if said and len(set(line.names)) == 1:
            yield line.names[0], said
        above = []


def _named(
    tokens: Iterable[tokenize.TokenInfo], columns: Collection[str]
) -> Iterator[tuple[str, int]]:
    """The named columns, each with its line: as `column=`, `"column":`, or in a text."""
    code = [token for token in tokens if token.type != tokenize.COMMENT]
    depth, value_at = 0, None
    for token, after in zip(code, [*code[1:], None], strict=True):
        depth += (token.string in _OPENS) - (token.string in _CLOSES)
        if value_at is not None:
            # The expression of a computed column names other columns.
            ended = depth < value_at or (depth == value_at and token.string == ",")
            value_at = None if ended else value_at
            continue
        sign = after.string if after else ""
        if token.type == tokenize.NAME and sign == "=" and token.string in columns:
            yield token.string, token.start[0]
            value_at = depth
        elif token.type == tokenize.STRING:
            names = [found for found in _of_text(token) if found[0] in columns]
            yield from names
            value_at = depth if sign == ":" and names else None


def _of_text(token: tokenize.TokenInfo) -> Iterator[tuple[str, int]]:
    """The first words of the parts between the commas of a text, each with its line."""
    try:
        text = ast.literal_eval(token.string)
    except (SyntaxError, ValueError):
        return
    if not isinstance(text, str):
        return
    line, depth, piece = token.start[0], 0, ""
    for char in f"{text},":
        depth += _ADJACENT.get(char, 0)
        if char == "," and not depth:
            words = piece.replace(":", " ").replace("`", " ").split()
            if words:
                yield words[0], line
            piece = ""
        elif char == "\n":
            line += 1
            piece += " "
        else:
            piece += char


def _tokens(text: str, *, inside: bool = True) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text without layout; with `inside`, of a part of a text."""
    read = StringIO(f"({text}\n)" if inside else text).readline
    try:
        for token in tokenize.generate_tokens(read):
            if token.type not in _LAYOUT:
                yield token
    except (tokenize.TokenError, SyntaxError):
        # A text with syntax errors has no comments about columns.
        return
