"""`match` becomes conditionals: whether a pattern matches is mostly not known, what it binds is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from hydro_core.functions.reading.base import FunctionReading
from hydro_core.functions.reading.scope import Local, Scope, is_small
from hydro_core.functions.tree import MATCHED, SEQUENCE, Bind, Const, Expr, Op, Param, Part

Rest = Callable[[Scope], Expr]
"""What comes after, in the scope that is left."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A block with when it runs (None: whenever no earlier one does) and what is bound in it."""

    test: Expr | None
    block: list[ast.stmt]
    names: dict[str, Local]


class Patterns(FunctionReading):
    """Reads `match`."""

    def match(self, node: ast.Match, scope: Scope, rest: Rest) -> Expr:
        """The statement, and what comes after it."""
        subject = self.expr(node.subject, scope)
        if not is_small(subject):
            fresh = scope.new("subject")
            cases = self._cases(node, Param(fresh), scope, rest)
            return Bind("let", (fresh,), subject, cases, place=self.place(node))
        return self._cases(node, subject, scope, rest)

    def _cases(self, node: ast.Match, subject: Expr, scope: Scope, rest: Rest) -> Expr:
        branches = [self._case(case, subject, scope) for case in node.cases]
        if all(b.test is not None for b in branches):
            branches.append(Branch(None, [], {}))
        return self.branches(branches, scope, rest, node)

    def branches(self, branches: list[Branch], scope: Scope, rest: Rest, node: ast.stmt) -> Expr:
        """What comes after one of several branches; defined with the statements."""
        raise NotImplementedError

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
