"""Expressions become trees: operators, names, attributes, subscripts and calls."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from itertools import islice
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import BUILTINS, CLASS_ATTRIBUTES, METHODS
from hydro_core.functions.kinds import Place
from hydro_core.functions.library.operators import SYNTAX
from hydro_core.functions.library.registry import ALL_METHODS, FUNCTIONS
from hydro_core.functions.reading.base import LIMIT, FunctionReading
from hydro_core.functions.reading.scope import (
    Binding,
    Builtin,
    Constant,
    Definition,
    ForeignValue,
    FunctionNode,
    Local,
    LocalFunction,
    Scope,
    member,
    within,
)
from hydro_core.functions.tree import (
    Const,
    Expr,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    Spread,
    function_node,
    is_function,
    nodes,
)

# Operators, names, attributes and subscripts become trees.
#
# An expression outside the closed set of trees becomes an operation without an entry, on the names
# that it reads: a tree never claims more than the expression means.


_SYMBOLS: Mapping[type[ast.AST], str] = {kind: name for name, kind in SYNTAX.items()}


def binary_symbol(op: ast.operator) -> str | None:
    """The operator as trees write it, None for `@`."""
    return _SYMBOLS.get(type(op))


class Expressions(FunctionReading):
    """Reads everything but calls, displays and statements."""

    def read_Constant(self, node: ast.Constant, _: Scope) -> Expr:  # noqa: N802
        if isinstance(node.value, complex) or node.value is ...:
            return Op("?(constant)", (), place=self.place(node))
        return Const(node.value, self.place(node))

    def read_Name(self, node: ast.Name, scope: Scope) -> Expr:  # noqa: N802
        """A local name, or a value that the function closes over."""
        if node.id not in scope.names:
            return self.as_value(self.binding(node), node, scope)
        match scope.names[node.id]:
            case LocalFunction(inner) as local:
                if local.level is scope.level and isinstance(inner, ast.Lambda):
                    return self.expr(inner, scope)
                return self.opaque("call", inner, scope)
            case Param(name):
                return Param(name, self.place(node))
            case known:
                self.read += sum(1 for _ in islice(nodes(known), LIMIT))
                return known

    def binding(self, node: ast.Name) -> Binding:
        """The meaning of a free name."""
        found = self.find(node.id)
        if found is None:
            near = difflib.get_close_matches(node.id, BUILTINS, 1)
            cure = f"did you mean `{near[0]}`?" if near else None
            place = self.place(node)
            raise TypeProblem(f"there is no name `{node.id}`", cure, place=place, code="name")
        return found

    def as_value(self, binding: Binding, node: ast.expr, scope: Scope) -> Expr:
        """A name that is not called: a constant, or a function as an argument of another."""
        match binding:
            case Constant(value):
                return Const(value, self.place(node))
            case Builtin(name):
                return self._wrapped(name, node, scope)
            case Definition(node=ast.Lambda(args=args) | ast.FunctionDef(args=args)):
                params = [ast.Name(a.arg, ast.Load()) for a in args.args]
                names = {p.id: Param(scope.new(p.id)) for p in params}
                call = ast.copy_location(ast.Call(node, list(params), []), node)
                inner = scope.branch(dict(names))
                body = self.call_of(binding, call, inner)
                if not self.is_pure(call, inner):
                    scope.forget_changeable()
                own = tuple(p.name for p in names.values())
                return function_node(own, body, self.place(node))
            case ForeignValue(name):
                scope.forget_changeable()
                return Op(f"?{name}", (), place=self.place(node))

    def call_of(self, binding: Binding, node: ast.Call, scope: Scope) -> Expr:
        """A call of the binding; defined with the calls."""
        raise NotImplementedError

    def _wrapped(self, label: str, node: ast.expr, scope: Scope) -> Expr:
        """A named function as a function of one argument."""
        name, place = scope.new("x"), self.place(node)
        return function_node((name,), Op(label, (Param(name),), place=place), place)

    def read_Attribute(self, node: ast.Attribute, scope: Scope) -> Expr:  # noqa: N802
        """A field; or an attribute of a class or module."""
        match node.value:
            case ast.Name(id=base) if base not in scope.names:
                match self.binding(node.value):
                    case Builtin(kind):
                        return self._class_attribute(kind, node, scope)
                    case ForeignValue() as module:
                        found = member(module, node.attr)
                        if found is not None:
                            return self.as_value(found, node, scope)
                    case _:
                        pass
        return Part(self.expr(node.value, scope), node.attr, True, self.place(node))

    def _class_attribute(self, kind: str, node: ast.Attribute, scope: Scope) -> Expr:
        whole = f"{kind}.{node.attr}"
        value = CLASS_ATTRIBUTES.get(whole)
        place = self.place(node)
        if value is not None and not callable(value):
            return Const(value, place)
        if value is not None:
            return self._wrapped(whole, node, scope)
        if node.attr in METHODS.get(BUILTINS.get(kind, type), ()):
            return self._wrapped(f".{node.attr}", node, scope)
        return Op(f"?{whole}", (), place=place)

    def read_Subscript(self, node: ast.Subscript, scope: Scope) -> Expr:  # noqa: N802
        """`x[i]` and `x[a:b]`."""
        base = as_constant(self.expr(node.value, scope))
        place = self.place(node)
        match node.slice:
            case ast.Slice(lower, upper, step):
                given = (("l", lower), (":h", upper), (":s", step))
                name = "".join(letter if bound else letter[:-1] for letter, bound in given)
                bounds = (self.expr(bound, scope) for _, bound in given if bound)
                name = name if step else name[:-1]
                return Op(f"[{name}]", (base, *bounds), place=place)
            case index:
                return part_of(base, self.expr(index, scope), place)

    def read_UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Expr:  # noqa: N802
        """`-x`; a constant of a constant number."""
        operand = self.expr(node.operand, scope)
        op = _SYMBOLS[type(node.op)]
        if op == "-x" and isinstance(operand, Const) and type(operand.value) in (int, float):
            return Const(-operand.value, self.place(node))
        return Op(op, (operand,), place=self.place(node))

    def read_BinOp(self, node: ast.BinOp, scope: Scope) -> Expr:  # noqa: N802
        left, right = self.expr(node.left, scope), self.expr(node.right, scope)
        return Op(binary_symbol(node.op) or "?@", (left, right), place=self.place(node))

    def read_Compare(self, node: ast.Compare, scope: Scope) -> Expr:  # noqa: N802
        first, second = self.expr(node.left, scope), self.expr(node.comparators[0], scope)
        more = [self.maybe(c, scope) for c in node.comparators[1:]]
        ops = [_SYMBOLS[type(op)] for op in node.ops]
        return Op(",".join(ops), (first, second, *more), place=self.place(node))

    def read_BoolOp(self, node: ast.BoolOp, scope: Scope) -> Expr:  # noqa: N802
        """`a and b`: names that an operand binds are certain in later operands, not after the
        whole.
        """
        first, *others = node.values
        values = [self.expr(first, scope)]
        branch = scope.branch()
        values += [self.expr(other, branch) for other in others]
        scope.join(branch)
        return Op(_SYMBOLS[type(node.op)], tuple(values), place=self.place(node))

    def read_IfExp(self, node: ast.IfExp, scope: Scope) -> Expr:  # noqa: N802
        test = self.expr(node.test, scope)
        then, otherwise = scope.branch(), scope.branch()
        trees = self.expr(node.body, then), self.expr(node.orelse, otherwise)
        scope.join(then)
        scope.join(otherwise)
        return IfElse(test, *trees, self.place(node))

    def read_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Expr:  # noqa: N802
        """`(x := a)`: binds x from here on."""
        value = self.expr(node.value, scope)
        scope.names[node.target.id] = value
        return value


def part_of(base: Expr, index: Expr, place: Place) -> Expr:
    """`base[index]`."""
    if isinstance(index, Const) and type(index.value) in (int, str):
        return Part(base, index.value, place=place)
    return Op("[]", (base, index), place=place)


def as_constant(expr: Expr) -> Expr:
    """A display of constants as one constant; other expressions unchanged."""
    match expr:
        case Make("tuple" | "row" as kind, parts) if all(isinstance(p, Const) for p in parts):
            fields = expr.fields or {}
            entries = {name: p.value for name, p in fields.items() if isinstance(p, Const)}
            return Const(entries if kind == "row" else tuple(entries.values()), expr.place)
        case _:
            return expr


# Calls become trees: of builtins, of methods, and of functions, which are read in place.


_DEPTH = 30
"""Largest depth of functions that are inlined within functions."""


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
        return member(binding, attr) if isinstance(binding, ForeignValue) else None

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
            case ForeignValue(name):
                return self._foreign(name, node, scope)
            case Constant():
                return self._foreign("call", node, scope)

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[tuple[Expr, ...], tuple[Any, ...]]:
        args = tuple(self.expr(a, scope) for a in node.args)
        return args, tuple((k.arg, self.expr(k.value, scope)) for k in node.keywords)

    def _builtin(self, name: str, node: ast.Call, scope: Scope) -> Expr:
        """A call of an entry of the library; keyword arguments become positional."""
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
            case ForeignValue(name) as module:
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
        """The function's body over its arguments; None if it cannot replace its call.

        A function that is defined within the function sees the enclosing names, and has no
        `definition`.
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
    """True if the parameters are plain names, without defaults or stars."""
    others = (args.vararg, args.kwarg, args.defaults, args.kwonlyargs, args.posonlyargs)
    return not any(others)
