"""What is made of constants at most: of a method, the first argument is what it is called on."""

from __future__ import annotations

from typing import Any

from hydro_core.functions.constant_limits import (
    GROWTH,
    MOST_FORMAT,
    Budget,
    LimitError,
    check_places,
)
from hydro_core.functions.library.entry import Cost

_PER_PART = 60
"""Bytes of a short text, as which parts of another one are held."""


def content(limits: Budget, args: list[Any]) -> None:
    """All that is given is gone through."""
    limits.read(*args)


def shown(limits: Budget, args: list[Any]) -> None:
    """A text is made that shows the first."""
    limits.foresee(GROWTH * limits.weight(args[0]))


def per_character(size: int = _PER_PART) -> Cost:
    """So many bytes are made of each character."""

    def made(limits: Budget, args: list[Any]) -> None:
        limits.foresee(size * sum(len(a) for a in args if isinstance(a, str | bytes)))

    return made


def width(limits: Budget, args: list[Any]) -> None:
    """A text is made as wide as a number says."""
    limits.foresee(4 * max((a for a in args[1:] if isinstance(a, int)), default=8))


def form(_: Budget, args: list[Any]) -> None:
    """Times are written or read in a form."""
    if any(isinstance(a, str) and len(a) > MOST_FORMAT for a in args):
        raise LimitError(f"has a format of more than {MOST_FORMAT:,} characters")


def digits(_: Budget, args: list[Any]) -> None:
    """A number is read of its digits."""
    if isinstance(args[0], str | bytes):
        check_places(len(args[0]))
