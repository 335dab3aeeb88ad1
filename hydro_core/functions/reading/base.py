"""What all parts of the reader share: free names, places, and what a tree cannot say."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import ClassVar, NoReturn

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import CLASS_ATTRIBUTES
from hydro_core.functions.kinds import Place
from hydro_core.functions.library.registry import ALL_METHODS
from hydro_core.functions.reading.check import Locate
from hydro_core.functions.reading.names import Builtin, Constant, Define, Find, Foreign, member
from hydro_core.functions.reading.scope import LocalFunction, Scope, UnreadableError, names_in
from hydro_core.functions.tree import Const, Expr, Op

LIMIT = 20_000
"""Nodes of one tree, inlined functions included; a larger function is called as it is."""

_EFFECTS = (
    *(ast.AugAssign, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal),
    *(ast.With, ast.AsyncWith, ast.AsyncFor, ast.Import, ast.ImportFrom, ast.ClassDef),
)


class FunctionReading:
    """The state of reading one function; `expr` reads any expression."""

    readers: ClassVar[dict[type[ast.AST], Callable[..., Expr]]] = {}

    def __init__(self, find: Find, locate: Locate, define: Define) -> None:
        self.find = find
        self.locate = locate
        self.define = define
        self.inlining: list[ast.AST] = []
        self.read = 0

    def expr(self, node: ast.expr, scope: Scope) -> Expr:
        self.read += 1
        if self.read > LIMIT:
            raise UnreadableError
        reader = getattr(self, f"read_{type(node).__name__}", None)
        if reader is None:
            return self.opaque(f"({type(node).__name__})", node, scope)
        found: Expr = reader(node, scope)
        return found

    def maybe(self, node: ast.expr, scope: Scope) -> Expr:
        """The tree of an expression that may not be evaluated: names that it binds are not sure."""
        branch = scope.branch()
        found = self.expr(node, branch)
        scope.join(branch)
        return found

    def place(self, node: ast.AST) -> Place:
        """Where the node stands in the program."""
        return self.locate(node)

    def opaque(self, label: str, node: ast.AST, scope: Scope) -> Expr:
        """What is computed from the names in `node`; with effects, the label loses parentheses."""
        parts = self.parts(node, scope)
        pure = self.is_pure(node, scope)
        if not pure:
            scope.forget_changeable()
        return Op(f"?{label if pure else label.strip('()')}", parts, place=self.place(node))

    def parts(self, node: ast.AST, scope: Scope) -> tuple[Expr, ...]:
        """What the local names in `node` stand for."""
        found: list[Expr] = []
        for name in names_in(node):
            match scope.names.get(name):
                case None | Const():
                    continue
                case LocalFunction(inner):
                    found += self.parts(inner, scope.without(name))
                case local:
                    found.append(local)
        return tuple(found)

    def is_pure(self, node: ast.AST, scope: Scope) -> bool:
        """Whether the node surely changes nothing that existed before."""
        for part in ast.walk(node):
            if isinstance(part, _EFFECTS):
                return False
            if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(
                part.ctx, ast.Load
            ):
                return False
            if isinstance(part, ast.Call) and not self._is_pure_call(part.func, scope):
                return False
        return True

    def _is_pure_call(self, func: ast.expr, scope: Scope) -> bool:
        match func:
            case ast.Name(id=name):
                return name not in scope.names and isinstance(self.find(name), Builtin)
            case ast.Attribute(value=ast.Name(id=base), attr=attr) if base not in scope.names:
                binding = self.find(base)
                if isinstance(binding, Builtin):
                    return f"{base}.{attr}" in CLASS_ATTRIBUTES or attr in ALL_METHODS
                if isinstance(binding, Foreign):
                    return isinstance(member(binding, attr, self.define), Builtin)
                return isinstance(binding, Constant) and attr in ALL_METHODS
            case ast.Attribute(attr=attr):
                return attr in ALL_METHODS
            case _:
                return False

    def refuse(self, node: ast.AST, message: str, cure: str | None = None) -> NoReturn:
        """What cannot be a function of a program at all."""
        raise TypeProblem(message, cure, place=self.place(node))
