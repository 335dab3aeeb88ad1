"""Calls become trees: of builtins, of methods, and of functions, which are read in place."""

from __future__ import annotations

import ast
from typing import Any

from hydro_core.functions.allowed import BUILTINS, CLASS_ATTRIBUTES, METHODS
from hydro_core.functions.library.registry import ALL_METHODS, FUNCTIONS
from hydro_core.functions.reading.expressions import Expressions
from hydro_core.functions.reading.names import (
    Binding,
    Builtin,
    Constant,
    Definition,
    Foreign,
    FunctionNode,
    member,
)
from hydro_core.functions.reading.scope import Local, LocalFunction, Scope, within
from hydro_core.functions.tree import (
    Const,
    Expr,
    Make,
    Op,
    Param,
    Spread,
    function_node,
    is_function,
)

_DEPTH = 30
"""Functions within functions that are read in place."""


class Calls(Expressions):
    """Reads calls and lambdas."""

    def read_Lambda(self, node: ast.Lambda, scope: Scope) -> Expr:  # noqa: N802
        if not has_plain_parameters(node.args):
            return self.opaque("call", node, scope)
        names: dict[str, Local] = {a.arg: Param(scope.new(a.arg)) for a in node.args.args}
        inner = scope.function(names, sees=True)
        params = tuple(n.name for n in names.values() if isinstance(n, Param))
        found = function_node(params, self.expr(node.body, inner), self.place(node))
        if not self.is_pure(node.body, inner):
            scope.forget_changeable()
        return found

    def read_Call(self, node: ast.Call, scope: Scope) -> Expr:  # noqa: N802
        spread = any(isinstance(a, ast.Starred) for a in node.args)
        if spread or any(k.arg is None for k in node.keywords):
            return self._spread_call(node, scope)
        match node.func:
            case ast.Name(id=name) if name in scope.names:
                return self._local_call(scope.names[name], node, scope)
            case ast.Name() as func:
                return self.call_of(self.binding(func), node, scope)
            case ast.Attribute(value=ast.Name(id=base) as name, attr=attr) if (
                base not in scope.names
            ):
                return self._member_call(self.binding(name), attr, node, scope)
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=base) as name, attr=inner), attr=attr
            ) if base not in scope.names and isinstance(found := self._of(name, inner), Builtin):
                return self._member_call(found, attr, node, scope)
            case ast.Attribute(value=base, attr=attr):
                return self._method(self.expr(base, scope), attr, node, scope)
            case ast.Lambda() as func:
                return self._inline(func, node, scope) or self.opaque("call", node, scope)
            case _:
                return self.opaque("call", node, scope)

    def _of(self, name: ast.Name, attr: str) -> Binding | None:
        """`module.name`, such as `fn.re`."""
        binding = self.binding(name)
        return member(binding, attr) if isinstance(binding, Foreign) else None

    def _spread_call(self, node: ast.Call, scope: Scope) -> Expr:
        match node:
            case ast.Call(ast.Name(id="dict") as name, args=[] | [_]) if "dict" not in scope.names:
                if not any(isinstance(a, ast.Starred) for a in node.args):
                    return self.call_of(self.binding(name), node, scope)
        return self.opaque("(call)", node, scope)

    def call_of(self, binding: Binding, node: ast.Call, scope: Scope) -> Expr:
        match binding:
            case Builtin("dict"):
                return self._dict(node, scope)
            case Builtin(name):
                return self._builtin(name, node, scope)
            case Definition() as definition:
                found = self._inline(definition.node, node, scope, definition)
                return found or self._foreign(definition.name, node, scope)
            case Foreign(name):
                return self._foreign(name, node, scope)
            case Constant():
                return self._foreign("call", node, scope)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[tuple[Expr, ...], tuple[Any, ...]]:
        args = tuple(self.expr(a, scope) for a in node.args)
        return args, tuple((k.arg, self.expr(k.value, scope)) for k in node.keywords)

    def _builtin(self, name: str, node: ast.Call, scope: Scope) -> Expr:
        """A call of what the library has; what it knows by its name is put where it belongs."""
        args, keywords = self._arguments(node, scope)
        entry = FUNCTIONS.get(name)
        defaults = entry.defaults[len(args) :] if entry is not None and keywords else ()
        given = dict(keywords)
        last = max((i for i, (n, _) in enumerate(defaults) if n in given), default=-1)
        parts = [given.pop(n, Const(default)) for n, default in defaults[: last + 1]]
        if parts and not given and not any(p == Const(...) for p in parts):
            return Op(name, (*args, *parts), (), self.place(node))
        return Op(name, args, keywords, self.place(node))

    def _foreign(self, name: str, node: ast.Call, scope: Scope) -> Expr:
        args, keywords = self._arguments(node, scope)
        scope.forget_changeable()
        return Op(f"?{name}", args, keywords, self.place(node))

    def _dict(self, node: ast.Call, scope: Scope) -> Expr:
        args = tuple(self.expr(a, scope) for a in node.args)
        place = self.place(node)
        if not node.keywords and args:
            return Op("dict", args, (), place)
        parts: list[Expr | Spread] = [Spread(Op("dict", (a,), (), place)) for a in args]
        for keyword in node.keywords:
            value = self.expr(keyword.value, scope)
            parts.append(Spread(value) if keyword.arg is None else value)
        names = (*(None for _ in args), *(keyword.arg for keyword in node.keywords))
        return Make("row", tuple(parts), names, place)

    def _member_call(self, binding: Binding, attr: str, node: ast.Call, scope: Scope) -> Expr:
        match binding:
            case Builtin(kind):
                whole = f"{kind}.{attr}"
                if whole in CLASS_ATTRIBUTES:
                    return self._builtin(whole, node, scope)
                if attr in METHODS.get(BUILTINS.get(kind, type), ()) and node.args:
                    base, *args = node.args
                    rest = ast.copy_location(ast.Call(node.func, args, node.keywords), node)
                    return self._method(self.expr(base, scope), attr, rest, scope)
                return self._foreign(whole, node, scope)
            case Foreign(name) as module:
                found = member(module, attr)
                if found is not None:
                    return self.call_of(found, node, scope)
                return self._foreign(f"{name}.{attr}", node, scope)
            case _:
                base_tree = self.as_value(binding, node, scope)
                return self._method(base_tree, attr, node, scope)

    def _method(self, base: Expr, attr: str, node: ast.Call, scope: Scope) -> Expr:
        args, keywords = self._arguments(node, scope)
        if attr in ALL_METHODS:
            return Op(f".{attr}", (base, *args), keywords, self.place(node))
        scope.forget_changeable()
        return Op(f"?{attr}", (base, *args), keywords, self.place(node))

    def _local_call(self, local: Local, node: ast.Call, scope: Scope) -> Expr:
        match local:
            case LocalFunction(inner, level) if level is scope.level:
                return self._inline(inner, node, scope) or self.opaque("call", node, scope)
            case LocalFunction():
                return self.opaque("call", node, scope)
            case _:
                return self._method(local, "call", node, scope)

    def _inline(
        self,
        function: FunctionNode,
        node: ast.Call,
        scope: Scope,
        definition: Definition | None = None,
    ) -> Expr | None:
        """The function's body over its arguments; None where it cannot stand in its call's place.

        One that is defined within the function sees the names around it, and has no `definition`.
        """
        arguments = self._bound(function, node, scope)
        if arguments is None or function in self.inlining or len(self.inlining) >= _DEPTH:
            return None
        lets: list[tuple[str, Expr]] = []
        names: dict[str, Local] = {
            name: value if is_function(value) else scope.held(name, value, lets)
            for name, value in arguments.items()
        }
        inner, outer = scope.function(names, sees=definition is None), (self.find, self.place)
        if definition is not None:
            self.find, self.place = definition.find, definition.locate
        self.inlining.append(function)
        try:
            result = self.body(function, inner)
            parts = [function.body] if isinstance(function, ast.Lambda) else function.body
            if not all(self.is_pure(part, inner) for part in parts):
                scope.forget_changeable()
            return within(lets, result, self.place(node))
        finally:
            self.inlining.pop()
            self.find, self.place = outer

    def _bound(
        self, function: FunctionNode, node: ast.Call, scope: Scope
    ) -> dict[str, Expr] | None:
        names = [a.arg for a in function.args.args]
        given = dict(zip(names, node.args, strict=False))
        given |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        count = len(node.args) + len(node.keywords)
        if (
            not has_plain_parameters(function.args)
            or set(given) != set(names)
            or count != len(names)
        ):
            return None
        return {name: self.expr(given[name], scope) for name in given}

    def body(self, function: FunctionNode, scope: Scope) -> Expr:
        raise NotImplementedError


def has_plain_parameters(args: ast.arguments) -> bool:
    """Whether the parameters are names and nothing else."""
    others = (args.vararg, args.kwarg, args.defaults, args.kwonlyargs, args.posonlyargs)
    return not any(others)
