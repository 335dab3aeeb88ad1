"""The body of a `def` becomes a tree: assignments, `if`, `assert`, `raise`, `return`, `match`.

Any other statement becomes an opaque operation: the names that it may bind or change are computed
from the names in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hydro_core.functions.reading.base import is_pattern, unpacked
from hydro_core.functions.reading.expressions import Calls, binary_symbol
from hydro_core.functions.reading.scope import (
    Local,
    LocalFunction,
    Scope,
    UnreadableError,
    within,
)
from hydro_core.functions.tree import (
    MATCHED,
    RAISE,
    SEQUENCE,
    Bind,
    Const,
    Expr,
    IfElse,
    Make,
    Op,
    Param,
    Part,
)

Rest = Callable[[Scope], Expr]
"""The continuation: the tree of the statements that follow, in the scope at that point."""
_NESTED = (ast.FunctionDef, ast.Lambda)
_UNREADABLE = (
    *(ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.ClassDef, ast.AsyncFor, ast.AsyncWith),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.Delete),
)


@dataclass(frozen=True, slots=True)
class Branch:
    """A block with its test (None: no earlier branch applies) and the names that it binds."""

    test: Expr | None
    block: list[ast.stmt]
    names: dict[str, Local]


class FunctionReader(Calls):
    """Reads functions."""

    def body(self, function: ast.Lambda | ast.FunctionDef, scope: Scope) -> Expr:
        """The tree of a function's body in a scope that has its parameters."""
        if isinstance(function, ast.Lambda):
            return self.expr(function.body, scope)
        if any(isinstance(part, _UNREADABLE) for part in ast.walk(function)):
            raise UnreadableError
        return self.block(function.body, scope, lambda _: Const(None))

    def block(self, statements: list[ast.stmt], scope: Scope, rest: Rest) -> Expr:
        """The value that the statements return, or the value of `rest` when they end."""
        if not statements:
            return rest(scope)
        first, others = statements[0], statements[1:]
        return self.statement(first, scope, lambda after: self.block(others, after, rest))

    def statement(self, node: ast.stmt, scope: Scope, rest: Rest) -> Expr:
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
                return self._match(node, scope, rest)
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
            case ast.Assign(targets, value) if all(map(is_pattern, targets)):
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
                return self._after(self.expr(value, scope), scope, rest)
            case _:
                return self._unknown(node, scope, rest)

    def bind(self, targets: Iterable[ast.expr], value: Expr, scope: Scope, rest: Rest) -> Expr:
        """Binds the value to each target, then continues with `rest`."""
        targets = list(targets)
        lets: list[tuple[str, Expr]] = []
        parts = isinstance(value, Make) and value.kind == "tuple" and len(targets) == 1
        if not (parts and isinstance(targets[0], ast.Tuple)):
            value = scope.held("_", value, lets)
        bound: list[tuple[str, Expr]] = []
        for name, part in (pair for target in targets for pair in unpacked(target, value)):
            scope.names[name] = scope.held(name, part, bound)
        return within(lets, within(bound, rest(scope)))

    def _after(self, value: Expr, scope: Scope, rest: Rest) -> Expr:
        """The continuation after a value without readers."""
        return within([(scope.new("_"), value)], rest(scope))

    def _augmented(self, node: ast.AugAssign, target: ast.Name, scope: Scope, rest: Rest) -> Expr:
        old = self.expr(ast.copy_location(ast.Name(target.id, ast.Load()), target), scope)
        right = self.expr(node.value, scope)
        symbol = binary_symbol(node.op) or "@"
        result = Op(symbol, (old, right), place=self.place(node))
        if symbol in ("-", "/", "//", "%", "**", "<<", ">>") or _is_number(right, symbol):
            return self.bind([target], result, scope, rest)
        # `+=` changes an array in place, also for other holders of it.
        scope.forget_changeable()
        changed = Op("?+=", (old, right), place=self.place(node))
        return self._after(changed, scope, lambda s: self.bind([target], result, s, rest))

    def _if(self, node: ast.If, scope: Scope, rest: Rest) -> Expr:
        test = self.expr(node.test, scope)
        both = [Branch(test, node.body, {}), Branch(None, node.orelse, {})]
        return self._branches(both, scope, rest, node)

    def _branches(self, branches: list[Branch], scope: Scope, rest: Rest, node: ast.stmt) -> Expr:
        """The continuation after one of several branches."""
        if not any(leaves(b.block) for b in branches):
            return self._merged(branches, scope, rest, node)
        first, *others = branches
        then = self.block(first.block, scope.branch(first.names), rest)
        if first.test is None:
            return then
        return IfElse(first.test, then, self._branches(others, scope, rest, node), self.place(node))

    def _merged(self, branches: list[Branch], scope: Scope, rest: Rest, node: ast.stmt) -> Expr:
        """None of the branches returns: each name that one of them binds has a value by branch."""
        lets: list[tuple[str, Expr]] = []
        tests = [b.test and scope.held("test", b.test, lets) for b in branches]
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
        return within(lets, rest(scope))

    def _unknown(self, node: ast.stmt, scope: Scope, rest: Rest) -> Expr:
        """A loop, a `try`, a change in place: all names that it binds are computed from all that it
        reads.
        """
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

    def _match(self, node: ast.Match, scope: Scope, rest: Rest) -> Expr:
        """The statement, and its continuation."""
        subject = self.expr(node.subject, scope)
        lets: list[tuple[str, Expr]] = []
        held = scope.held("subject", subject, lets)
        branches = [self._case(case, held, scope) for case in node.cases]
        if all(b.test is not None for b in branches):
            branches.append(Branch(None, [], {}))
        return within(lets, self._branches(branches, scope, rest, node), self.place(node))

    def _case(self, case: ast.match_case, subject: Expr, scope: Scope) -> Branch:
        tests, names = self._pattern(case.pattern, subject, scope)
        if case.guard is not None:
            tests.append(self.maybe(case.guard, scope.branch(names)))
        if not tests:
            return Branch(None, case.body, names)
        test = (
            tests[0] if len(tests) == 1 else Op("and", tuple(tests), (), self.place(case.pattern))
        )
        return Branch(test, case.body, names)

    def _pattern(
        self, node: ast.pattern, subject: Expr, scope: Scope
    ) -> tuple[list[Expr], dict[str, Local]]:
        place = self.place(node)
        match node:
            case ast.MatchValue(value):
                return [Op("==", (subject, self.expr(value, scope)), place=place)], {}
            case ast.MatchSingleton(value):
                return [Op("is", (subject, Const(value)), place=place)], {}
            case ast.MatchAs(None, name):
                return [], {} if name is None else {name: subject}
            case ast.MatchAs(pattern, str(name)) if pattern is not None:
                tests, names = self._pattern(pattern, subject, scope)
                return tests, {**names, name: subject}
            case ast.MatchSequence(patterns):
                return self._sequence(patterns, subject, scope)
            case _:
                bound = [
                    getattr(part, "name", None) or getattr(part, "rest", None)
                    for part in ast.walk(node)
                ]
                unknown = Op("?(match)", (subject,), place=place)
                return [unknown], {name: unknown for name in bound if isinstance(name, str)}

    def _sequence(
        self, patterns: list[ast.pattern], subject: Expr, scope: Scope
    ) -> tuple[list[Expr], dict[str, Local]]:
        star = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
        shape = (subject, Const(len(patterns)), Const(star))
        whole = Op(MATCHED, shape)
        tests: list[Expr] = [Op(SEQUENCE, shape)]
        names: dict[str, Local] = {}
        for i, pattern in enumerate(patterns):
            part = Part(whole, i)
            if isinstance(pattern, ast.MatchStar):
                names |= {} if pattern.name is None else {pattern.name: part}
                continue
            inner, bound = self._pattern(pattern, part, scope)
            tests += inner
            names |= bound
        return tests, names


def leaves(statements: list[ast.stmt]) -> bool:
    """True if a statement may leave the function, or this block, before its end."""
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


def _is_number(expr: Expr, symbol: str) -> bool:
    match expr:
        case Const(value):
            kinds = (int, float) if symbol == "+" else (float,)
            return type(value) in kinds
        case _:
            return False
