"""What a constant may cost: steps, bytes that are made or read, and the size of its numbers.

Every operation says before it is done what it may make at most, and is refused where that is too
much: no text of a program takes more than a moment, or more memory than `MOST_BYTES`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hydro_core.functions.check import MOST_BITS

MOST_STEPS = 300_000
"""Nodes of the tree that are visited."""
MOST_BYTES = 100_000_000
"""Bytes of all values that are made or gone through; a part counts wherever it stands."""
MOST_PLACES = 6_000
"""Digits before or behind the point of a decimal."""
MOST_WIDTH = 9_999
"""A width or precision in a format."""
MOST_FORMAT = 10_000
"""Characters of a format of times."""
_PER_PART = 60
"""Bytes of a short text, as which parts of another one are held."""
_GROWTH = 12
"""Bytes of a text that shows a value, by the value's own: escapes are the longest."""


class LimitError(Exception):
    """A limit is reached; the message is what it says of the constant."""


class Budget:
    """What is left of the limits while one constant is computed."""

    def __init__(self) -> None:
        self.steps = 0
        self.bytes = 0
        self._weights: dict[int, tuple[Any, int]] = {}

    def step(self) -> None:
        """Counts a node that is visited."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise LimitError(f"takes more than {MOST_STEPS:,} steps")

    def charge(self, size: int) -> None:
        """Counts bytes that are about to be made or read."""
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise LimitError(f"makes or reads more than {MOST_BYTES // 1_000_000} MB")

    def foresee(self, size: int) -> None:
        """Refuses bytes that are about to be made if they are too many; they are counted then."""
        if self.bytes + size > MOST_BYTES:
            self.charge(size)

    def made(self, value: Any) -> Any:
        """The value, which an operation has made."""
        self.charge(self.weight(value))
        return value

    def weight(self, value: Any) -> int:
        """The bytes of a value, each part counted as often as it stands in it."""
        match value:
            case bool():
                return sys.getsizeof(value)
            case int():
                check_bits(value.bit_length())
            case Decimal():
                places = len(value.as_tuple().digits) if value.is_finite() else 0
                check_places(max(abs(value.adjusted()), places) if value.is_finite() else 0)
            case list() | tuple() | set() | dict():
                return self._parts(value)
        return sys.getsizeof(value)

    def _parts(self, value: Any) -> int:
        known = self._weights.get(id(value))
        if known is not None:
            return known[1]
        total = sys.getsizeof(value)
        parts = (p for pair in value.items() for p in pair) if isinstance(value, dict) else value
        for part in parts:
            total += self.weight(part)
            if total > MOST_BYTES:
                break
        self._weights[id(value)] = (value, total)  # it is held, so that no other gets its id
        return total

    def read(self, *values: Any) -> None:
        """Counts values that are gone through as a whole."""
        self.charge(sum(map(self.weight, values)))

    def before_binary(self, op: str, left: Any, right: Any) -> None:
        """Refuses an operator whose result would be too large."""
        if isinstance(left, int) and isinstance(right, int):
            if op == "**":
                check_bits(left.bit_length() * max(0, right))
            elif op == "<<":
                check_bits(left.bit_length() + max(0, right))
        elif op == "*":
            for a, b in ((left, right), (right, left)):
                if isinstance(a, str | bytes | list | tuple) and isinstance(b, int):
                    self.foresee(self.weight(a) * max(0, b))
        elif op == "%" and isinstance(left, str | bytes):
            form = left if isinstance(left, str) else left.decode("latin-1")
            if "*" in form:
                raise LimitError("has a format whose width is computed")
            self.foresee(check_format(form) + _GROWTH * (self.weight(right) + len(form)))
        else:
            self.read(left, right)

    def before_call(self, name: str, args: list[Any]) -> None:
        """Refuses the call of a builtin that would make or read too much."""
        self.read(*(a for a in args if not callable(a)))
        before = _CALLS.get(name)
        if before is not None and args:
            before(self, args)

    def before_method(self, name: str, base: Any, args: list[Any]) -> None:
        """Refuses the call of a method that would make or read too much."""
        self.read(base, *(a for a in args if not callable(a)))
        before = _METHODS.get(name)
        if before is not None:
            before(self, base, args)

    def before_format(self, value: Any, spec: str) -> None:
        """Refuses a value of an f-string whose text would be too long."""
        self.foresee(check_format(spec) + _GROWTH * self.weight(value))


def check_bits(bits: int) -> None:
    """Refuses an integer of so many bits."""
    if bits > MOST_BITS:
        raise LimitError(f"has an integer of more than {MOST_BITS:,} bits")


def check_places(places: int) -> None:
    """Refuses a decimal of so many digits."""
    if places > MOST_PLACES:
        raise LimitError(f"has a decimal of more than {MOST_PLACES:,} places")


def check_format(form: str) -> int:
    """Refuses a format with a wide field; gives how wide all fields are."""
    numbers = "".join(c if c.isdigit() else " " for c in form).split()
    if any(len(digits.lstrip("0")) > len(str(MOST_WIDTH)) for digits in numbers):
        raise LimitError(f"has a format wider than {MOST_WIDTH:,}")
    return sum(map(int, numbers))


def _range(limits: Budget, args: list[Any]) -> None:
    limits.foresee(len(range(*args)) * (sys.getsizeof(0) + 16))


def _number(limits: Budget, args: list[Any]) -> None:
    if isinstance(args[0], str | bytes):
        check_places(len(args[0]))


def _sum(limits: Budget, args: list[Any]) -> None:
    # Python copies what it has, with every sequence that it adds.
    if len(args) > 1 and isinstance(args[1], list | tuple) and isinstance(args[0], list | tuple):
        limits.charge(limits.weight(args[0]) * (len(args[0]) + 1) // 2)


def _sorted(limits: Budget, args: list[Any]) -> None:
    if isinstance(args[0], list | tuple | set | dict):
        limits.charge(limits.weight(args[0]) * int(math.log2(len(args[0]) + 1)))


def _round(limits: Budget, args: list[Any]) -> None:
    if len(args) > 1 and isinstance(args[1], int):
        check_places(abs(args[1]))


def _text(limits: Budget, args: list[Any]) -> None:
    limits.foresee(_GROWTH * limits.weight(args[0]))


def _form(limits: Budget, args: list[Any]) -> None:
    if any(isinstance(a, str) and len(a) > MOST_FORMAT for a in args):
        raise LimitError(f"has a format of more than {MOST_FORMAT:,} characters")


def _width(limits: Budget, base: Any, args: list[Any]) -> None:
    tabs = base.count("\t") if isinstance(base, str) else 1
    limits.foresee(4 * max(tabs, 1) * max((a for a in args if isinstance(a, int)), default=8))


def _split(limits: Budget, base: Any, args: list[Any]) -> None:
    limits.foresee(_PER_PART * len(base))


def _replace(limits: Budget, base: Any, args: list[Any]) -> None:
    if isinstance(base, str | bytes) and len(args) > 1:
        limits.foresee((base.count(args[0]) + 1) * limits.weight(args[1]))


def _join(limits: Budget, base: Any, args: list[Any]) -> None:
    if args and isinstance(args[0], list | tuple | set | dict):
        limits.foresee(len(args[0]) * limits.weight(base))


def _grows(limits: Budget, base: Any, args: list[Any]) -> None:
    limits.foresee(_GROWTH * limits.weight(base))


def _scaled(limits: Budget, base: Any, args: list[Any]) -> None:
    check_places(max((abs(int(a)) for a in args if isinstance(a, int | Decimal)), default=0))


_CALLS: Mapping[str, Callable[[Budget, list[Any]], None]] = {
    "range": _range,
    "int": _number,
    "float": _number,
    "Decimal": _number,
    "float.fromhex": _number,
    "sum": _sum,
    "sorted": _sorted,
    "round": _round,
    "str": _text,
    "datetime.strptime": _form,
}
_METHODS: Mapping[str, Callable[[Budget, Any, list[Any]], None]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"), _width),
    **dict.fromkeys(("split", "rsplit", "splitlines"), _split),
    **dict.fromkeys(("upper", "lower", "title", "casefold", "swapcase", "capitalize"), _grows),
    **dict.fromkeys(("encode", "decode"), _grows),
    "replace": _replace,
    "join": _join,
    "strftime": lambda limits, _, args: _form(limits, args),
    "scaleb": _scaled,
}
