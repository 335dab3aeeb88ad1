"""What an entry of the library says: arguments, result, cost as a constant, and Spark's expression.

An entry is all there is to a method: from it follow what may be written, what a call is checked
for, its type, how it becomes a column, and the page of functions. Spark is not imported here: an
expression is given Spark's functions as `F`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hydro_core.errors import TypeProblem
from hydro_core.functions.constant_limits import Budget
from hydro_core.functions.kinds import ExprType, Place, elements, is_open, number
from hydro_core.functions.tree import Expr, Op, constant_of
from hydro_core.types.item import DOUBLE, LONG, STRING, Tuple


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that is typed; of a method, the arguments are those in the parentheses."""

    name: str
    args: tuple[ExprType, ...]
    exprs: tuple[Expr, ...]
    keywords: Mapping[str, ExprType]
    apply: Callable[[str | int, tuple[ExprType, ...]], ExprType]
    place: Place
    value_of: Callable[[Expr], Any] = constant_of
    """The value of an expression that depends on nothing, `...` of another."""

    def problem(
        self,
        message: str,
        help: str | None = None,  # noqa: A002
        place: Place | None = None,
    ) -> TypeProblem:
        """A problem with this call."""
        return TypeProblem(message, help, place=place or self.place)

    def count(self, least: int, most: int) -> None:
        """Refuses a wrong number of arguments."""
        given = len(self.args)
        if not least <= given <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            noun = "argument" if wanted == "1" else "arguments"
            raise self.problem(f"`{self.name}` takes {wanted} {noun}, not {given}")

    def elements(self, position: int = 0) -> ExprType:
        """What a loop over an argument gives."""
        found = elements(self.args[position])
        if found is None:
            raise self.problem(
                f"`{self.name}` goes through the parts of a value; {self.args[position]} has none"
            )
        return found

    def constant(self, position: int) -> Any:
        """An argument's value where it is constant, `...` where it is not, or is not given."""
        return self.value_of(self.exprs[position]) if position < len(self.exprs) else ...

    def check(self, parameters: tuple[Parameter, ...]) -> None:
        """Refuses arguments that are not what the parameters take."""
        least = 0 if self.keywords else sum(not p.optional for p in parameters)
        self.count(least, len(parameters))
        for parameter, kind in zip(parameters, self.args, strict=False):
            if not is_open(kind) and not parameter.fits(kind):
                raise self.problem(f"`{self.name}` takes {parameter.wanted}, not {kind}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument in the parentheses of a call."""

    wanted: str
    fits: Callable[[ExprType], bool]
    given_as: Literal["column", "constant", "columns", "strings"] = "column"
    """What Spark's expression gets of it: a column, its value when the plan is made, the columns of
    one or several values, or a column of arrays of strings.
    """
    optional: bool = False


MemberTyping = Callable[[ExprType, CallSite], ExprType]
"""The type of a call, by that of the value that is called on."""
Column = Any
Expression = Callable[..., Column | tuple[Column, ...] | None]
"""Spark's expression of `F`, the value and the arguments, none of them null: it may be given fewer
than there are parameters. It must read all that it is given: where that is null, the job fails as
it is read. None says that there is none for arguments like these.
"""
MemberCost = Callable[[Budget, Any, list[Any]], None]
"""Refuses the call on a constant that would make or read too much."""


@dataclass(frozen=True, slots=True)
class Member:
    """A method or property of values of one Python type."""

    name: str
    takes: tuple[Parameter, ...] | None
    """None: it is a property."""
    gives: ExprType | MemberTyping
    column: Expression | None = None
    may_fail: bool = False
    """The expression is null where Python fails, or must be asked."""
    cost: MemberCost | None = None

    def result(self, base: ExprType, site: CallSite) -> ExprType:
        """The type of a call."""
        site.check(self.takes or ())
        return self.gives(base, site) if callable(self.gives) else self.gives


TotalityRule = Callable[[Op, Sequence[bool]], bool]
"""Whether an operation has a value, whatever those of its operands are, by their types and by which
of them may be null.
"""
NullRule = Literal["python", "strict", "own"]
"""What a null among the arguments gives: Python's error, or null, or what the function says."""
CallTyping = Callable[[CallSite], ExprType]
CallCost = Callable[[Budget, list[Any]], None]


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function that programs may call by its name."""

    function: Any
    gives: ExprType | CallTyping
    takes: tuple[Parameter, ...] = ()
    """What is checked where the type does not depend on the arguments."""
    column: Expression | None = None
    """Spark's expression, where it is one of the arguments' columns alone."""
    may_fail: bool = False
    cost: CallCost | None = None
    nulls: NullRule = "python"
    functions: frozenset[str | int] = frozenset()
    """The arguments that are functions, by position or name."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Its parameters, where they may be given by name: each with its default, `...` for none."""
    has_value: TotalityRule | None = None
    """When it gives a truth value and does not fail; None where that is not known."""

    def result(self, site: CallSite) -> ExprType:
        """The type of a call."""
        if self.defaults and site.keywords:
            raise self._not_these(site)
        if self.takes or not callable(self.gives):
            site.check(self.takes)
        return self.gives(site) if callable(self.gives) else self.gives

    def _not_these(self, site: CallSite) -> TypeProblem:
        names = ", ".join(name for name, _ in self.defaults)
        known = [name for name, _ in self.defaults[len(site.args) :]]
        wrong = next((name for name in site.keywords if name not in known), None)
        if wrong is None:
            return site.problem(f"`{site.name}` lacks an argument", f"it takes {names}")
        return site.problem(f"`{site.name}` takes no such `{wrong}`", f"it takes {names}")


def method(
    name: str,
    *takes: Parameter,
    gives: ExprType | MemberTyping,
    column: Expression | None = None,
    may_fail: bool = False,
    cost: MemberCost | None = None,
) -> Member:
    """A method of that name."""
    return Member(name, takes, gives, column, may_fail, cost)


def read(name: str, gives: ExprType | MemberTyping, column: Expression | None = None) -> Member:
    """A property of that name."""
    return Member(name, None, gives, column)


def members(*entries: Member) -> dict[str, Member]:
    """The entries by their names."""
    return {entry.name: entry for entry in entries}


def methods(
    names: str, *takes: Parameter, gives: ExprType | MemberTyping, cost: MemberCost | None = None
) -> Iterable[Member]:
    """Several methods of which nothing differs but the name; Python computes them."""
    return [method(name, *takes, gives=gives, cost=cost) for name in names.split()]


def optional(parameter: Parameter) -> Parameter:
    """The parameter, which need not be given."""
    return replace(parameter, optional=True)


def constant(parameter: Parameter) -> Parameter:
    """The parameter, of which Spark must know the value when it plans."""
    return replace(parameter, given_as="constant")


TEXT = Parameter("a string", lambda kind: kind == STRING)
TEXTS = Parameter(
    "a string, or a tuple of strings",
    lambda kind: (
        kind == STRING
        or (isinstance(kind, Tuple) and all(f == STRING or is_open(f) for f in kind.fields))
    ),
    "columns",
)
WHOLE = Parameter("a whole number", lambda kind: number(kind) == LONG)
REAL = Parameter("a number", lambda kind: number(kind) in (LONG, DOUBLE))
NUMBER = Parameter("a number", lambda kind: number(kind) is not None)
ANYTHING = Parameter("a value", lambda _: True)
MANY = Parameter("a value with parts", lambda kind: elements(kind) is not None, "strings")


def same(base: ExprType, _: CallSite) -> ExprType:
    """The type of a call that gives what it is called on."""
    return base
