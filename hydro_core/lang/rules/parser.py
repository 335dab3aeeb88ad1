"""Tokens to statements: rules, and declarations of predicates.

A wrong statement is reported once and left out; reading continues after it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from hydro_core.catalog.aggregates import AGGREGATES, NAMES
from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.allowed import BUILTINS
from hydro_core.lang.rules.syntax import (
    RULE,
    Argument,
    BodyCondition,
    Declaration,
    DedalusRule,
    Dependency,
    Literals,
    Mention,
    RuleExpression,
    RuleProgram,
    RuleToken,
    Time,
    TokenReader,
    read_expression,
    tokenize,
    variables_of,
)
from hydro_core.lang.source import Source, did_you_mean

_DIRECTIVES = ("input", "output", "decl", "never", "fd")
_DECLARED = "it is written `.input edge(src: long, dst: long)`"
_FD = "it is written `.fd cities: city -> country`"
_NOT = ("!", "~")


def parse_rules_text(
    source: Source, constants: Collection[str]
) -> tuple[RuleProgram, list[Diagnostic]]:
    """The statements of a text that can be read, and the problems of the others.

    Args:
        source: the text.
        constants: names that are no variables.
    """
    tokens, clean, problems = tokenize(source)
    reader = _Reader(source, tokens, clean, constants)
    program = RuleProgram(source)
    while reader.skip_lines():
        start = reader.at
        try:
            if reader.sees("."):
                reader.directive(program)
            else:
                program.rules.append(reader.rule())
        except ProgramError as wrong:
            problems += wrong.diagnostics
            reader.recover(start)
    return program, problems


class _Reader(TokenReader):
    def __init__(
        self, source: Source, tokens: Sequence[RuleToken], clean: str, constants: Collection[str]
    ) -> None:
        super().__init__(source, tokens)
        self.clean, self.constants = clean, constants
        self.predicates = _predicates(tokens)

    # Statements

    def directive(self, program: RuleProgram) -> None:
        dot = self.take(".")
        word = self.name("a word such as `input` must follow the dot", _DECLARED)
        match word.text:
            case "input" | "decl":
                program.declarations.append(self.declaration(dot, is_input=word.text == "input"))
            case "output":
                program.outputs += self.outputs()
            case "fd":
                program.dependencies.append(self.dependency(dot))
            case "never":
                body = self.body()
                program.never.append(
                    (body, self.source.span(dot.start, self.tokens[self.at - 1].end))
                )
                self.end_of_rule()
                return
            case _:
                cure = did_you_mean(word.text, _DIRECTIVES) or (
                    f"there are {', '.join(f'`.{d}`' for d in _DIRECTIVES)}"
                )
                raise self.wrong(f"there is no `.{word.text}`", word, cure)
        self.end_of_line(word.text)

    def declaration(self, dot: RuleToken, *, is_input: bool) -> Declaration:
        name = self._predicate(_DECLARED)
        columns: tuple[tuple[str, str | None], ...] | None = None
        last = name
        if self.sees("("):
            self.at += 1
            columns = tuple(self.listed(")", self.column))
            last = self.take(")")
        if is_input and self.sees("from"):
            self.at += 1
            last = self.name("`asset` must follow `from`", ".input payments from asset")
        span = self.source.span(dot.start, last.end)
        return Declaration(name.text, columns, span, is_input)

    def column(self) -> tuple[str, str | None]:
        name = self._column_name(_DECLARED)
        if not self.sees(":"):
            return name.text, None
        self.at += 1
        start = self.peek()
        end = self.until((",", ")"))
        if start is None or end == start.start:
            raise self.wrong(f"the type of `{name.text}` is missing", name, _DECLARED)
        return name.text, self.clean[start.start : end].strip()

    def outputs(self) -> list[tuple[str, Span]]:
        cure = "it is written `.output path, lonely`"
        names = self.listed("", lambda: self._predicate(cure))
        return [(name.text, self.span(name)) for name in names]

    def dependency(self, dot: RuleToken) -> Dependency:
        name = self.name("the name of an input must stand here", _FD)
        self.take(":", _FD)
        left = self.names()
        self.take("->", _FD)
        right = self.names()
        span = self.source.span(dot.start, self.tokens[self.at - 1].end)
        return Dependency(name.text, left, right, span)

    def names(self) -> tuple[str, ...]:
        return tuple(name.text for name in self.listed("", lambda: self._column_name(_FD)))

    def _predicate(self, cure: str) -> RuleToken:
        return self.name("the name of a predicate must stand here", cure)

    def _column_name(self, cure: str) -> RuleToken:
        return self.name("the name of a column must stand here", cure)

    def rule(self) -> DedalusRule:
        self.skip_lines()
        first = self.peek()
        head = self.atom("a rule begins with its head", in_head=True)
        time, at = self.time()
        body = Literals()
        if self.sees(":-") or self.sees("<-"):
            self.at += 1
            body = self.body()
        assert first is not None
        span = self.source.span(first.start, self.tokens[self.at - 1].end)
        self.end_of_rule()
        if at is not None and (body.positive or body.negative or body.conditions):
            message = "a tick by its number is for facts: a rule holds now, at `@next` or `@async`"
            cure = "take `tick(n)` into the body, and `n == 3`"
            raise ProgramError.of("syntax", message, span, help=cure)
        return DedalusRule(head, time, body, span, at)

    def time(self) -> tuple[Time, int | None]:
        if not self.sees("@"):
            return "now", None
        self.at += 1
        token = self.peek()
        if token is not None and token.kind == "number" and token.text.isdigit():
            self.at += 1
            return "now", int(token.text)
        cure = "a head holds now, in the next tick (`@next`) or in some later one (`@async`)"
        word = self.name("`next`, `async` or a tick's number must follow `@`", cure)
        if word.text == "next":
            return "next", None
        if word.text == "async":
            return "async", None
        raise self.wrong(f"there is no time `@{word.text}`", word, cure)

    # Bodies

    def body(self) -> Literals:
        positive: list[Mention] = []
        negative: list[Mention] = []
        written: list[tuple[RuleExpression, str | None]] = []
        while True:
            self.skip_lines()
            token = self.peek()
            negated = token if token is not None and token.text in (*_NOT, "not") else None
            self.at += negated is not None
            if self.is_atom():
                (negative if negated is not None else positive).append(
                    self.atom("a predicate must stand here", in_head=False)
                )
            elif negated is not None and negated.text in _NOT:
                cure = f"a condition is negated by `not`: `not x > 3`. {RULE}"
                raise self.wrong(f"a predicate must follow `{negated.text}`", negated, cure)
            else:
                written.append(self.condition(negated))
            self.skip_lines_before(",")
            if not self.sees(","):
                break
            self.at += 1
        return self.literals(positive, negative, written)

    def literals(
        self,
        positive: Sequence[Mention],
        negative: Sequence[Mention],
        written: Sequence[tuple[RuleExpression, str | None]],
    ) -> Literals:
        known = {v for atom in (*positive, *negative) for v in atom.variables}
        known |= {target for _, target in written if target is not None}
        conditions = tuple(
            BodyCondition(w, variables_of(w.tree, self.constants, known), target)
            for w, target in written
        )
        return Literals(tuple(positive), tuple(negative), conditions)

    def is_atom(self) -> bool:
        """True if a predicate is next: `name(…)`, without a continuation as an expression."""
        token = self.peek()
        following = self.tokens[self.at + 1 : self.at + 2]
        if token is None or token.kind != "name" or not following or following[0].text != "(":
            return False
        if token.text in BUILTINS and token.text not in self.predicates:
            return False
        depth, at = 0, self.at + 1
        while at < len(self.tokens):
            depth += (self.tokens[at].text in "([{") - (self.tokens[at].text in ")]}")
            at += 1
            if depth == 0:
                break
        after = next((t for t in self.tokens[at:] if t.kind != "line"), None)
        return after is None or after.kind in ("end", "name") or after.text in (",", ".")

    def condition(self, negated: RuleToken | None) -> tuple[RuleExpression, str | None]:
        token = self.peek()
        if token is None or token.kind == "end" or token.text == ",":
            raise self.wrong("a predicate or a condition must stand here", token, RULE)
        start = negated.start if negated is not None else token.start
        equals = self.equals_ahead()
        if equals is None or negated is not None:
            end = self.until((",",))
            return self.expression(start, end), None
        left = self.expression(start, equals.start)
        end = self.until((",",))
        right = self.expression(equals.end, end)
        if isinstance(left.tree, ast.Name) and left.tree.id not in self.constants:
            return right, left.tree.id
        if isinstance(right.tree, ast.Name) and right.tree.id not in self.constants:
            return left, right.tree.id
        both = ast.copy_location(ast.Compare(left.tree, [ast.Eq()], [right.tree]), left.tree)
        return RuleExpression(both, self.source, start, end), None

    def equals_ahead(self) -> RuleToken | None:
        """The `=` at the top of the condition that begins here."""
        depth = 0
        for token in self.tokens[self.at :]:
            depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
            if depth == 0 and (token.kind == "end" or token.text == ","):
                return None
            if depth == 0 and token.text == "=":
                return token
        return None

    # Atoms

    def atom(self, message: str, *, in_head: bool) -> Mention:
        name = self.name(message, RULE)
        self.take("(", f"arguments must follow `{name.text}`: `{name.text}(x, y)`")
        arguments = tuple(self.listed(")", lambda: self.argument(in_head=in_head)))
        close = self.take(")")
        span = self.source.span(name.start, close.end)
        return Mention(name.text, arguments, span, self.span(name))

    def argument(self, *, in_head: bool) -> Argument:
        token = self.peek()
        following = self.tokens[self.at + 1 : self.at + 2]
        column = None
        if token and token.kind == "name" and following and following[0].text == ":":
            column = token.text
            self.at += 2
            token = self.peek()
        if token is None or token.text in (",", ")"):
            raise self.wrong("an argument is missing here", token, "`_` stands for any value")
        written = self.expression(token.start, self.until((",", ")")))
        match written.tree:
            case ast.Name(id="_"):
                return Argument("wildcard", written, column=column)
            case ast.Name(id=name) if name not in self.constants:
                return Argument("variable", written, name, column)
            case ast.Call(func=ast.Name(id=name)) if in_head and _is_aggregate(written.tree):
                return Argument("gathered", written, NAMES[name], column)
            case _:
                return Argument("expression", written, column=column)

    def expression(self, start: int, end: int) -> RuleExpression:
        return read_expression(self.source, self.clean, start, end)


def _predicates(tokens: Sequence[RuleToken]) -> frozenset[str]:
    """The names of predicates: in heads, and in declarations."""
    found = set()
    fresh = True
    for before, token in zip((None, *tokens), tokens, strict=False):
        if token.kind == "name" and fresh:
            found.add(token.text)
        is_word = before is not None and before.text == "." and token.text in _DIRECTIVES
        fresh = token.kind in ("line", "end") or is_word or (fresh and token.text == ".")
    return frozenset(found)


def _is_aggregate(call: ast.Call) -> bool:
    """True if a call in a head aggregates the rows of the body: `max(x)` does, `max(x, y)` does
    not.
    """
    name = getattr(call.func, "id", "")
    if name not in NAMES or call.keywords:
        return False
    return AGGREGATES[NAMES[name]].takes(len(call.args)) or name not in BUILTINS
