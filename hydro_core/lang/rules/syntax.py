"""Tokens, expressions and syntax of rules; every part has its location."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from hydro_core.errors import Diagnostic, ProgramError, Span, TypeProblem
from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.from_tree import copied
from hydro_core.functions.read import constant, read_function
from hydro_core.functions.reading.check import check_expression
from hydro_core.functions.tree import Fn
from hydro_core.lang.source import Source
from hydro_core.types.values import ValueProblem

# Syntax of rules; every part has its location.


Time = Literal["now", "next", "async"]


@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression: its tree, and its start in the source."""

    tree: ast.expr
    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The expression as it is written."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def span(self) -> Span:
        return self.source.span(self.start, self.end)

    def locate(self, node: ast.AST) -> tuple[int, int]:
        """Line and column of a part of it, in the file."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 1)
        lines = f"({self.source.text[self.start : self.end]}".split("\n")
        return self.source.position(self.source.offset_within(self.start, lines, line, column))


ArgumentKind = Literal["variable", "wildcard", "expression", "gathered"]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a predicate; `name` of a variable, `column` if it is named."""

    kind: ArgumentKind
    written: RuleExpression
    name: str = ""
    column: str | None = None

    @property
    def span(self) -> Span:
        return self.written.span


@dataclass(frozen=True, slots=True)
class Mention:
    """A predicate with its arguments."""

    predicate: str
    arguments: tuple[Argument, ...]
    span: Span
    name_span: Span

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that are arguments by themselves, each once."""
        return tuple(dict.fromkeys(a.name for a in self.arguments if a.kind == "variable"))


@dataclass(frozen=True, slots=True)
class BodyCondition:
    """A condition, or with a `target` the expression of that variable."""

    written: RuleExpression
    variables: frozenset[str]
    target: str | None = None

    @property
    def span(self) -> Span:
        return self.written.span


@dataclass(frozen=True, slots=True)
class Literals:
    """A body: positive atoms, negated atoms, and conditions, in the order of the text."""

    positive: tuple[Mention, ...] = ()
    negative: tuple[Mention, ...] = ()
    conditions: tuple[BodyCondition, ...] = ()

    def atoms(self) -> Iterator[tuple[Mention, bool]]:
        """All atoms, each with a flag for negation."""
        yield from ((atom, False) for atom in self.positive)
        yield from ((atom, True) for atom in self.negative)


@dataclass(frozen=True, slots=True)
class DedalusRule:
    """`head :- body`; `at` is the only tick of a fact that holds in one tick."""

    head: Mention
    time: Time
    body: Literals
    span: Span
    at: int | None = None

    @property
    def has_aggregates(self) -> bool:
        """True if the head aggregates the rows of the body."""
        return any(a.kind == "gathered" for a in self.head.arguments)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.input p(a: long, b: string)` or `.decl …`; a column without a type has None."""

    name: str
    columns: tuple[tuple[str, str | None], ...] | None
    span: Span
    is_input: bool


@dataclass(frozen=True, slots=True)
class Dependency:
    """`.fd p: a, b -> c`: a functional dependency of an input."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    span: Span


@dataclass(slots=True)
class RuleProgram:
    """The statements of a text."""

    source: Source
    rules: list[DedalusRule] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    outputs: list[tuple[str, Span]] = field(default_factory=list)
    never: list[tuple[Literals, Span]] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)


# Tokens of rules: names, numbers, texts, signs, line ends, the dot that ends a rule; their reader.
#
# Comments become blanks, so offsets stay the same. A dot ends a rule if only blanks follow it on
# the line, as in `p(x) :- q(x).`; the one of `x.name` does not.


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
    """The tokens of a text, the text with blanks for comments, and the problems in it."""
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
    """The number of open brackets after a token; none at `:-`, even if one before it was not
    closed.
    """
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
    """Reads the tokens of a text from its start."""

    def __init__(self, source: Source, tokens: Sequence[RuleToken]) -> None:
        self.source, self.tokens, self.at = source, tokens, 0

    def skip_lines(self) -> bool:
        """Goes to the next token that is no line end; False: there is none."""
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "line":
            self.at += 1
        return self.at < len(self.tokens)

    def skip_lines_before(self, text: str) -> None:
        """Goes to a sign if it is next, possibly on another line."""
        at = self.at
        if not self.skip_lines() or not self.sees(text):
            self.at = at

    def peek(self) -> RuleToken | None:
        """The next token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sees(self, text: str) -> bool:
        """True if the next token is this one."""
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
        """The list of elements between commas, up to a closing bracket, which is not taken."""
        found: list[T] = []
        if self.sees(close):
            return found
        while True:
            found.append(read())
            if not self.sees(","):
                return found
            self.at += 1

    def until(self, stops: Sequence[str]) -> int:
        """The end of the text before one of these signs, outside of brackets, or before a rule's
        end.
        """
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
        """Goes to the end of a wrong statement, at least one token from its start.

        That is after its dot, or before a line that begins like a statement.
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
        """The location of a token."""
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


# Expressions of rules: Python's; names that are no functions are variables.


_WORDS: Mapping[str, Any] = {json.dumps(value): value for value in (True, False, None)}


def read_expression(source: Source, clean: str, start: int, end: int) -> RuleExpression:
    """The expression between two offsets; `clean` is the text without its comments.

    Raises:
        ProgramError: it is no expression of Python (code `syntax`).
    """
    text = clean[start:end]
    skipped = len(text) - len(text.lstrip())
    start, end = start + skipped, start + len(text.rstrip())
    text = clean[start:end]
    try:
        tree = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
        said = wrong.msg if isinstance(wrong, SyntaxError) else str(wrong)
        cure = "conditions and arguments are Python expressions of variables: `x + 1`, `len(s) > 3`"
        message = f"`{' '.join(text.split())}` is no expression: {said}"
        span = source.span(start, max(end, start + 1))
        raise ProgramError.of("syntax", message, span, help=cure) from None
    return RuleExpression(_Words().visit(tree), source, start, end)


class _Words(ast.NodeTransformer):
    """Replaces `true`, `false` and `null` by their values."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _WORDS:
            return ast.copy_location(ast.Constant(_WORDS[node.id]), node)
        return node


def variables_of(
    tree: ast.expr, constants: Collection[str], known: Collection[str] = ()
) -> frozenset[str]:
    """The names in an expression that are neither called nor bound in it, nor constants.

    Args:
        tree: the expression.
        constants: names that a run of the program gives.
        known: names that are variables, even if they are names of classes too, as in `date.year`.
    """
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    owners = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id in own or node.id in constants:
            continue
        is_function = id(node) in called and node.id in BUILTINS
        of_class = id(node) in owners and isinstance(BUILTINS.get(node.id), type)
        if node.id in known or not (is_function or of_class):
            found.add(node.id)
    return frozenset(found)


def variable(name: str, at: ast.expr) -> ast.expr:
    """A variable at the location of an expression."""
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def as_function(
    written: RuleExpression, columns: Mapping[str, str], constants: Mapping[str, Any]
) -> Fn:
    """An expression as a function of a row; `columns` are the columns of its variables.

    Raises:
        ProgramError: it has a form that a function may not have.
    """
    used = {n.id for n in ast.walk(written.tree) if isinstance(n, ast.Name)}
    row = next(name for name in ("r", "row", "the_row", "r_1") if name not in used)
    body = _Columns(row, columns).visit(copied(written.tree))
    arguments = ast.arguments([], [ast.arg(row)], None, [], [], None, [])
    tree = ast.copy_location(ast.Lambda(arguments, body), written.tree)
    ast.fix_missing_locations(tree)
    try:
        # The check reads the expression as it is written, so that a message names the variable.
        parameters = ast.arguments([], [*map(ast.arg, columns)], None, [], [], None, [])
        as_written = ast.copy_location(ast.Lambda(parameters, written.tree), written.tree)
        check_expression(as_written, constants, written.locate)
        fn = read_function(tree, constants, locate=written.locate)
    except TypeProblem as wrong:
        span = written.span if wrong.place == (0, 0) else written.span.at(*wrong.place)
        cure = wrong.help or "an expression is made of variables, constants and pure functions"
        raise ProgramError.of(wrong.code, wrong.message, span, help=cure) from None
    return replace(fn, span=written.span)


class _Columns(ast.NodeTransformer):
    """Replaces variables by columns of the row."""

    def __init__(self, row: str, columns: Mapping[str, str]) -> None:
        self.row, self.columns = row, columns

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.columns or isinstance(node.ctx, ast.Store):
            return node
        row = ast.copy_location(ast.Name(self.row, ast.Load()), node)
        name = self.columns[node.id]
        if not name.startswith("_"):
            return ast.copy_location(ast.Attribute(row, name, ast.Load()), node)
        return ast.copy_location(ast.Subscript(row, ast.Constant(name), ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """The name of a called function is no variable."""
        function = node.func
        if not isinstance(function, ast.Name):
            function = self.visit(function)
        arguments = [self.visit(a) for a in node.args]
        keywords = [self.visit(k) for k in node.keywords]
        return ast.copy_location(ast.Call(function, arguments, keywords), node)


def constant_of(written: RuleExpression, constants: Mapping[str, Any]) -> Any:
    """The value of an expression without variables.

    Raises:
        ProgramError: it has no value.
    """
    try:
        return constant(written.tree, constants, locate=written.locate)
    except (TypeProblem, ValueProblem) as wrong:
        cure = getattr(wrong, "help", None) or 'a fact is made of values: `head(1, "a").`'
        raise ProgramError.of("type", str(wrong), written.span, help=cure) from None
