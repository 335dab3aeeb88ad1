"""Tuples, rows and written numbers as Python values.

Inside a function a `Struct` is a Python tuple and a `RowItem` a Python dict: they compare, hash and
unpack as these do.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn, Self

_POSITION = re.compile(r"_([1-9][0-9]*)")


class ValueProblem(Exception):  # noqa: N818 - it becomes a Diagnostic, it is not one
    """Why a Python value is not an item, or not one of the type at hand."""


def no_item(value: object) -> ValueProblem:
    """What is wrong with a value that is not an item of any type."""
    return ValueProblem(f"{describe(value)} is not an item")


class WrittenFloat(float):
    """A float with the digits that were written, for a declared type that holds more of them.

    >>> WrittenFloat("12345678901234567.89")
    12345678901234567.89
    """

    _digits: str

    def __new__(cls, digits: str) -> Self:
        number = super().__new__(cls, digits)
        number._digits = digits
        return number

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return WrittenFloat, (self._digits,)

    def __repr__(self) -> str:
        return self._digits


class Struct(tuple[Any, ...]):
    """A tuple item: a tuple whose fields also have the names `_1 … _n`.

    >>> Struct((1, "a"))._2
    'a'
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = _POSITION.fullmatch(name)
        if found and int(found[1]) <= len(self):
            return self[int(found[1]) - 1]
        raise AttributeError(f"a tuple of {len(self)} has no field {name!r}")


class RowItem(dict[str, Any]):
    """A row item: an immutable mapping whose fields are also attributes.

    A field wins over a method of its name.

    >>> r = RowItem(user="ann", keys=2)
    >>> r.user, r["user"], r.keys, {**r, "n": 1}
    ('ann', 'ann', 2, {'user': 'ann', 'keys': 2, 'n': 1})
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in self and not name.startswith("__"):
            return self[name]
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the row has no column {name!r}; it has {', '.join(map(repr, self))}")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(dict.items(self)))

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return RowItem, (dict(self),)

    def __repr__(self) -> str:
        return dict.__repr__(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError('a row cannot be changed; {**row, "name": value} makes a new one')

    __setitem__ = __delitem__ = __ior__ = __setattr__ = __delattr__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_SHOWN = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, tuple, list, dict})
_SHOWN |= {Struct, RowItem, WrittenFloat}


def describe(value: Any, limit: int = 60) -> str:
    """A short text of any value for a message.

    >>> describe("x" * 100, 10)
    "'xxxxxxx…"
    """
    if type(value) is int and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    if type(value) not in _SHOWN:
        return "None" if value is None else f"a {type(value).__name__}"
    try:
        text = repr(value)
    except ValueError:
        return f"a {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 2]}…"
