"""Values as records that JSON and Arrow hold, and back: what is stored, and what processes tell.

Values are frozen dataclasses of texts, numbers, times, mappings and sequences. Their annotations
say how they are read, so nothing but such values can come of what another process has written, and
a new field is written and read with no word about it anywhere else. What was written before a field
was there has its default.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

AS_TEXT: Mapping[str, Any] = {"as": "text"}
"""Metadata of a field that is stored as a text of JSON."""
INLINE: Mapping[str, Any] = {"as": "inline"}
"""Metadata of a field whose own fields are columns of a row, in its place."""
BEFORE = "before"
"""In the metadata of a field: what it is in records from before it was there, if not its default.
"""


def as_record(value: Any) -> Any:
    """What `json` can write of a value."""
    if is_dataclass(value):
        return {field.name: as_record(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_record(one) for key, one in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Sequence | set | frozenset):
        return [as_record(one) for one in value]
    # A number of numpy's is one; whatever else a check has seen is shown as text.
    return as_record(value.item()) if hasattr(value, "item") else str(value)


def of_record(kind: Any, found: Any) -> Any:
    """The value of a type that a record was made of.

    Args:
        kind: a dataclass, or whatever an annotation of its fields says.
        found: what `as_record` gave, or what was read of an Arrow table.

    Raises:
        TypeError, ValueError, KeyError: it is no record of that type.
    """
    origin, of = get_origin(kind), get_args(kind)
    if found is None or kind is Any or origin is Literal:
        return found
    if isinstance(kind, type) and is_dataclass(kind):
        return _of_fields(kind, found)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(found)
    if origin in (Union, types.UnionType):
        return of_record(optional(kind), found)
    if origin is tuple and of[1:] != (...,):
        return tuple(of_record(one, part) for one, part in zip(of, found, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        # Arrow gives pairs.
        pairs = found.items() if isinstance(found, Mapping) else found
        key: Any = int if of[0] is int else lambda name: name
        return {key(name): of_record(of[1], one) for name, one in pairs}
    if origin is not None:
        made = origin if origin in (frozenset, set) else tuple
        return made(of_record(of[0], one) for one in found)
    return _time(found) if kind is datetime else found


def optional(kind: Any) -> Any:
    """What a type is beside None."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not types.NoneType)
    return kind


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by their names."""
    return get_type_hints(kind)


def _of_fields(kind: type, found: Mapping[str, Any]) -> Any:
    known, given, left = hints_of(kind), dict[str, Any](), dict(found)
    for field in fields(kind):
        of, how = known[field.name], field.metadata.get("as")
        if how == "inline" and field.name not in left:
            names = [inner.name for inner in fields(optional(of))]
            given[field.name] = _of_fields(of, {n: left.pop(n) for n in names if n in left})
        elif field.name in left:
            one = left.pop(field.name)
            if how == "text":
                one = json.loads(one)
            if one is not None or optional(of) is not of:
                given[field.name] = of_record(of, one)
        elif BEFORE in field.metadata:
            given[field.name] = field.metadata[BEFORE]
    if left:
        raise TypeError(f"{kind.__name__} has no {', '.join(map(repr, left))}")
    return kind(**given)


def _time(found: str | datetime) -> datetime:
    """A time; one that Arrow gave has no zone, and is UTC's."""
    if isinstance(found, str):
        return datetime.fromisoformat(found)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
