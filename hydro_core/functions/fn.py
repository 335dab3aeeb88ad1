"""A function of a program, as every part of the system sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hydro_core.errors import Span
from hydro_core.functions.tree import Expr
from hydro_core.types.item import ItemType


@dataclass(frozen=True, slots=True)
class Algebra:
    """What the author of a function declares of it; it is believed by the rewrites that need it."""

    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    neutral: bool = False


@dataclass(frozen=True, slots=True)
class Fn:
    """A pure, deterministic function of items.

    Two functions are equal when their text and what they close over are, and what they are applied
    to: `source` is canonical text, or, where it cannot be read, a name that is unique to the
    function.
    """

    name: str
    source: str
    params: tuple[str, ...]
    call: Callable[..., Any] = field(compare=False, repr=False)
    tree: Expr | None = field(default=None, compare=False, repr=False)
    algebra: Algebra = Algebra()
    returns: ItemType | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    pure: bool = field(default=False, compare=False, repr=False)
    """It is known to change nothing that it is given (every function of a text program is)."""
    closed: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What it closes over: each name in `source`, and the text of what that stands for."""
    unrepeatable: tuple[tuple[str, Span | None], ...] = field(default=(), compare=False, repr=False)
    """What it reads that is not the same each time, and where: the clock, chance, the machine."""
    over: tuple[ItemType, ...] = field(default=(), repr=False)
    """What it is applied to, where that is settled: equal text over other items is another function
    to whom the items matter.
    """

    @property
    def whole(self) -> str:
        """Its text with what it closes over, for people to read."""
        return whole(self.source, self.closed)

    def __str__(self) -> str:
        return self.name


def whole(source: str, closed: Iterable[tuple[str, str]]) -> str:
    """The text of a function with what it closes over."""
    return "\nwhere ".join((source, *(f"{name} = {text}" for name, text in closed)))
