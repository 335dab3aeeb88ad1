"""Terms as people and programs write them: `user.id`, `["0", "=_ % 2"]`."""

from __future__ import annotations

import ast

from hydro_core.analysis.partition.terms import At, KeyTerm, fields_of
from hydro_core.functions.from_tree import Syntax, called
from hydro_core.functions.tree import Const, Op, Param
from hydro_core.types.item import FieldPath

STEP = "="
"""A path may end in a function of what it leads to, an expression in `_`: `=_ % 2`."""


def as_path(term: KeyTerm) -> list[str]:
    """The way to a value: the steps to a field, and maybe the expression of what is there.

    >>> as_path(At(("user", "id")))
    ['user', 'id']
    >>> as_path(Op("%", (At(("0",)), Const(2))))
    ['0', '=_ % 2']
    """
    if isinstance(term, At):
        return list(term.path)
    paths = sorted(fields_of(term))
    around = _common(paths[0], paths[-1])  # of sorted paths, these have the least in common
    return [*around, STEP + _text(term, len(around))]


def _common(one: FieldPath, other: FieldPath) -> FieldPath:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def as_text(term: KeyTerm) -> str:
    """The value as a person names it: `user.id`, `(the item)`, `_[0] % 2`."""
    if isinstance(term, At):
        return ".".join(term.path) or "(the item)"
    return _text(term, 0)


def _text(term: KeyTerm, skipped: int) -> str:
    return ast.unparse(ast.fix_missing_locations(_Shown(skipped).expr(term)))


class _Shown(Syntax):
    """Syntax of terms, in which `_` stands for what the first steps of all paths lead to."""

    def __init__(self, skipped: int) -> None:
        super().__init__(shown={})
        self._skipped = skipped

    def _param(self, node: Param, around: None) -> ast.expr:
        found: ast.expr = ast.Name("_", ast.Load())
        for step in node.path[self._skipped :] if isinstance(node, At) else ():
            if step.isidentifier():
                found = ast.Attribute(found, step, ast.Load())
            else:
                key = ast.Constant(int(step) if step.isdigit() else step)
                found = ast.Subscript(found, key, ast.Load())
        return found

    def _op(self, node: Op, around: None) -> ast.expr:
        if node.family != "unread":
            return super()._op(node, around)
        parts = (part for part in node.args if not isinstance(part, Const))
        return called(ast.Name(node.name.strip("?()"), ast.Load()), *map(self.expr, parts))
