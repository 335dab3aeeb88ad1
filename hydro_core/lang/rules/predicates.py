"""Predicates: their columns, their origin, and the column that each argument fills."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from hydro_core.catalog.itemwise import TICK
from hydro_core.errors import Code, Diagnostic, ProgramError, Span, TypeProblem
from hydro_core.lang.rules.syntax import Argument, Declaration, DedalusRule, Mention, RuleProgram
from hydro_core.lang.source import did_you_mean
from hydro_core.types.ddl import DDL, parse_ddl
from hydro_core.types.item import ItemType

CLOCK = TICK.name
"""The predicate of the tick's number and times, where the program has none of that name."""
HOLDS = "holds"
"""The column of a predicate without arguments."""

PredicateForm = Literal["rows", "named", "positional", "clock"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate.

    `form` is the representation of its items before a rule reads them: rows of its columns; rows
    with some columns known by name; tuples, or items with so many fields; rows of `tick()`.
    """

    name: str
    columns: tuple[str, ...]
    form: PredicateForm
    span: Span
    is_input: bool
    types: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[DedalusRule, ...] = ()

    @property
    def is_async(self) -> bool:
        """True if some of its rows arrive later than they were sent."""
        return any(rule.time == "async" for rule in self.rules)

    @property
    def schema(self) -> str | None:
        """The types of all columns in DDL, if all are declared."""
        if not self.columns or len(self.types) < len(self.columns):
            return None
        return ", ".join(f"{_quoted(c)} {self.types[c]}" for c in self.columns)


def _quoted(column: str) -> str:
    return column if column.isidentifier() else f"`{column}`"


def item_of(predicate: Predicate) -> ItemType | None:
    """The type of the items of a predicate whose columns all have declared types."""
    return None if predicate.schema is None else parse_ddl(predicate.schema)


class PredicateFinder:
    """Finds the predicates of a program."""

    def __init__(self, program: RuleProgram) -> None:
        self.program = program
        self.problems: list[Diagnostic] = []
        self.rules: dict[str, list[DedalusRule]] = {}
        for rule in program.rules:
            self.rules.setdefault(rule.head.predicate, []).append(rule)
        self.uses: dict[str, list[Mention]] = {}
        said = [(rule.head, *(atom for atom, _ in rule.body.atoms())) for rule in program.rules]
        asked = [tuple(atom for atom, _ in body.atoms()) for body, _ in program.never]
        for atom in chain(*said, *asked):
            self.uses.setdefault(atom.predicate, []).append(atom)
        self.declared: dict[str, Declaration] = {}

    def found(self) -> tuple[dict[str, Predicate], list[Diagnostic]]:
        """The predicates by their names, in the order of the text, and their problems."""
        for declaration in self.program.declarations:
            if declaration.name in self.declared:
                message = f"`{declaration.name}` is declared twice"
                self.complain("name", message, declaration.span, "declare it once")
            self.declared.setdefault(declaration.name, declaration)
        names = dict.fromkeys((*self.declared, *self.uses))
        found = {name: self.predicate(name) for name in names}
        self.check_named(found)
        return found, self.problems

    def predicate(self, name: str) -> Predicate:
        declared, rules = self.declared.get(name), tuple(self.rules.get(name, ()))
        span = declared.span if declared else self.uses[name][0].name_span
        if declared is not None and declared.columns is not None:
            columns = tuple(name for name, _ in declared.columns) or (HOLDS,)
            types = self.types(declared) or ({} if declared.columns else {HOLDS: "boolean"})
            is_input = declared.is_input or not rules
            return Predicate(name, columns, "rows", span, is_input, types, rules)
        is_input = declared is not None or not rules
        if rules:
            first = next((rule for rule in rules if rule.time == "now"), rules[0])
            return Predicate(
                name, head_columns(first.head), "rows", first.span, is_input, {}, rules
            )
        if declared is None and name == CLOCK:
            return Predicate(name, (CLOCK, "start", "end"), "clock", span, is_input=False)
        uses = self.uses.get(name, [])
        by_name = dict.fromkeys(a.column for u in uses for a in u.arguments if a.column)
        if by_name or declared is not None:
            return Predicate(name, tuple(map(str, by_name)), "named", span, is_input=True)
        count = len(uses[0].arguments)
        columns = tuple(f"c{i}" for i in range(1, count + 1)) or (HOLDS,)
        return Predicate(name, columns, "positional" if count else "rows", span, is_input=True)

    def types(self, declared: Declaration) -> dict[str, str]:
        found = {}
        seen: set[str] = set()
        for column, text in declared.columns or ():
            if column in seen:
                message = f"`{declared.name}` has two columns `{column}`"
                self.complain("name", message, declared.span, "give one another name")
            seen.add(column)
            if text is None:
                continue
            try:
                parse_ddl(f"{_quoted(column)} {text}")
            except TypeProblem as problem:
                message = f"the type of `{column}`: {problem.message}"
                self.complain("type", message, declared.span, problem.help or DDL)
                continue
            found[column] = text
        return found

    def check_named(self, found: Mapping[str, Predicate]) -> None:
        """Reports outputs and dependencies of unknown predicates."""
        for name, span in self.program.outputs:
            if name not in found:
                cure = did_you_mean(name, found) or f"write a rule: `{name}(x) :- …`"
                self.complain("undefined", f"no rule says what `{name}` is", span, cure)
        for d in self.program.dependencies:
            predicate = found.get(d.name)
            if predicate is None or not predicate.is_input:
                near = did_you_mean(d.name, [n for n, p in found.items() if p.is_input])
                message = f"`{d.name}` is no input, and `.fd` is said of inputs"
                self.complain("undefined", message, d.span, near or "name one of the inputs")
                continue
            for column in (*d.left, *d.right):
                if column not in predicate.columns:
                    cure = did_you_mean(column, predicate.columns) or _columns(predicate)
                    message = f"`{d.name}` has no column `{column}`"
                    self.complain("type", message, d.span, cure)

    def complain(self, code: Code, message: str, span: Span, help_: str) -> None:
        self.problems.append(Diagnostic(code, message, span, help=help_))


def head_columns(head: Mention) -> tuple[str, ...]:
    """The columns that a head gives a predicate: named arguments, variables, aggregates."""
    names: list[str] = []
    for position, argument in enumerate(head.arguments, 1):
        name = argument.column or _own_name(argument) or f"c{position}"
        names.append(name if name not in names else f"c{position}")
    return tuple(names) or (HOLDS,)


def _own_name(argument: Argument) -> str:
    match argument.kind, argument.written.tree:
        case "variable", _:
            return argument.name
        case "gathered", ast.Call(args=[ast.Name(id=of)]) if of != "_":
            return f"{argument.name}_{of}"
        case "gathered", ast.Call(args=[] | [ast.Name()]):
            return argument.name
        case _:
            return ""


def _columns(predicate: Predicate) -> str:
    return f"it is `{predicate.name}({', '.join(predicate.columns)})`"


def placed(atom: Mention, predicate: Predicate, *, in_head: bool = False) -> dict[str, Argument]:
    """The arguments of an atom by the columns that they fill; a body leaves out wildcards.

    Raises:
        ProgramError: they do not fit the predicate (code `arity`).
    """
    by_place = [a for a in atom.arguments if a.column is None]
    columns = predicate.columns
    if columns == (HOLDS,) and not atom.arguments and predicate.form != "named":
        return {}
    if by_place and predicate.form == "named":
        message = f"the columns of `{atom.predicate}` are not known, so they have no places"
        cure = f"name them: `{atom.predicate}(column: x)`, or declare them all"
        raise _wrong(message, by_place[0].span, atom, cure)
    fewest = 1 if predicate.form == "clock" else len(columns)
    if len(by_place) == len(atom.arguments) and not fewest <= len(by_place) <= len(columns):
        message = f"`{atom.predicate}` has {_count(len(columns))}, not {len(by_place)}"
        raise _wrong(message, atom.span, atom, _columns(predicate))
    found: dict[str, Argument] = {}
    named = ((str(a.column), a) for a in atom.arguments if a.column is not None)
    for column, argument in (*zip(columns, by_place, strict=False), *named):
        if column not in columns:
            cure = did_you_mean(column, columns) or _columns(predicate)
            raise _wrong(f"`{atom.predicate}` has no column `{column}`", argument.span, atom, cure)
        if column in found:
            cure = "name a column once, behind those that go by their places"
            raise _wrong(f"`{column}` is given twice", argument.span, atom, cure)
        found[column] = argument
    if in_head and (missing := [c for c in columns if c not in found]):
        message = f"the head gives `{atom.predicate}` no `{missing[0]}`"
        raise _wrong(message, atom.span, atom, _columns(predicate))
    return {c: a for c, a in found.items() if in_head or a.kind != "wildcard"}


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _wrong(message: str, span: Span, atom: Mention, help_: str) -> ProgramError:
    return ProgramError.of("arity", message, span, atom.predicate, help=help_)


def outputs_of(program: RuleProgram, predicates: Iterable[str]) -> tuple[str, ...]:
    """The outputs: those that are declared, else the predicates that have rules and no readers."""
    if program.outputs:
        return tuple(dict.fromkeys(name for name, _ in program.outputs))
    read = {a.predicate for rule in program.rules for a, _ in rule.body.atoms()}
    made = dict.fromkeys(r.head.predicate for r in program.rules if r.time != "async")
    return tuple(name for name in made if name in predicates and name not in read)
