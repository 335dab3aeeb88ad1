"""Terms as people and programs write them: `user.id`, `["0", "=_ % 2"]`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from hydro_core.analysis.partition.terms import At, KeyTerm, fields_of
from hydro_core.types.item import FieldPath

STEP = "="
"""A path may end in a function of what it leads to, an expression in `_`: `=_ % 2`."""


def as_path(term: KeyTerm) -> list[str]:
    """The way to a value: the steps to a field, and maybe the expression of what is there.

    >>> as_path(At(("user", "id")))
    ['user', 'id']
    >>> as_path(("binary", "%", At(("0",)), ("constant", "int", "2")))
    ['0', '=_ % 2']
    """
    if isinstance(term, At):
        return list(term.path)
    paths = sorted(fields_of(term))
    around = _common(paths[0], paths[-1])  # of sorted paths, these have the least in common
    return [*around, STEP + ast.unparse(_expression(term, len(around)))]


def _common(one: FieldPath, other: FieldPath) -> FieldPath:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def as_text(term: KeyTerm) -> str:
    """The value as a person names it: `user.id`, `(the item)`, `_[0] % 2`."""
    if isinstance(term, At):
        return ".".join(term.path) or "(the item)"
    return ast.unparse(_expression(term, 0))


def as_lambda(terms: Sequence[KeyTerm]) -> ast.Lambda:
    """The function of an item that gives the value of a term, or the tuple of several.

    >>> ast.unparse(as_lambda([("binary", "%", At(("0",)), ("constant", "int", "2"))]))
    'lambda _: _[0] % 2'
    """
    parts = [_expression(term, 0) for term in terms]
    body = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
    made = _read("lambda _: x", x=body)
    assert isinstance(made, ast.Lambda)
    # Read from its text, so that every part of it has a place.
    read = ast.parse(ast.unparse(made), mode="eval").body
    assert isinstance(read, ast.Lambda)
    return read


def _expression(term: Any, skipped: int) -> ast.expr:  # noqa: C901, PLR0911, PLR0912 - a closed set
    def made(part: Any) -> ast.expr:
        return _expression(part, skipped)

    match term:
        case At(path):
            return _field(path[skipped:])
        case ("field" | "attribute", base, step):
            return _step(made(base), str(step))
        case ("index", base, index):
            return ast.Subscript(made(base), made(index))
        case ("slice", base, *bounds):
            return ast.Subscript(made(base), ast.Slice(*(b and made(b) for b in bounds)))
        case ("constant", "tuple" | "list" as kind, *values):
            return _display(kind, [made(v) for v in values])
        case ("constant", "dict", *pairs):
            return ast.Dict([made(k) for k, _ in pairs], [made(v) for _, v in pairs])
        case ("constant", _, text):
            return _read(text)
        case ("unary", op, operand):
            return _read(f"{op} x", x=made(operand))
        case ("binary", op, left, right):
            return _read(f"x {op} y", x=made(left), y=made(right))
        case ("compare", first, *rest):
            names = {f"x{i}": made(part) for i, (_, part) in enumerate(rest)}
            text = " ".join(f"{op} x{i}" for i, (op, _) in enumerate(rest))
            return _read(f"x {text}", x=made(first), **names)
        case ("and" | "or" as op, *values):
            return ast.BoolOp(ast.And() if op == "and" else ast.Or(), [made(v) for v in values])
        case ("if", test, then, otherwise):
            return ast.IfExp(made(test), made(then), made(otherwise))
        case ("call", name, args, keywords):
            return _call(_read(name), args, keywords, skipped)
        case ("method", base, name, args, keywords):
            return _call(ast.Attribute(made(base), name), args, keywords, skipped)
        case ("text", *parts):
            return ast.JoinedStr([_text(part, skipped) for part in parts])
        case ("row", *columns):
            return ast.Dict([ast.Constant(c[1]) for c in columns], [made(c[2]) for c in columns])
        case ("tuple" | "list" | "set" as kind, *parts):
            return _display(kind, [made(part) for part in parts])
        case _:
            name, *parts = (part for part in term if not isinstance(part, int))
            return ast.Call(ast.Name(str(name)), [made(p) for p in parts if type(p) is not str], [])


def _field(path: FieldPath) -> ast.expr:
    found: ast.expr = ast.Name("_")
    for step in path:
        found = _step(found, step)
    return found


def _step(base: ast.expr, step: str) -> ast.expr:
    if step.isdigit():
        return ast.Subscript(base, ast.Constant(int(step)))
    return ast.Attribute(base, step) if step.isidentifier() else _named(base, step)


def _named(base: ast.expr, step: str) -> ast.expr:
    return ast.Subscript(base, ast.Constant(step))


def _display(kind: str, values: list[ast.expr]) -> ast.expr:
    made: ast.expr = {"tuple": ast.Tuple, "list": ast.List, "set": ast.Set}[kind](values)
    return made


def _call(function: ast.expr, args: Any, keywords: Any, skipped: int) -> ast.expr:
    given = [_expression(arg, skipped) for arg in args]
    named = [ast.keyword(name, _expression(value, skipped)) for name, value in keywords]
    return ast.Call(function, given, named)


def _text(part: Any, skipped: int) -> ast.expr:
    if isinstance(part, str):
        return ast.Constant(part)
    value, conversion, spec = part
    code = ord(conversion[-1]) if conversion else -1
    shown = ast.JoinedStr([ast.Constant(spec)]) if spec else None
    return ast.FormattedValue(_expression(value, skipped), code, shown)


def _read(text: str, **parts: ast.expr) -> ast.expr:
    """The expression of a text with others in the place of its names."""
    read: ast.expr = _Filled(parts).visit(ast.parse(text, mode="eval").body)
    return read


class _Filled(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._parts.get(node.id, node)
