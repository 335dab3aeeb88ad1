"""What is known of where a value comes from.

`Copied` is the very value of an input field, `ComputedFrom` a value that is computed from some.
`KnownParts` is a tuple, row or list that was made here, `Many` a list of any number of like items,
`Maybe` a value or None, `NoValue` a value that does not come to be. Two branches are `joined`: what
comes out is a copy of what it is a copy of in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hydro_core.types.item import FieldPath, ItemType, Row, Tuple


class InputField(NamedTuple):
    """A field of an argument: which argument, and the way into it."""

    input: int
    path: FieldPath


Fields = frozenset[InputField]
NONE: Fields = frozenset()


@dataclass(frozen=True, slots=True)
class Copied:
    """The value of a field of an input."""

    field: InputField
    type: ItemType

    def part(self, name: str) -> Copied | None:
        """A field of it, by its name or place; None where it has none of that name."""
        match self.type:
            case Row():
                found = self.type.column(name)
            case Tuple(fields) if name.isdecimal() and int(name) < len(fields):
                found = fields[int(name)]
            case _:
                return None
        path = (*self.field.path, name)
        return None if found is None else Copied(InputField(self.field.input, path), found)


@dataclass(frozen=True, slots=True)
class ComputedFrom:
    """A value that is computed from fields of the inputs."""

    fields: Fields = NONE


@dataclass(frozen=True, slots=True)
class KnownParts:
    """A tuple, row or list whose parts are known; without names they are "0", "1" and so on."""

    kind: Literal["tuple", "row", "list"]
    parts: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Many:
    """A list of any number of items that are all like `item`."""

    item: Value


@dataclass(frozen=True, slots=True)
class Maybe:
    """None, or `value`; which one depends on the fields `why`."""

    value: Value
    why: Fields = NONE


@dataclass(frozen=True, slots=True)
class NoValue:
    """There is no value: something raised."""


Value = Copied | ComputedFrom | KnownParts | Many | Maybe | NoValue
NEVER = NoValue()
ONLY_NONE = Maybe(NEVER)
"""None itself."""


def sources(*values: Value) -> Fields:
    """Every input field that the values have to do with."""
    found: Fields = NONE
    for value in values:
        match value:
            case Copied(field):
                found |= {field}
            case ComputedFrom(fields):
                found |= fields
            case KnownParts(_, parts):
                found |= sources(*parts.values())
            case Many(inner):
                found |= sources(inner)
            case Maybe(inner, why):
                found |= sources(inner) | why
            case NoValue():
                pass
    return found


def computed(*values: Value) -> ComputedFrom:
    return ComputedFrom(sources(*values))


def sequence(kind: Literal["tuple", "list"], values: Iterable[Value]) -> KnownParts:
    return KnownParts(kind, {str(i): value for i, value in enumerate(values)})


def there(value: Value) -> Value:
    """The value, if it is not None: None has no parts, and reading one fails."""
    return value.value if isinstance(value, Maybe) else value


def kind_of(value: Value) -> str | None:
    """What kind of parts a value has, if they are known."""
    match value:
        case KnownParts(kind):
            return kind
        case Copied(type=Tuple() | Row() as of):
            return "tuple" if isinstance(of, Tuple) else "row"
        case _:
            return None


def opened(value: Value) -> Value:
    """A copy of a tuple or row as its parts, anything else as it is."""
    match value:
        case Copied(type=Tuple(fields)):
            return sequence("tuple", [value.part(str(i)) or NEVER for i in range(len(fields))])
        case Copied(type=Row() as row):
            return KnownParts("row", {name: value.part(name) or NEVER for name in row.names})
        case _:
            return value


def part(value: Value, step: str | int) -> Value:
    """A part of a value, by its name or its place."""
    value = there(value)
    if isinstance(value, Copied) and isinstance(step, str):
        return value.part(step) or computed(value)
    match opened(value):
        case KnownParts(kind, parts):
            if isinstance(step, int):
                step = "" if kind == "row" else str(step + len(parts) if step < 0 else step)
            return parts.get(step, computed(value))
        case Many(item) if isinstance(step, int):
            return item
        case NoValue():
            return NEVER
        case _:
            return computed(value)


def elements(value: Value) -> Value:
    """What any of the items of a value is like, if it is a tuple or list."""
    match opened(value):
        case KnownParts("tuple" | "list", parts):
            return joined(parts.values())
        case Many(item):
            return item
        case NoValue():
            return NEVER
        case _:
            return computed(value)


def items_of_list(value: Value) -> Value | None:
    """What all items of a list that was made here are like; None where it is no such list."""
    is_list = isinstance(value, Many) or kind_of(value) == "list"
    return elements(value) if is_list else None


def joined(values: Iterable[Value], why: Fields = NONE) -> Value:
    """A value that is one of several; which one depends on the fields `why`."""
    result: Value = NEVER
    for value in values:
        result = _join(result, value, why)
    return result


def _join(a: Value, b: Value, why: Fields) -> Value:
    if isinstance(a, NoValue) or isinstance(b, NoValue):
        return b if isinstance(a, NoValue) else a
    if isinstance(a, Maybe) or isinstance(b, Maybe):
        whys = (v.why for v in (a, b) if isinstance(v, Maybe))
        return Maybe(_join(there(a), there(b), why), why.union(*whys))
    if isinstance(a, Copied) and a == b:
        return a
    match opened(a), opened(b):
        case KnownParts(kind, parts), KnownParts(other, more) if (
            kind == other and parts.keys() == more.keys()
        ):
            return KnownParts(kind, {n: _join(v, more[n], why) for n, v in parts.items()})
    item, another = items_of_list(a), items_of_list(b)
    if item is not None and another is not None:
        return Many(_join(item, another, why))
    return ComputedFrom(sources(a, b) | why)


def unpacked(value: Value, count: int, star: int | None) -> list[Value]:
    """What so many targets get of a value, of which the one at `star` gets all that is left.

    Of another length there are no values: unpacking fails, and what is said then holds of nothing.
    """
    inner = there(value)
    match opened(inner):
        case KnownParts("tuple" | "list", parts):
            fields = list(parts.values())
        case Many(item):
            return [Many(item) if i == star else item for i in range(count)]
        case NoValue():
            return [NEVER] * count
        case _:
            return [computed(value)] * count
    spare = len(fields) - count
    if star is None and spare == 0:
        return fields
    if star is None or spare < -1:
        return [computed(value)] * count
    end = star + spare + 1
    return [*fields[:star], sequence("list", fields[star:end]), *fields[end:]]
