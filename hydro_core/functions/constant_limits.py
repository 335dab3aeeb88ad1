"""What a constant may cost: steps, bytes that are made or read, and the size of its numbers.

Every operation says before it is done what it may make at most, and is refused where that is too
much: no text of a program takes more than a moment, or more memory than `MOST_BYTES`.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

MOST_BITS = 10_000
"""Bits of an integer: of more than 4,300 digits, Python writes no text."""
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
GROWTH = 12
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

    def before(self, op: str, left: Any, right: Any) -> None:
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
            self.foresee(check_format(form) + GROWTH * (self.weight(right) + len(form)))
        else:
            self.read(left, right)


def check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise LimitError(f"has an integer of more than {MOST_BITS:,} bits")


def check_places(places: int) -> None:
    if places > MOST_PLACES:
        raise LimitError(f"has a decimal of more than {MOST_PLACES:,} places")


def check_format(form: str) -> int:
    """Refuses a format with a wide field; gives how wide all fields are."""
    numbers = "".join(c if c.isdigit() else " " for c in form).split()
    if any(len(digits.lstrip("0")) > len(str(MOST_WIDTH)) for digits in numbers):
        raise LimitError(f"has a format wider than {MOST_WIDTH:,}")
    return sum(map(int, numbers))
