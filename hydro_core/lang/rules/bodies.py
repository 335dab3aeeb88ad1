"""Bodies in the order in which they are computed: joins from left to right over shared variables.

The operators of a body follow these steps. That every variable is bound is found on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.functions.allowed import BUILTINS
from hydro_core.lang.rules.expressions import variable, variables_of
from hydro_core.lang.rules.predicates import Predicate, placed
from hydro_core.lang.rules.syntax import (
    Argument,
    BodyCondition,
    DedalusRule,
    Literals,
    Mention,
    RuleExpression,
)
from hydro_core.lang.similar import did_you_mean

StepKind = Literal["match", "absent", "bind", "test"]


@dataclass(frozen=True, slots=True)
class Matched:
    """An atom of a body: variables and constants by the columns that they fill."""

    atom: Mention
    predicate: Predicate
    variables: tuple[tuple[str, str], ...]
    """Columns and their variables; a variable may stand at several."""
    constants: tuple[tuple[str, Argument], ...]

    @property
    def bound(self) -> frozenset[str]:
        """The variables."""
        return frozenset(variable for _, variable in self.variables)


@dataclass(frozen=True, slots=True)
class BodyStep:
    """A step: an atom is joined, or must not be there; a variable is computed, or tested."""

    kind: StepKind
    match: Matched | None = None
    condition: BodyCondition | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The steps of a body, and the variables that they bind, in their order."""

    steps: tuple[BodyStep, ...]
    variables: tuple[str, ...]


def body_of(
    body: Literals,
    predicates: Mapping[str, Predicate],
    constants: Collection[str],
) -> Body:
    """The steps of a body.

    Raises:
        ProgramError: arguments do not fit, or a variable is not bound.
    """
    return _Order(body, predicates, constants).ordered()


class _Order:
    def __init__(
        self, body: Literals, predicates: Mapping[str, Predicate], constants: Collection[str]
    ) -> None:
        self.predicates, self.constants = predicates, constants
        self.conditions = list(body.conditions)
        taken = {v for atom, _ in body.atoms() for v in atom.variables}
        taken |= {v for c in body.conditions for v in (*c.variables, *filter(None, [c.target]))}
        self.names = (f"v{n}" for n in range(1, 1_000_000) if f"v{n}" not in taken)
        self.positive = [self.matched(atom) for atom in body.positive]
        self.negative = [self.matched(atom) for atom in body.negative]
        self.steps: list[BodyStep] = []
        self.bound: dict[str, None] = {}

    def matched(self, atom: Mention) -> Matched:
        """The atom; an expression of variables becomes a variable that is equal to it."""
        variables: list[tuple[str, str]] = []
        constants: list[tuple[str, Argument]] = []
        predicate = self.predicates[atom.predicate]
        for column, argument in placed(atom, predicate).items():
            used = variables_of(argument.written.tree, self.constants)
            if argument.kind == "variable":
                variables.append((column, argument.name))
            elif used:
                name = next(self.names)
                variables.append((column, name))
                self.conditions.append(BodyCondition(argument.written, used, name))
            else:
                constants.append((column, argument))
        return Matched(atom, predicate, tuple(variables), tuple(constants))

    def ordered(self) -> Body:
        self.ready()
        while self.positive:
            shares = (m for m in self.positive if m.bound & self.bound.keys())
            match = next(shares, self.positive[0])
            self.positive.remove(match)
            self.steps.append(BodyStep("match", match))
            self.bound.update(dict.fromkeys(v for _, v in match.variables))
            self.ready()
        self.refuse_unbound()
        return Body(tuple(self.steps), tuple(self.bound))

    def ready(self) -> None:
        """All conditions and negated atoms of which the variables are bound."""
        before = -1
        while before != len(self.steps):
            before = len(self.steps)
            for condition in [c for c in self.conditions if c.variables <= self.bound.keys()]:
                self.conditions.remove(condition)
                is_new = condition.target is not None and condition.target not in self.bound
                self.steps.append(BodyStep("bind" if is_new else "test", condition=condition))
                if condition.target is not None:
                    self.bound.setdefault(condition.target)
            self.turned_round()
        for match in [m for m in self.negative if m.bound <= self.bound.keys()]:
            self.negative.remove(match)
            self.steps.append(BodyStep("absent", match))

    def turned_round(self) -> None:
        """`x = y` says what y is where x is bound."""
        for condition in list(self.conditions):
            tree, target = condition.written.tree, condition.target
            if target in self.bound and isinstance(tree, ast.Name):
                self.conditions.remove(condition)
                other = replace(condition.written, tree=variable(str(target), tree))
                turned = BodyCondition(other, frozenset({str(target)}), tree.id)
                self.conditions.append(turned)

    def refuse_unbound(self) -> None:
        problems = []
        for match in self.negative:
            (missing, *_) = sorted(match.bound - self.bound.keys())
            span = next(a.span for a in match.atom.arguments if _has(a, missing, self.constants))
            message = f"`{missing}` stands in no positive predicate, so `!` has nothing to ask for"
            cure = f"write `_` if any value will do, or a predicate that says what `{missing}` is"
            problems.append(Diagnostic("undefined", message, span, match.atom.predicate, help=cure))
        for condition in self.conditions:
            missing = min(condition.variables - self.bound.keys())
            problems.append(unbound(missing, condition.written, None))
        if problems:
            raise ProgramError(*problems)


def _has(argument: Argument, variable: str, constants: Collection[str]) -> bool:
    return variable == argument.name or variable in variables_of(argument.written.tree, constants)


def unbound(variable: str, written: RuleExpression, operator: str | None) -> Diagnostic:
    """Says that no positive predicate of the body says what a variable of an expression is."""
    span = written.span
    calls = (n.func for n in ast.walk(written.tree) if isinstance(n, ast.Call))
    if any(isinstance(f, ast.Name) and f.id == variable for f in calls):
        cure = (
            did_you_mean(variable, BUILTINS)
            or "functions are the pure ones of Python, and those of the library"
        )
        message = f"there is no function `{variable}`"
        return Diagnostic("name", message, span, operator, help=cure)
    message = f"nothing says what `{variable}` is"
    cure = f"a predicate of the body that is not negated must have it, or `{variable} = …`"
    return Diagnostic("undefined", message, span, operator, help=cure)


def check_head(
    rule: DedalusRule, predicate: Predicate, bound: Iterable[str], constants: Collection[str]
) -> dict[str, Argument]:
    """The arguments of a head by their columns, every variable of them bound.

    Raises:
        ProgramError: one is not, or they do not fit the predicate.
    """
    known = set(bound)
    arguments = placed(rule.head, predicate, in_head=True)
    problems = []
    for argument in arguments.values():
        if argument.kind == "wildcard":
            message, cure = "`_` says nothing in a head", "write a variable of the body, or a value"
            problems.append(
                Diagnostic("undefined", message, argument.span, predicate.name, help=cure)
            )
            continue
        tree = argument.written.tree
        used = variables_of(tree, constants, known)
        if argument.kind == "gathered" and isinstance(tree, ast.Call):
            parts = [variables_of(a, constants, known) for a in tree.args]
            used = frozenset(v for part in parts for v in part) - {"_"}
        problems += [unbound(v, argument.written, predicate.name) for v in sorted(used - known)]
    if problems:
        raise ProgramError(*problems)
    return arguments
