"""What a program says of single columns: comments inside the brackets of a call.

A comment there says something of the column that its line names, or, on a line of its own, of the
one that the next line names. Of a line that names several columns nothing is said.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_OPENS, _CLOSES = set("([{"), set(")]}")
_ADJACENT = {"<": 1, "(": 1, ">": -1, ")": -1}


def comments_of_columns(call: str, columns: Collection[str]) -> Mapping[str, str]:
    """What is said of columns, by their names.

    Args:
        call: the text of an operator with its arguments, in Python's syntax.
        columns: those that what comes out of it has.

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
    """The columns that are named, each with its line: as `column=`, `"column":`, or in a text."""
    code = [token for token in tokens if token.type != tokenize.COMMENT]
    depth, value_at = 0, None
    for token, after in zip(code, [*code[1:], None], strict=True):
        depth += (token.string in _OPENS) - (token.string in _CLOSES)
        if value_at is not None:
            # What a column is computed from names others.
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
    """The first words of what stands between the commas of a text, each with its line."""
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
    """The tokens of a text but for layout; if `inside`, of one that need not stand by itself."""
    read = StringIO(f"({text}\n)" if inside else text).readline
    try:
        for token in tokenize.generate_tokens(read):
            if token.type not in _LAYOUT:
                yield token
    except (tokenize.TokenError, SyntaxError):
        # What cannot be read says nothing of columns.
        return
