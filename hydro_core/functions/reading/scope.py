"""The names that are bound inside a function while it is read, and what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from hydro_core.functions.kinds import Place
from hydro_core.functions.tree import (
    MATCHED,
    UNBOUND,
    UNPACK,
    Bind,
    Const,
    Expr,
    Op,
    Param,
    Part,
)


class UnreadableError(Exception):
    """The function cannot be read as a tree."""


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A `def` or lambda bound to a name in the function; it reads the names of its level."""

    node: ast.FunctionDef | ast.Lambda
    level: object


Local = Expr | LocalFunction


@dataclass(slots=True)
class Scope:
    """Local names with what they stand for, at one level: the body of one function."""

    names: dict[str, Local] = field(default_factory=dict)
    fresh: count[int] = field(default_factory=lambda: count(1))
    level: object = field(default_factory=object)

    def branch(self, names: Mapping[str, Local] | None = None) -> Scope:
        """A copy of which nothing is seen here unless it is `joined`."""
        return replace(self, names={**self.names, **(names or {})})

    def function(self, names: Mapping[str, Local], *, sees: bool) -> Scope:
        """The scope of a function's body; a nested one sees the names around it."""
        return Scope({**(self.names if sees else {}), **names}, self.fresh)

    def join(
        self, other: Scope, targets: Iterable[str] = (), parts: tuple[Expr, ...] | None = None
    ) -> None:
        """Takes over that a branch may have bound names: what they stand for is not known.

        Of a loop, values may name its own `targets`: of them, `parts` are known.
        """
        for name, value in other.names.items():
            before = self.names.get(name)
            if name not in targets and before is not value:
                both = (value, before)
                known = tuple(v for v in both if v is not None and not isinstance(v, LocalFunction))
                self.names[name] = Op(UNBOUND, known if parts is None else parts)

    def forget_changeable(self) -> None:
        """After what may change arrays: a local value that may hold one is not known any more."""
        for name, value in self.names.items():
            if not isinstance(value, LocalFunction) and not _is_fixed(value):
                self.names[name] = Op(UNBOUND, (value,))

    def new(self, name: str) -> str:
        """A name that no program can write and no other call gives."""
        return f"{name.partition('.')[0]}.{next(self.fresh)}"

    def held(self, name: str, value: Expr, lets: list[tuple[str, Expr]]) -> Expr:
        """The value, if it may stand wherever it is read; else a variable, one more of `lets`."""
        if is_small(value):
            return value
        fresh = Param(self.new(name))
        lets.append((fresh.name, value))
        return fresh


def within(lets: list[tuple[str, Expr]], body: Expr, place: Place | None = None) -> Expr:
    """The body with variables around it."""
    for name, value in reversed(lets):
        body = Bind("let", (name,), value, body, place=place or value.place)
    return body


def is_small(expr: Expr) -> bool:
    """Whether an expression may stand wherever its variable is read: a scalar constant, or a part
    of a parameter or of another variable.
    """
    root = _root(expr)
    return isinstance(root, Param) or (
        isinstance(root, Const) and root is expr and not isinstance(root.value, list | dict | tuple)
    )


def _root(expr: Expr) -> Expr:
    while True:
        match expr:
            case Part(base) | Op("[]", (base, Const())):
                expr = base
            case Op(name, (base, *_)) if name in (UNPACK, MATCHED):
                expr = base
            case _:
                return expr


def _is_fixed(expr: Expr) -> bool:
    # The arrays in a parameter are watched by the field map; a local value may be one itself.
    root = _root(expr)
    known = isinstance(expr, Op) and expr.name == UNBOUND
    return known or (is_small(expr) and not (isinstance(root, Param) and "." in root.name))


def names_in(node: ast.AST) -> Iterable[str]:
    """The names that are read or bound in the node, each once, in order."""
    return dict.fromkeys(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
