"""What operators compute, where it is no function of Python's own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any


def formatted(value: Any, conversion: str, spec: str) -> str:
    """A value of an f-string, by its conversion: `!r`, `!s`, `!a` or none.

    >>> formatted(1.5, "", ">5"), formatted("a", "r", ">5")
    ('  1.5', "  'a'")
    """
    return format(CONVERSIONS[conversion](value), spec)


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda value: value,
    "r": repr,
    "s": str,
    "a": ascii,
}


def cut_at(name: str) -> Callable[..., Any]:
    """What takes a slice, by its name."""

    def cut(value: Any, *bounds: Any) -> Any:
        given = iter(bounds)
        return value[slice(*(next(given) if letter in name else None for letter in "lhs"))]

    return cut


def joined_texts(*texts: str) -> str:
    """The text of an f-string."""
    return "".join(texts)


def unpacked(value: Any, count: int, star: int | None) -> tuple[Any, ...]:
    """`a, b, *c = value`, as a tuple of the targets."""
    parts = list(value)
    if star is None:
        if len(parts) != count:
            raise ValueError(f"{len(parts)} values to unpack, where {count} are expected")
        return tuple(parts)
    if len(parts) < count - 1:
        raise ValueError(f"{len(parts)} values to unpack, where at least {count - 1} are expected")
    end = len(parts) - (count - star - 1)
    return (*parts[:star], parts[star:end], *parts[end:])


def flat(lists: Any) -> list[Any]:
    """One list of several."""
    return [element for inner in lists for element in inner]


ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "is": operator.is_,
    "is not": operator.is_not,
}
