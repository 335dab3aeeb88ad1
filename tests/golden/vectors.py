"""The shared vectors: programs with inputs and outputs, where a folder above has them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hydro_core.running import calendar_given
from hydro_core.ticks.calendar import Calendar

Vector = dict[str, Any]


def shared(part: str) -> Path | None:
    """`shared/PART` of the nearest folder above that has it."""
    found = (folder / "shared" / part for folder in Path(__file__).resolve().parents)
    return next((path for path in found if path.exists()), None)


def vectors(*names: str) -> list[Vector]:
    """The vectors that are programs, of the folders of these names."""
    folder = shared("vectors")
    files = [f for name in names for f in sorted((folder / name).rglob("*.json"))] if folder else []
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [v for content in contents for v in content if "expect" in v or "error" in v]


def calendar_of(vector: Vector) -> Calendar | None:
    """When its ticks are, where it says so."""
    return calendar_given(vector.get("start"), vector.get("every"))


def key(value: Any) -> Any:
    """Equal exactly for equal items."""
    match value:
        case bool():
            return ("bool", value)
        case float() if math.isnan(value):
            return "nan"
        case list():
            return ("fields", tuple(map(key, value)))
        case dict():
            return ("row", frozenset((name, key(v)) for name, v in value.items()))
        case _:
            return value
