"""The body of a `def` becomes a tree: assignments, `if`, `assert`, `raise`, `return`, `match`.

Of any other statement only what it may bind or change is known afterwards: computed, from the names
in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from hydro_core.functions.reading.calls import Calls
from hydro_core.functions.reading.displays import Displays, unpacked
from hydro_core.functions.reading.expressions import binary_symbol
from hydro_core.functions.reading.patterns import Branch, Patterns, Rest
from hydro_core.functions.reading.scope import (
    LocalFunction,
    Scope,
    UnreadableError,
    is_small,
)
from hydro_core.functions.tree import RAISE, Bind, Const, Expr, IfElse, Make, Op, Param

_NESTED = (ast.FunctionDef, ast.Lambda)
_UNREADABLE = (
    *(ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.ClassDef, ast.AsyncFor, ast.AsyncWith),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Delete),
)


class FunctionReader(Patterns, Displays, Calls):
    """Reads functions."""

    def body(self, function: ast.Lambda | ast.FunctionDef, scope: Scope) -> Expr:
        """The tree of a function's body in a scope that has its parameters."""
        if isinstance(function, ast.Lambda):
            return self.expr(function.body, scope)
        if any(isinstance(part, _UNREADABLE) for part in ast.walk(function)):
            raise UnreadableError
        return self.block(function.body, scope, lambda _: Const(None))

    def block(self, statements: list[ast.stmt], scope: Scope, rest: Rest) -> Expr:
        """The value that the statements return, or that `rest` gives when they end."""
        if not statements:
            return rest(scope)
        first, others = statements[0], statements[1:]
        return self.statement(first, scope, lambda after: self.block(others, after, rest))

    def statement(self, node: ast.stmt, scope: Scope, rest: Rest) -> Expr:
        """One statement, and what comes after it."""
        match node:
            case ast.Return(value):
                return Const(None) if value is None else self.expr(value, scope)
            case ast.Raise():
                return Op(RAISE, (), place=self.place(node))
            case ast.Pass():
                return rest(scope)
            case ast.Assert(test):
                tree = self.expr(test, scope)
                return IfElse(tree, rest(scope), Op(RAISE, ()), self.place(node))
            case ast.If():
                return self._if(node, scope, rest)
            case ast.Match():
                return self.match(node, scope, rest)
            case ast.FunctionDef(name=name, decorator_list=[]):
                scope.names[name] = LocalFunction(node, scope.level)
                return rest(scope)
            case _:
                return self._binding(node, scope, rest)

    def _binding(self, node: ast.stmt, scope: Scope, rest: Rest) -> Expr:
        match node:
            case ast.Assign([ast.Name(id=name)], ast.Lambda() as function):
                scope.names[name] = LocalFunction(function, scope.level)
                return rest(scope)
            case ast.Assign(targets, value) if all(map(_is_plain, targets)):
                return self.bind(targets, self.expr(value, scope), scope, rest)
            case ast.AnnAssign(ast.Name() as target, _, value) if value is not None:
                return self.bind([target], self.expr(value, scope), scope, rest)
            case ast.AnnAssign(value=None):
                return rest(scope)
            case ast.AugAssign(ast.Name() as target) if binary_symbol(node.op) is not None:
                return self._augmented(node, target, scope, rest)
            case ast.Expr(ast.Constant()):
                return rest(scope)
            case ast.Expr(value):
                return self._let("_", self.expr(value, scope), scope, rest)
            case _:
                return self._unknown(node, scope, rest)

    def bind(self, targets: Iterable[ast.expr], value: Expr, scope: Scope, rest: Rest) -> Expr:
        """Binds the value to each target, then goes on."""
        targets = list(targets)
        parts = isinstance(value, Make) and value.kind == "tuple" and len(targets) == 1
        if is_small(value) or (parts and isinstance(targets[0], ast.Tuple)):
            return self._bind_all(_pairs(targets, value), scope, rest)
        name = scope.new("_")
        after = self._bind_all(_pairs(targets, Param(name)), scope, rest)
        return Bind("let", (name,), value, after, place=value.place)

    def _bind_all(self, pairs: list[tuple[str, Expr]], scope: Scope, rest: Rest) -> Expr:
        lets: list[tuple[str, Expr]] = []
        for name, value in pairs:
            if is_small(value):
                scope.names[name] = value
            else:
                fresh = scope.new(name)
                lets.append((fresh, value))
                scope.names[name] = Param(fresh)
        return _lets(lets, rest(scope))

    def _let(self, name: str, value: Expr, scope: Scope, rest: Rest) -> Expr:
        fresh = scope.new(name)
        return Bind("let", (fresh,), value, rest(scope), place=value.place)

    def _augmented(self, node: ast.AugAssign, target: ast.Name, scope: Scope, rest: Rest) -> Expr:
        old = self.expr(ast.copy_location(ast.Name(target.id, ast.Load()), target), scope)
        right = self.expr(node.value, scope)
        symbol = binary_symbol(node.op) or "@"
        result = Op(symbol, (old, right), place=self.place(node))
        if symbol in ("-", "/", "//", "%", "**", "<<", ">>") or _is_number(right, symbol):
            return self.bind([target], result, scope, rest)
        # An array is changed in place, wherever else it is held.
        scope.forget_changeable()
        changed = Op("?+=", (old, right), place=self.place(node))
        return self._let("_", changed, scope, lambda s: self.bind([target], result, s, rest))

    def _if(self, node: ast.If, scope: Scope, rest: Rest) -> Expr:
        test = self.expr(node.test, scope)
        both = [Branch(test, node.body, {}), Branch(None, node.orelse, {})]
        return self.branches(both, scope, rest, node)

    def branches(self, branches: list[Branch], scope: Scope, rest: Rest, node: ast.stmt) -> Expr:
        """What comes after one of several branches."""
        if not any(leaves(b.block) for b in branches):
            return self._merged(branches, scope, rest, node)
        first, *others = branches
        then = self.block(first.block, scope.branch(first.names), rest)
        if first.test is None:
            return then
        return IfElse(first.test, then, self.branches(others, scope, rest, node), self.place(node))

    def _merged(self, branches: list[Branch], scope: Scope, rest: Rest, node: ast.stmt) -> Expr:
        """None of the branches returns: each name that one of them binds has a value by branch."""
        lets: list[tuple[str, Expr]] = []
        tests = [self._shared(b.test, scope, lets) for b in branches]
        bound = _bound_in(s for b in branches for s in b.block)
        names = list(dict.fromkeys(bound + [n for b in branches for n in b.names])) or ["_"]
        before = scope.branch()
        for name in names:
            trees = [self.block(b.block, before.branch(b.names), _reads(name)) for b in branches]
            whole = trees[-1]
            for test, tree in reversed(list(zip(tests[:-1], trees[:-1], strict=True))):
                whole = tree if test is None else IfElse(test, tree, whole, self.place(node))
            fresh = scope.new(name)
            lets.append((fresh, whole))
            scope.names[name] = Param(fresh)
        if not all(self.is_pure(s, scope) for b in branches for s in b.block):
            scope.forget_changeable()
        return _lets(lets, rest(scope))

    def _shared(self, test: Expr | None, scope: Scope, lets: list[tuple[str, Expr]]) -> Expr | None:
        if test is None or is_small(test):
            return test
        fresh = scope.new("test")
        lets.append((fresh, test))
        return Param(fresh)

    def _unknown(self, node: ast.stmt, scope: Scope, rest: Rest) -> Expr:
        """A loop, a `try`, a change in place: all it binds is computed from all it names."""
        label = f"({type(node).__name__.lower()})"
        value = self.opaque(label, node, scope)
        fresh = scope.new("_")
        for name in _bound_in([node]):
            scope.names[name] = Op(f"?{label}", (Param(fresh),), place=self.place(node))
        after = rest(scope)
        if any(isinstance(part, ast.Return) for part in _own([node])):
            known = Op(f"?{label}", (Param(fresh),), place=self.place(node))
            after = IfElse(known, known, after, self.place(node))
        return Bind("let", (fresh,), value, after, place=self.place(node))


def leaves(statements: list[ast.stmt]) -> bool:
    """Whether a statement may leave the function, or this part of it, before its end."""
    return any(isinstance(part, ast.Return | ast.Raise | ast.Assert) for part in _own(statements))


def _own(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    for node in statements:
        yield node
        if not isinstance(node, _NESTED):
            yield from _own(ast.iter_child_nodes(node))


def _bound_in(statements: Iterable[ast.AST]) -> list[str]:
    found: dict[str, None] = {}
    for part in _own(statements):
        match part:
            case ast.Name(id=name, ctx=ast.Store()):
                found[name] = None
            case (
                ast.FunctionDef(name=name)
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                found[name] = None
            case ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found[name] = None
            case ast.alias(name=name, asname=asname):
                found[asname or name.partition(".")[0]] = None
    return list(found)


def _reads(name: str) -> Rest:
    def read(scope: Scope) -> Expr:
        match scope.names.get(name):
            case None | LocalFunction():
                return Op(RAISE, ())
            case value:
                return value

    return read


def _is_plain(target: ast.expr) -> bool:
    allowed = (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context)
    return all(isinstance(part, allowed) for part in ast.walk(target))


def _is_number(expr: Expr, symbol: str) -> bool:
    match expr:
        case Const(value):
            kinds = (int, float) if symbol == "+" else (float,)
            return type(value) in kinds
        case _:
            return False


def _pairs(targets: list[ast.expr], value: Expr) -> list[tuple[str, Expr]]:
    return [pair for target in targets for pair in unpacked(target, value)]


def _lets(bound: list[tuple[str, Expr]], body: Expr) -> Expr:
    for name, value in reversed(bound):
        body = Bind("let", (name,), value, body, place=value.place)
    return body
