"""Adversarial values of every kind, and what a case of them is."""

# ruff: noqa: RUF001 - the letters are ambiguous on purpose

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import Any, NamedTuple

RANDOM = random.Random(4)
UTC = dt.UTC
_LONGS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62)]
LONGS = [*_LONGS, -5, 2**63 - 1, -(2**63), 2**63 - 2, 123456789, None]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    2.5,
    -2.5,
    3.5,
    1e16,
    9007199254740993.0,
    1e300,
    -1e300,
    5e-324,
]
FLOATS = [
    *FLOATS,
    2.0**63,
    -(2.0**63),
    2.0**62,
    float("inf"),
    float("-inf"),
    float("nan"),
    7.25,
    -7.25,
    None,
]
TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    " a b ",
    "\t x\n",
    "ß",
    "İ",
    "ΑΣ",
    "ΑΣ Σ",
    "Σ",
    "ǅ",
    "ﬁ",
    "𝒳y𝒳",
    "é",
    "e\u0301",
]
TEXTS += [
    "a,b,,c",
    ",",
    ",,",
    "a.b",
    "1",
    "-12",
    " +7 ",
    "1_000",
    "_1",
    "１２",
    "٣",
    "1.5",
    "9223372036854775807",
]
TEXTS += [
    "9223372036854775808",
    "0x1",
    "None",
    "true",
    "a\x00b",
    "x" * 50,
    "\u1680x\u3000",
    "\x1c a",
    "A\u0295Z",
    "\ua7cbx",
]
TEXTS += [
    "\U00010d70hello",
    "a\U00010d50BC\U00010d70\u019bq",
    "12345678901234567890123",
    "日本語",
    "a\nb",
    "b'",
    '"',
    "\\d",
    "%",
    "ab" * 3,
    "aXbXc",
    "00042",
    "+5",
    "-",
    "\u10d50Σ",
    "ΣΣ\u0301",
]


class Case(NamedTuple):
    """A type, items of it, functions that must compile, and some that must run in Python."""

    ddl: str
    items: list[Any]
    compiled: str
    python: str = ""


def pairs(values: list[Any], more: int = 0) -> list[Any]:
    pairs = list(itertools.product(values, values))
    for _ in range(more):
        small = RANDOM.randint(0, 2 ** RANDOM.randint(0, 62))
        pairs.append((RANDOM.randint(-(2**63), 2**63 - 1), RANDOM.choice([-1, 1]) * small))
    return pairs
