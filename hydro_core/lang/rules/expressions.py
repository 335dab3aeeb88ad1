"""Expressions of rules: Python's, of which names that are no functions are variables."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from hydro_core.errors import ProgramError, TypeProblem
from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.fn import Fn
from hydro_core.functions.python_text import copied
from hydro_core.functions.read import constant, read_function
from hydro_core.functions.reading.check import check_expression
from hydro_core.lang.rules.syntax import RuleExpression
from hydro_core.lang.source import Source
from hydro_core.types.values import ValueProblem

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
    """`true`, `false` and `null` as the values that they are."""

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
        constants: names that whoever runs the program gives.
        known: names that are variables, even where a class has them too, as in `date.year`.
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
    """A variable, in the place of an expression."""
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def as_function(
    written: RuleExpression, columns: Mapping[str, str], constants: Mapping[str, Any]
) -> Fn:
    """An expression as a function of a row; `columns` are those of its variables.

    Raises:
        ProgramError: it holds what a function may not hold.
    """
    used = {n.id for n in ast.walk(written.tree) if isinstance(n, ast.Name)}
    row = next(name for name in ("r", "row", "the_row", "r_1") if name not in used)
    body = _Columns(row, columns).visit(copied(written.tree))
    arguments = ast.arguments([], [ast.arg(row)], None, [], [], None, [])
    tree = ast.copy_location(ast.Lambda(arguments, body), written.tree)
    ast.fix_missing_locations(tree)
    try:
        # What is written is judged as it is written, so that a message names the variable.
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
    """Variables as columns of the row."""

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
        """The name of a function that is called is no variable."""
        function = node.func
        if not isinstance(function, ast.Name):
            function = self.visit(function)
        arguments = [self.visit(a) for a in node.args]
        keywords = [self.visit(k) for k in node.keywords]
        return ast.copy_location(ast.Call(function, arguments, keywords), node)


def constant_of(written: RuleExpression, constants: Mapping[str, Any]) -> Any:
    """The value of an expression without variables.

    Raises:
        ProgramError: it has none.
    """
    try:
        return constant(written.tree, constants, locate=written.locate)
    except (TypeProblem, ValueProblem) as wrong:
        cure = getattr(wrong, "help", None) or 'a fact is made of values: `head(1, "a").`'
        raise ProgramError.of("type", str(wrong), written.span, help=cure) from None
