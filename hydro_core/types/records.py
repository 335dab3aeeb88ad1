"""Codecs between values and records of JSON or Arrow, for stored files and for other processes.

Values are frozen dataclasses of texts, numbers, times, mappings and sequences. Their annotations
determine how they are written and read. So a record of another process can only become such values,
and a new field needs no other change. A field that a record lacks has its default.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

AS_TEXT: Mapping[str, Any] = {"as": "text"}
"""Metadata of a field that is stored as JSON text."""
INLINE: Mapping[str, Any] = {"as": "inline"}
"""Metadata of a field whose own fields are part of the record, in its place."""
IF_GIVEN: Mapping[str, Any] = {"as": "if given"}
"""Metadata of a field that is written only if it is neither None nor empty."""
NAME = "name"
"""In the metadata of a field: its name in records, if that differs."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The functions that write and read values of a type.

    Both have as their first argument a value that is shared within one document, then the value or
    the record.
    """

    write: Callable[[Any, Any], Any]
    read: Callable[[Any, Any], Any]


class Codecs:
    """The codecs of types, each derived from annotations on first use.

    Args:
        own: codecs of types that differ from their annotations, such as spans that are numbers
            of a table.
        positional: the dataclasses that are lists of their fields, not objects. In a tuple of
            several types, or as a key, the parts of such a list are inlined.
        anything: the codec of values annotated as `Any`.
    """

    def __init__(
        self,
        own: Mapping[Any, Codec] | None = None,
        positional: frozenset[type] = frozenset(),
        anything: Codec | None = None,
    ) -> None:
        self._known: dict[Any, Codec] = dict(own or {})
        self._positional = positional
        self._known[Any] = anything or Codec(self._write_plain, lambda _, found: found)

    def of(self, kind: Any) -> Codec:
        """The codec of a type: a dataclass, or any annotation."""
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = self._made(kind)
        return found

    def declare(self, kind: Any, codec: Codec) -> None:
        """Sets the codec of a type, in place of the one by its annotations."""
        self._known[kind] = codec

    def _made(self, kind: Any) -> Codec:
        origin, of = get_origin(kind), get_args(kind)
        if isinstance(kind, type) and is_dataclass(kind):
            return self._list_of(kind) if kind in self._positional else self.fields_of(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return Codec(lambda _, value: value.value, lambda _, found: kind(found))
        if origin in (Union, types.UnionType):
            codec = self.of(optional(kind))
            return Codec(
                lambda shared, value: None if value is None else codec.write(shared, value),
                lambda shared, found: None if found is None else codec.read(shared, found),
            )
        if origin is tuple and of[1:] != (...,):
            return self._row(of)
        if origin is not None and origin is not Literal:
            return self._mapping(*of) if issubclass(origin, Mapping) else self._items(origin, of[0])
        read = (lambda _, found: _time(found)) if kind is datetime else (lambda _, found: found)
        return Codec(self._write_plain, read)

    def fields_of(self, kind: type, *leaving_out: str) -> Codec:
        """The codec of a dataclass as an object of its fields, without the fields `leaving_out`.

        With `leaving_out`, reading returns a mapping of the fields; the caller constructs the
        object.
        """

        @cache
        def parts() -> list[_FieldCodec]:
            hints = [(f, hints_of(kind)[f.name]) for f in fields(kind) if f.name not in leaving_out]
            return [_FieldCodec(field, hint, self.of(hint)) for field, hint in hints]

        def write(shared: Any, value: Any) -> Any:
            record: dict[str, Any] = {}
            for part in parts():
                part.write(shared, value, record)
            return record

        def read(shared: Any, found: Any) -> Any:
            given, left = dict[str, Any](), dict(found)
            for part in parts():
                part.read(shared, left, given)
            if left:
                raise TypeError(f"{kind.__name__} has no {', '.join(map(repr, left))}")
            return given if leaving_out else kind(**given)

        return Codec(write, read)

    def _list_of(self, kind: type) -> Codec:
        @cache
        def parts() -> list[tuple[str, Codec]]:
            return [(f.name, self.of(hints_of(kind)[f.name])) for f in fields(kind)]

        def write(shared: Any, value: Any) -> Any:
            return [codec.write(shared, getattr(value, name)) for name, codec in parts()]

        def read(shared: Any, found: Any) -> Any:
            given = zip(parts(), found, strict=True)
            return kind(*(codec.read(shared, part) for (_, codec), part in given))

        return Codec(write, read)

    def _row(self, of: Sequence[Any]) -> Codec:
        """The codec of a tuple of several types."""

        def write(shared: Any, value: Any) -> Any:
            row: list[Any] = []
            for kind, one in zip(of, value, strict=True):
                part = self.of(kind).write(shared, one)
                row += part if kind in self._positional else [part]
            return row

        def read(shared: Any, found: Any) -> Any:
            left, parts = list(found), []
            for kind in of:
                width = len(fields(kind)) if kind in self._positional else 0
                part, left = (left[:width], left[width:]) if width else (left[0], left[1:])
                parts.append(self.of(kind).read(shared, part))
            if left:
                raise ValueError(f"{len(of)} parts are expected, and there are more: {found}")
            return tuple(parts)

        return Codec(write, read)

    def _mapping(self, key: Any, of: Any) -> Codec:
        if key in self._positional:
            row = self._row((key, of))
            return Codec(
                lambda shared, value: [row.write(shared, pair) for pair in value.items()],
                lambda shared, found: dict(row.read(shared, one) for one in found),
            )

        def read(shared: Any, found: Any) -> Any:
            # Arrow gives pairs.
            pairs = found.items() if isinstance(found, Mapping) else found
            return {
                int(name) if key is int else name: self.of(of).read(shared, one)
                for name, one in pairs
            }

        return Codec(
            lambda shared, value: {
                str(name): self.of(of).write(shared, one) for name, one in value.items()
            },
            read,
        )

    def _items(self, origin: type, of: Any) -> Codec:
        unordered = origin in (frozenset, set)
        made = origin if unordered else tuple
        return Codec(
            lambda shared, value: [
                self.of(of).write(shared, one) for one in (sorted(value) if unordered else value)
            ],
            lambda shared, found: made(self.of(of).read(shared, one) for one in found),
        )

    def _write_plain(self, shared: Any, value: Any) -> Any:
        """A JSON value of a value without an annotation."""
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if is_dataclass(value) or isinstance(value, Enum):
            return self.of(type(value)).write(shared, value)
        if isinstance(value, Mapping):
            return {str(key): self._write_plain(shared, one) for key, one in value.items()}
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, Sequence | set | frozenset):
            return [self._write_plain(shared, one) for one in value]
        # A numpy number is a number; any other value, such as one from a check, is shown as text.
        return self._write_plain(shared, value.item()) if hasattr(value, "item") else str(value)


@dataclass(frozen=True, slots=True)
class _FieldCodec:
    """Writes a field of a dataclass into a record, and reads it from one."""

    field: Field[Any]
    kind: Any
    codec: Codec

    @property
    def _name(self) -> str:
        name: str = self.field.metadata.get(NAME, self.field.name)
        return name

    def write(self, shared: Any, value: Any, record: dict[str, Any]) -> None:
        one, how = getattr(value, self.field.name), self.field.metadata.get("as")
        if how == "if given" and not one:
            return
        written = self.codec.write(shared, one)
        if how == "inline":
            record |= written
        else:
            record[self._name] = json.dumps(written) if how == "text" else written

    def read(self, shared: Any, left: dict[str, Any], given: dict[str, Any]) -> None:
        """Removes the field's entries from the rest of a record and reads them."""
        how = self.field.metadata.get("as")
        if how == "inline" and self._name not in left:
            inner = fields(optional(self.kind))
            names = [one.metadata.get(NAME, one.name) for one in inner]
            found: Any = {name: left.pop(name) for name in names if name in left}
        elif self._name in left:
            found = left.pop(self._name)
        else:
            return
        if found is not None or self.kind is Any or types.NoneType in get_args(self.kind):
            found = json.loads(found) if how == "text" else found
            given[self.field.name] = self.codec.read(shared, found)


_RECORDS = Codecs()


def as_record(value: Any) -> Any:
    """A JSON value of a value."""
    return _RECORDS.of(Any).write(None, value)


def of_record(kind: Any, found: Any) -> Any:
    """The value of a type that a record was written from.

    Args:
        kind: a dataclass, or any annotation of its fields.
        found: the result of `as_record`, or a value from an Arrow table.

    Raises:
        TypeError, ValueError, KeyError: the record does not have that type.
    """
    return None if found is None else _RECORDS.of(kind).read(None, found)


def optional(kind: Any) -> Any:
    """The first type of a union that is not None; of several, all have the same codec."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not types.NoneType)
    return kind


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by their names."""
    return get_type_hints(kind)


def _time(found: str | datetime) -> datetime:
    """A time; one from Arrow has no zone and is in UTC."""
    if isinstance(found, str):
        return datetime.fromisoformat(found)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
