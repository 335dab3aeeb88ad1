"""What is known of where a value comes from.

A `Trace` is a value that is equal to some input fields, or is computed from some. `KnownParts` is a
tuple, row or list that was made here, `Many` a list of any number of like items, `Maybe` a value or
None, `NoValue` a value that does not come to be. Two branches are `joined`: what comes out is equal
to what it is equal to in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hydro_core.types.item import FieldPath, ItemType, Row, Tuple, at


class InputField(NamedTuple):
    """A field of an argument: which argument, and the way into it."""

    input: int
    path: FieldPath


Fields = frozenset[InputField]
NONE: Fields = frozenset()


@dataclass(frozen=True, slots=True)
class Trace:
    """A value that equals every field of `equal`; without any, it is computed from `computed`."""

    equal: Fields = NONE
    computed: Fields = NONE


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


Value = Trace | KnownParts | Many | Maybe | NoValue
NEVER = NoValue()
ONLY_NONE = Maybe(NEVER)
"""None itself."""


def sources(value: Value) -> Fields:
    """Every input field that the value has to do with."""
    match value:
        case Trace(equal, computed):
            return equal | computed
        case KnownParts(_, parts):
            return NONE.union(*map(sources, parts.values()))
        case Many(inner):
            return sources(inner)
        case Maybe(inner, why):
            return sources(inner) | why
        case NoValue():
            return NONE


def computed(*values: Value) -> Trace:
    """A value that is computed from others."""
    return Trace(NONE, NONE.union(*map(sources, values)))


def sequence(kind: Literal["tuple", "list"], values: Iterable[Value]) -> KnownParts:
    """A tuple or list of these parts."""
    return KnownParts(kind, {str(i): value for i, value in enumerate(values)})


@dataclass(frozen=True, slots=True)
class Shapes:
    """The types of the arguments, which tell what parts a traced value has."""

    inputs: tuple[ItemType, ...]

    def opened(self, value: Value) -> Value:
        """A trace of a tuple or row as its parts, anything else as it is."""
        shape = self._shape(value)
        if not isinstance(value, Trace) or shape is None:
            return value
        names = map(str, range(len(shape.fields))) if isinstance(shape, Tuple) else shape.names
        parts = {name: _part(value, name) for name in names}
        return KnownParts("tuple" if isinstance(shape, Tuple) else "row", parts)

    def kind(self, value: Value) -> str | None:
        """Which kind of parts are known of a value: as `opened`, of which they are not made."""
        if isinstance(value, KnownParts):
            return value.kind
        shape = self._shape(value)
        return None if shape is None else "tuple" if isinstance(shape, Tuple) else "row"

    def _shape(self, value: Value) -> Tuple | Row | None:
        if not isinstance(value, Trace) or not value.equal:
            return None
        first, *others = (at(self.inputs[f.input], f.path) for f in value.equal)
        alike = isinstance(first, Tuple | Row) and all(other == first for other in others)
        return first if alike and isinstance(first, Tuple | Row) else None

    def joined(self, values: Iterable[Value], why: Fields = NONE) -> Value:
        """A value that is one of several; which one depends on the fields `why`."""
        result: Value = NEVER
        for value in values:
            result = self._join(result, value, why)
        return result

    def _join(self, a: Value, b: Value, why: Fields) -> Value:
        if isinstance(a, NoValue) or isinstance(b, NoValue):
            return b if isinstance(a, NoValue) else a
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            one, other = (v.value if isinstance(v, Maybe) else v for v in (a, b))
            whys = (v.why for v in (a, b) if isinstance(v, Maybe))
            return Maybe(self._join(one, other, why), why.union(*whys))
        if isinstance(a, Trace) and isinstance(b, Trace) and (a.equal & b.equal):
            return Trace(a.equal & b.equal)
        x, y = self.opened(a), self.opened(b)
        if isinstance(x, KnownParts) and isinstance(y, KnownParts) and _is_alike(x, y):
            pairs = {n: self._join(v, y.parts[n], why) for n, v in x.parts.items()}
            return KnownParts(x.kind, pairs)
        item, another = self.items(x), self.items(y)
        if item is not None and another is not None:
            return Many(self._join(item, another, why))
        return Trace(NONE, sources(a) | sources(b) | why)

    def items(self, value: Value) -> Value | None:
        """What all items of a list that was made here are like; None where it is no such list."""
        match value:
            case Many(item):
                return item
            case KnownParts("list", parts):
                return self.joined(parts.values())
            case _:
                return None

    def part(self, value: Value, name: str | int) -> Value:
        """A part of a value, by its name or position."""
        if isinstance(value, Maybe):  # None has no parts: reading one fails
            return self.part(value.value, name)
        shape = self._shape(value)
        if isinstance(value, Trace) and isinstance(shape, Row) and name in shape.by_name:
            return _part(value, str(name))
        match self.opened(value):
            case KnownParts(kind, parts):
                if isinstance(name, int) and kind != "row":
                    name = str(name + len(parts) if name < 0 else name)
                return (
                    parts.get(str(name), computed(value))
                    if isinstance(name, str)
                    else computed(value)
                )
            case Many(item):
                return item if isinstance(name, int) else computed(value)
            case NoValue():
                return NEVER
            case _:
                return computed(value)


def _part(whole: Trace, name: str) -> Trace:
    return Trace(frozenset(InputField(i, (*path, name)) for i, path in whole.equal))


def _is_alike(a: KnownParts, b: KnownParts) -> bool:
    return a.kind == b.kind and a.parts.keys() == b.parts.keys()
