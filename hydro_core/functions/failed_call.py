"""Why a call of a function failed, and what helps: in the same words wherever the call was made."""

from __future__ import annotations

import json
import re
from typing import Any

from hydro_core.types.json import to_json
from hydro_core.types.values import ValueProblem

_SHOWN = 200

_OWN = "handle such an item in the function, or drop it before: `-> filter(lambda …)`"
_CURES = {
    "ZeroDivisionError": "test the divisor first: `a / b if b else None`",
    "KeyError": "ask with `d.get(key)`, which gives None, or test `key in d` first",
    "IndexError": "test the length first: `x[0] if len(x) > 0 else None`",
    "DivisionByZero": "test the divisor first: `a / b if b else None`",
    "DivisionUndefined": "test the divisor first: `a / b if b else None`",
    "MemoryError": "let the function make less of one item: shorter texts, shorter lists",
    "RecursionError": "let the function call itself less deep, or make it a loop",
}
_OF_NONE = "test for None first, `None if v is None else …`, or drop such items before"
_OF_TYPES = "convert what does not fit, with `int(…)`, `float(…)` or `str(…)`; `hydrotick check` "
_OF_DATES = "bound what is added to a date, or drop such items before: a year has four digits"
_OF_SIZE = "take `float(…)` or `Decimal(…)` where numbers grow beyond 64 bits"
_OF_VALUES = "test the value first: `… if … else None`; or drop such items before"


def kind_of(problem: Exception) -> str:
    """The name of Python's exception; empty for what the language alone refuses."""
    return "" if isinstance(problem, ValueProblem) else type(problem).__name__


def shown(item: Any) -> str:
    """An item as a message shows it: as the command line prints it, but not all of a long one."""
    return shortened(json.dumps(to_json(item), ensure_ascii=False, default=str))


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def why(kind: str, reason: str) -> str:
    """An exception in a line.

    >>> why("KeyError", "'x'")
    "KeyError: 'x'"
    """
    return ": ".join(filter(None, (kind, reason)))


def cure(kind: str, reason: str) -> str:
    """What to do where a function fails with this exception.

    >>> cure("ZeroDivisionError", "division by zero")
    'test the divisor first: `a / b if b else None`'
    """
    if kind == "OverflowError" and re.search("date|timestamp|days|year", reason):
        return _OF_DATES
    if "64 bits" in reason or kind == "OverflowError":
        return _OF_SIZE
    if kind in ("TypeError", "AttributeError"):
        return _OF_NONE if "None" in reason else f"{_OF_TYPES}says which type each field has"
    if kind == "ValueError" or "ConversionSyntax" in reason:
        return _OF_VALUES
    return _CURES.get(kind, _OWN)
