"""Tokens of rules: names, numbers, texts, signs, line ends, the dot that ends a rule; their reader.

Comments become blanks, so what is cut out of the text is what it says. A dot ends a rule where
nothing follows it on the line but blanks, as in `p(x) :- q(x).`; the one of `x.name` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from hydro_core.errors import Diagnostic, ProgramError, Span
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
    parts, at = [], 0
    for start, end in blanked:
        parts += [text[at:start], " " * (end - start)]
        at = end
    return tokens, "".join((*parts, text[at:])), problems


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


RULE = 'a rule is `head(x) :- body(x, y), !other(y), y > 0.`, a fact `head(1, "a").`'

T = TypeVar("T")


class TokenReader:
    """Reads the tokens of a text from its beginning."""

    def __init__(self, source: Source, tokens: Sequence[RuleToken]) -> None:
        self.source, self.tokens, self.at = source, tokens, 0

    def skip_lines(self) -> bool:
        """Goes to the next token that is no line end; False: there is none."""
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "line":
            self.at += 1
        return self.at < len(self.tokens)

    def skip_lines_before(self, text: str) -> None:
        """Goes to a sign if it is what comes next, perhaps on another line."""
        at = self.at
        if not self.skip_lines() or not self.sees(text):
            self.at = at

    def peek(self) -> RuleToken | None:
        """The next token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sees(self, text: str) -> bool:
        """Whether the next token is this one."""
        token = self.peek()
        return token is not None and token.text == text and token.kind != "end"

    def take(self, text: str, cure: str = RULE) -> RuleToken:
        """The next token, which must be this one."""
        token = self.peek()
        if token is None or not self.sees(text):
            raise self.wrong(f"`{text}` must stand here", token, cure)
        self.at += 1
        return token

    def name(self, message: str, cure: str) -> RuleToken:
        """The next token, which must be a name."""
        token = self.peek()
        if token is None or token.kind != "name":
            raise self.wrong(message, token, cure)
        self.at += 1
        return token

    def listed(self, close: str, read: Callable[[], T]) -> list[T]:
        """What stands between commas, up to a bracket, if there is one, which is left."""
        found: list[T] = []
        if self.sees(close):
            return found
        while True:
            found.append(read())
            if not self.sees(","):
                return found
            self.at += 1

    def until(self, stops: Sequence[str]) -> int:
        """The end of what stands, outside of brackets, before one of these or a rule's end."""
        depth, end = 0, self.tokens[self.at - 1].end
        while (token := self.peek()) is not None:
            if token.text == ":-" or (depth == 0 and (token.kind == "end" or token.text in stops)):
                break
            if token.kind == "sign":
                depth += (token.text in "([{") - (token.text in ")]}")
            if depth < 0:
                break
            end = end if token.kind == "line" else token.end
            self.at += 1
        return end

    def end_of_rule(self) -> None:
        """Takes the dot that ends a rule; the last one of a text may lack it."""
        at = self.at
        if not self.skip_lines():
            return
        token = self.tokens[self.at]
        if token.kind != "end":
            before = self.tokens[at - 1]
            message = f"`,` or the dot that ends the rule must follow `{before.text}`"
            raise self.wrong(message, before, "a rule ends with a dot: `p(x) :- q(x).`")
        self.at += 1

    def end_of_line(self, word: str) -> None:
        """Takes the end of a declaration: a line end, or a dot."""
        token = self.peek()
        if token is not None and token.kind not in ("line", "end"):
            cure = "write what follows on a line of its own"
            raise self.wrong(f"`.{word}` ends before `{token.text}`", token, cure)
        self.at += 1

    def recover(self, start: int) -> None:
        """Goes behind the statement that is wrong, at least one token from where it began.

        That is behind its dot, or where a line begins with what looks like a statement.
        """
        self.at = max(self.at, start + 1)
        while (token := self.peek()) is not None:
            self.at += 1
            if token.kind == "end":
                return
            if token.kind == "line" and self._begins_statement():
                return

    def _begins_statement(self) -> bool:
        token = self.peek()
        if token is None or self.source.position(token.start)[1] != 1:
            return False
        return token.kind == "name" or token.text == "."

    def span(self, token: RuleToken) -> Span:
        """The place of a token."""
        return self.source.span(token.start, token.end)

    def wrong(self, message: str, token: RuleToken | None, cure: str) -> ProgramError:
        """An error at a token, or at the end of the text."""
        if token is None or token.kind == "line":
            before = next(t for t in reversed(self.tokens[: self.at]) if t.kind != "line")
            span, message = self.span(before), f"{message}, but the text ends"
            if token is not None:
                message = message.replace("the text ends", "the line ends")
        else:
            span = self.span(token)
        return ProgramError.of("syntax", message, span, help=cure)
