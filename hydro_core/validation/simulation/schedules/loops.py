"""A rule as a Python function: loops over sets, compiled once.

The text of the function is made of numbers of variables, predicates and constants only; what a
program writes (expressions) are functions of their own, checked and guarded like all functions of
programs, which the loops call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydro_core.functions.call import compiled
from hydro_core.functions.fn import Fn
from hydro_core.lang.rules.bodies import Body, BodyStep, Matched
from hydro_core.lang.rules.expressions import constant_of, variables_of
from hydro_core.lang.rules.syntax import BodyCondition, RuleExpression
from hydro_core.validation.simulation.schedules.table import NOTHING, FactRow, FactTable

RuleLoop = Callable[[Sequence[FactTable], FactTable | None], "list[FactRow]"]
"""What a rule gives, from the tables of all predicates; and from what is new of one of them."""


@dataclass(frozen=True, slots=True)
class LoopMaker:
    """Makes functions of bodies."""

    numbers: Mapping[str, int]
    """The places of the predicates' tables."""
    constants: Mapping[str, Any]

    def loop(
        self, body: Body, emitted: Sequence[RuleExpression], news_at: int | None = None
    ) -> RuleLoop:
        """The function that gives the values of expressions, for each way in which a body holds.

        Args:
            body: the body.
            emitted: expressions of its variables.
            news_at: the step of the body that goes through what is new only.
        """
        text = _LoopText(self, news_at)
        for position, step in enumerate(body.steps):
            text.step(position, step)
        parts = "".join(f"{text.value(part)}, " for part in emitted)
        text.line(f"out(({parts}))")
        return text.function()


@dataclass(slots=True)
class _LoopText:
    maker: LoopMaker
    news_at: int | None
    lines: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    held: dict[str, Any] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)
    depth: int = 1

    def function(self) -> RuleLoop:
        """Compiles what was written."""
        inner = [*self.head, *self.lines]
        text = "\n".join(("def rule(R, D):", " found = []; out = found.append", *inner))
        text += "\n return found\n"
        space: dict[str, Any] = {"E": NOTHING, **self.held}
        exec(compile(text, "<rule>", "exec"), space)  # noqa: S102 - it holds numbers only
        made: RuleLoop = space["rule"]
        return made

    def line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def into(self, text: str) -> None:
        self.line(text)
        self.depth += 1

    def step(self, position: int, step: BodyStep) -> None:
        if step.condition is not None:
            self.condition(step.kind, step.condition)
        elif step.match is not None:
            self.match(position, step.match, negated=step.kind == "absent")

    def condition(self, kind: str, condition: BodyCondition) -> None:
        value = self.value(condition.written)
        if condition.target is None:
            self.into(f"if {value}:")
        elif kind == "test":
            self.into(f"if {self.local[condition.target]} == {value}:")
        else:
            name = self.new(condition.target)
            self.line(f"{name} = {value}")

    def match(self, position: int, match: Matched, *, negated: bool) -> None:
        columns = match.predicate.columns
        bound: dict[int, str] = {}
        fresh: list[tuple[int, str]] = []
        for column, argument in match.constants:
            value = constant_of(argument.written, self.maker.constants)
            bound[columns.index(column)] = self.hold(value)
        for column, variable in match.variables:
            if variable in self.local:
                bound[columns.index(column)] = self.local[variable]
            else:
                fresh.append((columns.index(column), variable))
        table = self.table(position, match)
        if fresh:
            self.scan(table, bound, fresh)
        else:
            self.ask(table, bound, len(columns), "not in" if negated else "in")

    def table(self, position: int, match: Matched) -> str:
        if position == self.news_at:
            return "D"
        number = self.maker.numbers[match.predicate.name]
        name = f"r{number}"
        if f" {name} = R[{number}]" not in self.head:
            self.head.append(f" {name} = R[{number}]")
        return name

    def scan(self, table: str, bound: Mapping[int, str], fresh: list[tuple[int, str]]) -> None:
        row = f"t{len(self.lines)}"
        if bound:
            self.into(f"for {row} in {self.index(table, bound)}.get({_key(bound)}, E):")
        else:
            self.into(f"for {row} in {table}.rows:")
        for column, variable in fresh:
            if variable in self.local:
                self.into(f"if {row}[{column}] == {self.local[variable]}:")
            else:
                self.line(f"{self.new(variable)} = {row}[{column}]")

    def ask(self, table: str, bound: Mapping[int, str], arity: int, word: str) -> None:
        if not bound:
            self.into(f"if {'not ' * (word != 'in')}{table}.rows:")
        elif len(bound) == arity:
            parts = "".join(f"{bound[c]}, " for c in range(arity))
            self.into(f"if ({parts}) {word} {table}.rows:")
        else:
            self.into(f"if {_key(bound)} {word} {self.index(table, bound)}:")

    def index(self, table: str, bound: Mapping[int, str]) -> str:
        columns = tuple(sorted(bound))
        name = f"i{table}_{'_'.join(map(str, columns))}"
        line = f" {name} = {table}.by({columns!r})"
        if line not in self.head:
            self.head.append(line)
        return name

    def value(self, written: RuleExpression) -> str:
        """An expression: a variable, a constant, or a call of what it computes."""
        tree = written.tree
        if isinstance(tree, ast.Name) and tree.id in self.local:
            return self.local[tree.id]
        if isinstance(tree, ast.Constant):
            return self.hold(tree.value)
        names = sorted(variables_of(tree, self.maker.constants, self.local) & self.local.keys())
        function = self.hold(function_of(tree, names, self.maker.constants))
        return f"{function}({', '.join(self.local[n] for n in names)})"

    def new(self, variable: str) -> str:
        self.local[variable] = f"v{len(self.local)}"
        return self.local[variable]

    def hold(self, value: Any) -> str:
        name = f"k{len(self.held)}"
        self.held[name] = value
        return name


def _key(bound: Mapping[int, str]) -> str:
    parts = [bound[c] for c in sorted(bound)]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def function_of(
    tree: ast.expr, names: Collection[str], constants: Mapping[str, Any]
) -> Callable[..., Any]:
    """The function that an expression of these variables is."""
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    function = ast.copy_location(ast.Lambda(arguments, tree), tree)
    called = {n: b.call if isinstance(b, Fn) else b for n, b in constants.items()}
    found: Callable[..., Any] = compiled(ast.fix_missing_locations(function), called)
    return found
