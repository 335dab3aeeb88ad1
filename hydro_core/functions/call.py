"""The Python function that a text program's lambda is: compiled on its first call.

What is compiled is the syntax tree that has passed the check, never a text of it: it is checked
once more where it is compiled, which may be another process. The function sees its parameters, the
pure builtins and what the caller binds. No import can be reached from it: attributes are read, and
f-strings are formatted, by functions of this package. The object can be pickled: it takes its
syntax along, not its code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.from_tree import (
    ATTRIBUTE,
    FORMATTED,
    LateCall,
    bounded,
    called,
    evaluated,
)
from hydro_core.functions.python_text import copied
from hydro_core.functions.reading.check import check_expression


class TextCall(LateCall):
    """A callable that compiles the checked expression."""

    __slots__ = ("_bindings", "_node")

    def __init__(self, node: ast.expr, bindings: Mapping[str, Any]) -> None:
        self._node = node
        self._bindings = {name: bindings[name] for name in sorted(_names(node) & set(bindings))}

    def _make(self) -> Callable[..., Any]:
        made: Callable[..., Any] = compiled(self._node, self._bindings)
        return made

    def __reduce__(self) -> tuple[type, tuple[ast.expr, dict[str, Any]]]:
        return TextCall, (self._node, self._bindings)


def compiled(node: ast.expr, bindings: Mapping[str, Any]) -> Any:
    """The value of an expression in Python, if it passes the check; a lambda is not called."""
    check_expression(node, bindings)
    return evaluated(_Guarded().visit(copied(node)), {**BUILTINS, **bindings})


class _Guarded(ast.NodeTransformer):
    """Attributes are read, values of f-strings formatted, and large results bounded, by guards."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return called(ast.Name(ATTRIBUTE, ast.Load()), node.value, ast.Constant(node.attr))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.copy_location(bounded(node), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        spec = node.format_spec or ast.Constant("")
        conversion = ast.Constant("" if node.conversion < 0 else chr(node.conversion))
        text = called(ast.Name(FORMATTED, ast.Load()), node.value, conversion, spec)
        return ast.FormattedValue(text, -1, None)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
