"""The Python function that a text program's lambda is: compiled on its first call.

It sees its parameters, the pure builtins and what the caller binds; attributes are read through a
guard that knows what each kind of value has. The object can be pickled: it takes its syntax along,
not its code.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from hydro_core.functions.allowed import BUILTINS, attribute

_GUARD = " attribute"
"""No program can write this name."""


class TextCall:
    """A callable that compiles the checked expression when it is first called."""

    __slots__ = ("_bindings", "_compiled", "_node")

    def __init__(self, node: ast.expr, bindings: Mapping[str, Any]) -> None:
        self._node = node
        self._bindings = {name: bindings[name] for name in sorted(_names(node) & set(bindings))}
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """The lambda's result."""
        if self._compiled is None:
            self._compiled = compiled(self._node, self._bindings)
        return self._compiled(*arguments)

    def __reduce__(self) -> tuple[type, tuple[ast.expr, dict[str, Any]]]:
        return TextCall, (self._node, self._bindings)


def compiled(node: ast.expr, bindings: Mapping[str, Any]) -> Any:
    """The value of a checked expression in Python; a lambda is not called by this."""
    guarded = ast.Expression(_Guard().visit(_copy(node)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `x is 1` means what it means in Python
        code = compile(ast.fix_missing_locations(guarded), "<program>", "eval")
    scope = {"__builtins__": {"__import__": _library}, **BUILTINS, **bindings, _GUARD: attribute}
    return eval(code, scope)  # noqa: S307 - the expression has passed the check


def _library(name: str, *arguments: Any) -> Any:
    """What `strftime` and `strptime` import on their own; no program can name this."""
    if name not in ("time", "_strptime"):
        raise ImportError(name)
    return __import__(name, *arguments)


class _Guard(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        base = self.visit(node.value)
        return ast.copy_location(
            ast.Call(
                func=ast.Name(id=_GUARD, ctx=ast.Load()),
                args=[base, ast.Constant(value=node.attr)],
                keywords=[],
            ),
            node,
        )


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
