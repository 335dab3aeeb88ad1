"""A function of a program, as every part of the system sees it."""

from __future__ import annotations

from collections.abc import Callable
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
    to: `source` is canonical text (constants that are closed over stand in it), or, where it cannot
    be read, a name that is unique to the function.
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
    over: tuple[ItemType, ...] = field(default=(), repr=False)
    """What it is applied to, where that is settled: equal text over other items is another function
    to whom the items matter.
    """

    def __str__(self) -> str:
        return self.name
