"""Tokens of the text form: names, arrows, ports, unparsed arguments, statement ends.

Outside brackets `#` and `//` start comments; inside, the text is Python's, so `#` does and `//`
does not. A bracket that is open hides line ends, and so does an arrow before or after one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hydro_core.errors import Diagnostic
from hydro_core.lang.source import Source

TokenKind = Literal["name", "arrow", "equals", "port", "arguments", "end"]

_SPACE = re.compile(r"[ \t\r\f\v]+")
_COMMENT = re.compile(r"(#|//)[^\n]*")
_NAME = re.compile(r"[^\W\d]\w*")
_CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text` of a port or of arguments is the text between the brackets."""

    kind: TokenKind
    text: str
    start: int
    end: int


class _BadToken(Exception):  # noqa: N818 - carried to the statement's end, where reading goes on
    def __init__(self, message: str, help_: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message, self.help, self.start, self.end = message, help_, start, end


def tokenize(source: Source) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of a text, statement ends among them, and the problems in it."""
    tokens: list[Token] = []
    problems: list[Diagnostic] = []
    text, at = source.text, 0
    while at < len(text):
        skipped = _SPACE.match(text, at) or _COMMENT.match(text, at)
        if skipped:
            at = skipped.end()
            continue
        try:
            token = _next(text, at)
        except _BadToken as wrong:
            span = source.span(wrong.start, wrong.end)
            problems.append(Diagnostic("syntax", wrong.message, span, help=wrong.help))
            # Later tokens of the line would only repeat the problem.
            line_end = text.find("\n", wrong.end)
            at = len(text) if line_end < 0 else line_end
            tokens.append(Token("end", "wrong", at, at))
            continue
        tokens.append(token)
        at = token.end
    return _joined(tokens), problems


def _next(text: str, at: int) -> Token:
    char = text[at]
    if char in "\n;":
        return Token("end", char, at, at + 1)
    if text.startswith("->", at):
        return Token("arrow", "->", at, at + 2)
    if char == "=" and not text.startswith("==", at):
        return Token("equals", "=", at, at + 1)
    name = _NAME.match(text, at)
    if name:
        return Token("name", name.group(), at, name.end())
    if char in "([":
        end = _closing(text, at)
        return Token("port" if char == "[" else "arguments", text[at + 1 : end], at, end + 1)
    raise _BadToken(f"unexpected {_shown(text, at)}", _cure(text, at), at, at + 1)


def _shown(text: str, at: int) -> str:
    if text.startswith("::", at):
        return "`::`"
    return f"`{text[at]}`" if text[at].isprintable() else f"the character U+{ord(text[at]):04X}"


def _cure(text: str, at: int) -> str:
    if text.startswith("::", at):
        return (
            "lifetimes are written out: `join::<'static, 'tick>` is `persist()` on the first input"
        )
    if text[at] in ")]}":
        return "remove it, or open a bracket for it"
    if text[at] in "\"'":
        return "a text is an argument: it stands between an operator's brackets"
    if text[at].isdigit():
        return "names begin with a letter or an underscore"
    return "a statement is `name = a -> b()` or `a -> b()`"


def _closing(text: str, opening: int) -> int:
    """The offset of the bracket that closes the one at `opening`, by Python's rules."""
    expected: list[tuple[str, int]] = []
    at = opening
    while at < len(text):
        char = text[at]
        if char in _CLOSES:
            expected.append((_CLOSES[char], at))
        elif char in ")]}":
            wanted, where = expected.pop()
            if char != wanted:
                raise _BadToken(
                    f"`{char}` does not close `{text[where]}`",
                    f"close it with `{wanted}`",
                    at,
                    at + 1,
                )
            if not expected:
                return at
        elif char == "#":
            line_end = text.find("\n", at)
            at = len(text) if line_end < 0 else line_end
            continue
        elif char in "\"'":
            at = _string_end(text, at)
            continue
        at += 1
    raise _BadToken(
        f"`{text[opening]}` is never closed",
        f"close it with `{_CLOSES[text[opening]]}`",
        opening,
        opening + 1,
    )


def _string_end(text: str, at: int) -> int:
    """The offset after the string that begins at `at`."""
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    end = at + len(quote)
    while end < len(text):
        if text[end] == "\\":
            end += 2
        elif text.startswith(quote, end):
            return end + len(quote)
        elif text[end] == "\n" and len(quote) == 1:
            break
        else:
            end += 1
    raise _BadToken("the string is never closed", f"close it with `{quote}`", at, at + len(quote))


def _joined(tokens: list[Token]) -> list[Token]:
    """The tokens without line ends next to an arrow, which continue a pipeline."""
    kept: list[Token] = []
    follows = "end"
    for token in reversed(tokens):
        if token.text != "\n" or token.kind != "end":
            follows = token.kind
        elif follows == "arrow":
            continue
        kept.append(token)
    kept.reverse()
    before, kept = kept, []
    for token in before:
        line_end = token.kind == "end" and token.text == "\n"
        if line_end and (not kept or kept[-1].kind in ("arrow", "end")):
            continue
        kept.append(token)
    return kept
