"""Tokens of rules: names, numbers, texts, signs, line ends, and the dot that ends a rule.

Comments become blanks, so what is cut out of the text is what it says. A dot ends a rule where
nothing follows it on the line but blanks, as in `p(x) :- q(x).`; the one of `x.name` does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hydro_core.errors import Diagnostic
from hydro_core.lang.source import Source

RuleTokenKind = Literal["name", "number", "text", "sign", "line", "end"]

_SPACE = re.compile(r"[ \t\r\f\v]+")
_COMMENT = re.compile(r"#[^\n]*")
_LINE_COMMENT = re.compile(r"//[^\n]*")
_TEXT = re.compile(
    r"[bBfFrR]{0,2}(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|"
    r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")",
    re.DOTALL,
)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"0[xXoObB]\w+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SIGN = re.compile(r":-|<=|>=|==|!=|:=|->|<-|\*\*|//|<<|>>|[-+*/%@&|^~<>=!,:()\[\]{}.?;\\$`]")
_END = re.compile(r"\.(?=\s|#|//|$)")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class RuleToken:
    kind: RuleTokenKind
    text: str
    start: int
    end: int


def tokenize(source: Source) -> tuple[list[RuleToken], str, list[Diagnostic]]:
    """The tokens of a text, the text with blanks for comments, and what is wrong with it."""
    tokens: list[RuleToken] = []
    problems: list[Diagnostic] = []
    blanked: list[tuple[int, int]] = []
    text, at, depth = source.text, 0, 0
    while at < len(text):
        if found := _SPACE.match(text, at):
            at = found.end()
            continue
        comment = _COMMENT.match(text, at) or (depth == 0 and _LINE_COMMENT.match(text, at))
        if comment:
            blanked.append((at, comment.end()))
            at = comment.end()
            continue
        token = _token(text, at, depth)
        if token is None:
            problems.append(_unreadable(source, at))
            at += 1
            continue
        depth = _depth(token, depth)
        if token.kind != "line" or depth == 0:
            tokens.append(token)
        at = token.end
    return tokens, _blank(text, blanked), problems


def _token(text: str, at: int, depth: int) -> RuleToken | None:
    if text[at] == "\n":
        return RuleToken("line", "\n", at, at + 1)
    if depth == 0 and _END.match(text, at):
        return RuleToken("end", ".", at, at + 1)
    patterns: tuple[tuple[RuleTokenKind, re.Pattern[str]], ...] = (
        ("text", _TEXT),
        ("name", _NAME),
        ("number", _NUMBER),
        ("sign", _SIGN),
    )
    for kind, pattern in patterns:
        if found := pattern.match(text, at):
            return RuleToken(kind, found.group(), at, found.end())
    return None


def _depth(token: RuleToken, depth: int) -> int:
    """How many brackets are open after a token; none at `:-`, whatever was forgotten before it."""
    if token.kind != "sign" or token.text == ":-":
        return depth if token.kind != "sign" else 0
    if token.text in _OPEN:
        return depth + 1
    return max(0, depth - 1) if token.text in _CLOSE else depth


def _unreadable(source: Source, at: int) -> Diagnostic:
    span = source.span(at, at + 1)
    if source.text[at] in "'\"":
        message, cure = "the text is not closed on its line", "close it with the quote it begins by"
    else:
        message = f"`{source.text[at]}` has no meaning here"
        cure = "a rule is `head(x) :- body(x, y), y > 0.`"
    return Diagnostic("syntax", message, span, help=cure)


def _blank(text: str, places: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in places:
        parts += [text[at:start], " " * (end - start)]
        at = end
    return "".join((*parts, text[at:]))
