"""`--where COLUMN=VALUE`: how values of rows are written on a command line."""

from __future__ import annotations

import json
from typing import Any

from hydro_core.errors import DataError
from hydro_core.types.item import BOOLEAN, STRING, ItemType, is_numeric
from hydro_core.types.json import from_json


def value_in(text: str, item: ItemType) -> Any:
    """The value of a type that a text names: itself, between double quotes or not, or as in JSON.

    Raises:
        ValueProblem: it is none of that type.
    """
    if item == STRING:
        return _read(text) if len(text) > 1 and text[:1] == text[-1:] == '"' else text
    return from_json(_read(text) if is_numeric(item) or item == BOOLEAN else text, item)


def wrong_where(text: str, problem: str, cure: str) -> DataError:
    """The error of a `--where` that names no rows."""
    return DataError.of("config", f"`--where {text}`: {problem}", help=cure)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
