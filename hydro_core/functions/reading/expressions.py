"""Operators, names, attributes and subscripts become trees.

What the closed set of trees cannot say becomes an operation without an entry, of what it is
computed from: a tree never says more than the expression means.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from itertools import islice

from hydro_core.errors import TypeProblem
from hydro_core.functions.allowed import BUILTINS, CLASS_ATTRIBUTES, METHODS
from hydro_core.functions.fold import nodes
from hydro_core.functions.kinds import Place
from hydro_core.functions.library.operators import SYNTAX
from hydro_core.functions.reading.base import LIMIT, FunctionReading
from hydro_core.functions.reading.names import (
    Binding,
    Builtin,
    Constant,
    Definition,
    Foreign,
    member,
)
from hydro_core.functions.reading.scope import LocalFunction, Scope
from hydro_core.functions.tree import (
    Const,
    Expr,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    function_node,
)

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
        """A local name, or what the function closes over."""
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
        """What a free name means."""
        found = self.find(node.id)
        if found is None:
            near = difflib.get_close_matches(node.id, BUILTINS, 1)
            cure = f"did you mean `{near[0]}`?" if near else None
            place = self.place(node)
            raise TypeProblem(f"there is no name `{node.id}`", cure, place=place, code="name")
        return found

    def as_value(self, binding: Binding, node: ast.expr, scope: Scope) -> Expr:
        """A name that is not called: a constant, or a function that is given to another."""
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
            case Foreign(name):
                scope.forget_changeable()
                return Op(f"?{name}", (), place=self.place(node))

    def call_of(self, binding: Binding, node: ast.Call, scope: Scope) -> Expr:
        """A call of what `meaning` is; defined with the calls."""
        raise NotImplementedError

    def _wrapped(self, label: str, node: ast.expr, scope: Scope) -> Expr:
        """What is called by its name, as a function of one argument."""
        name, place = scope.new("x"), self.place(node)
        return function_node((name,), Op(label, (Param(name),), place=place), place)

    def read_Attribute(self, node: ast.Attribute, scope: Scope) -> Expr:  # noqa: N802
        """A field; or an attribute of a class or module."""
        match node.value:
            case ast.Name(id=base) if base not in scope.names:
                match self.binding(node.value):
                    case Builtin(kind):
                        return self._class_attribute(kind, node, scope)
                    case Foreign() as module:
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
        """`-x`; of a number it is a number."""
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
        """`a and b`: what an operand binds is sure in those after it, not after the whole."""
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
        """`(x := a)`: what x is from here on."""
        value = self.expr(node.value, scope)
        scope.names[node.target.id] = value
        return value


def part_of(base: Expr, index: Expr, place: Place) -> Expr:
    """`base[index]`."""
    if isinstance(index, Const) and type(index.value) in (int, str):
        return Part(base, index.value, place=place)
    return Op("[]", (base, index), place=place)


def as_constant(expr: Expr) -> Expr:
    """A display of constants as one constant, anything else as it is."""
    match expr:
        case Make("tuple" | "row" as kind, parts) if all(isinstance(p, Const) for p in parts):
            fields = expr.fields or {}
            entries = {name: p.value for name, p in fields.items() if isinstance(p, Const)}
            return Const(entries if kind == "row" else tuple(entries.values()), expr.place)
        case _:
            return expr
