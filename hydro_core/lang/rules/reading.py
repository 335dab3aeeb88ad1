"""What reads tokens, none of them twice: what stands next, what must, and where reading goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hydro_core.errors import ProgramError, Span
from hydro_core.lang.rules.tokens import RuleToken
from hydro_core.lang.source import Source

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
        """What stands between commas, up to a bracket, which is left."""
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
