"""Items as expressions of Python: how programs, plans and S-expressions write them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any


def quoted(text: str) -> str:
    """A text in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Any, string: Callable[[str], str] = quoted) -> str:
    """A Python expression for an item; `string` writes its texts.

    >>> literal((1, None, {"a": [float("inf")]}))
    '(1, None, {"a": [float("inf")]})'
    """
    match value:
        case str():
            return string(value)
        case float() if not math.isfinite(value):
            return f"float({string(str(value))})"
        case tuple():
            inside = ", ".join(literal(part, string) for part in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case list():
            return f"[{', '.join(literal(part, string) for part in value)}]"
        case Mapping():
            fields = (f"{string(name)}: {literal(value[name], string)}" for name in value)
            return "{" + ", ".join(fields) + "}"
        case Decimal():
            return f"Decimal({string(str(value))})"
        case date() | timedelta():
            return _moment(value)
        case _:
            return repr(value)


def _moment(value: date | timedelta) -> str:
    if isinstance(value, timedelta):
        units = ("days", "seconds", "microseconds")
        given = (f"{unit}={n}" for unit in units if (n := getattr(value, unit)))
        return f"timedelta({', '.join(given)})"
    if not isinstance(value, datetime):
        return f"date({value.year}, {value.month}, {value.day})"
    parts = [value.year, value.month, value.day, value.hour, value.minute, value.second]
    parts += [value.microsecond] if value.microsecond else []
    zone = ", tzinfo=timezone.utc" if value.tzinfo else ""
    return f"datetime({', '.join(map(str, parts))}{zone})"
