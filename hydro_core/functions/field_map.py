"""The lineage of fields: which output fields of a function are which input fields, always.

Sound first: an output field is said to equal an input field only if, for every item that comes out,
it is the very value of that field of the item that went in. A function that cannot be read says
nothing; a part of one that cannot be says nothing of what it touches. A call of something unknown
may change the arrays it can reach, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hydro_core.functions.bind import arguments_of
from hydro_core.functions.fn import Fn
from hydro_core.functions.made import ResultUse, made_fields
from hydro_core.functions.tracer import Tracer
from hydro_core.functions.traces import (
    NEVER,
    NONE,
    Fields,
    InputField,
    KnownParts,
    Many,
    Maybe,
    NoValue,
    Shapes,
    Trace,
    Value,
    computed,
)
from hydro_core.functions.tree import Expr
from hydro_core.types.item import FieldPath, ItemType, at, leaves


@dataclass(frozen=True, slots=True)
class FieldMap:
    """For each field of the output: the input fields it equals, and those it is computed from.

    Keys are paths into the output item; a field that equals some input is not computed. A path that
    leads deeper than a key is part of what the key says is computed.
    """

    equal: Mapping[FieldPath, Fields]
    computed: Mapping[FieldPath, Fields]
    made: Mapping[FieldPath, Expr] = field(default_factory=dict)
    """Of computed fields: the expression of the inputs' fields that they are, where it is known."""
    padded: Mapping[FieldPath, Fields] = field(default_factory=dict)
    """Of computed fields: those of the inputs whose very value they are where they are not null."""

    def nearest(self, path: FieldPath) -> tuple[FieldPath, FieldPath] | None:
        """The longest beginning of a path of which something is said, and the rest of the path."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.equal or path[:length] in self.computed:
                return path[:length], path[length:]
        return None


def field_map(
    fn: Fn, inputs: tuple[ItemType, ...], *, spread: bool = True, use: ResultUse = "item"
) -> FieldMap:
    """The lineage of the function's result, for arguments of these types.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (v, k + 1)", mode="eval").body, {})
    >>> found = field_map(f, (parse_ddl("(long, string)"),))
    >>> {".".join(p): [".".join(f.path) for f in fields] for p, fields in found.equal.items()}
    {'0': ['1']}
    """
    shapes = Shapes(inputs)
    everything = tuple(Trace(frozenset([InputField(i, ())])) for i in range(len(inputs)))
    names = _parameters(fn, inputs, shapes, spread=spread)
    if fn.tree is None or names is None:
        return _result(computed(*everything), NONE, inputs, fn.returns)
    tracer = Tracer(shapes)
    value = _output(tracer.of(fn.tree, names), use, shapes)
    found = _result(value, frozenset(tracer.changed), inputs, fn.returns)
    made = made_fields(fn, inputs, use=use) if spread else {}
    return replace(found, made=made)


def _parameters(
    fn: Fn, inputs: tuple[ItemType, ...], shapes: Shapes, *, spread: bool
) -> dict[str, Value] | None:
    arguments = arguments_of(fn, inputs)
    if arguments is None or not (spread or len(fn.params) == len(inputs)):
        return None
    if any(a.place is not None and a.step is None for a in arguments):
        return None
    wholes = [Trace(frozenset([InputField(a.input, ())])) for a in arguments]
    values = [
        whole if a.step is None else shapes.part(whole, a.step)
        for whole, a in zip(wholes, arguments, strict=True)
    ]
    return dict(zip(fn.params, values, strict=True))


def _output(value: Value, use: ResultUse, shapes: Shapes) -> Value:
    """The value of one output item."""
    if use != "item" and isinstance(value, Maybe):
        value = value.value
    if use != "elements":
        return value
    match shapes.opened(value):
        case Many(item):
            return item
        case KnownParts("tuple" | "list", parts):
            return shapes.joined(parts.values())
        case NoValue():
            return NEVER
        case _:
            return computed(value)


def _result(
    value: Value, changed: Fields, inputs: tuple[ItemType, ...], returns: ItemType | None
) -> FieldMap:
    equal: dict[FieldPath, Fields] = {}
    derived: dict[FieldPath, Fields] = {}
    for path, trace in _leaves(value, (), inputs):
        kept = frozenset(
            f
            for f in trace.equal
            if not _overlaps(f, changed) and _keeps_type(f, path, inputs, returns)
        )
        if kept:
            equal[path] = kept
        else:
            derived[path] = _expanded(trace.equal | trace.computed, inputs)
    return FieldMap(equal, derived)


def _leaves(
    value: Value, path: FieldPath, inputs: tuple[ItemType, ...]
) -> list[tuple[FieldPath, Trace]]:
    match Shapes(inputs).opened(value):
        case KnownParts("tuple" | "row", parts):
            return [leaf for n, v in parts.items() for leaf in _leaves(v, (*path, n), inputs)]
        case Maybe() as maybe:
            return [(path, computed(maybe))]
        case NoValue():
            return [(path, Trace())]
        case Trace() as trace:
            return [(path, trace)]
        case other:
            return [(path, computed(other))]


def _overlaps(f: InputField, changed: Fields) -> bool:
    for other in changed:
        short = min(len(f.path), len(other.path))
        if f.input == other.input and f.path[:short] == other.path[:short]:
            return True
    return False


def _keeps_type(
    f: InputField, path: FieldPath, inputs: tuple[ItemType, ...], returns: ItemType | None
) -> bool:
    return returns is None or at(returns, path) == at(inputs[f.input], f.path)


def _expanded(fields: Fields, inputs: tuple[ItemType, ...]) -> Fields:
    found = set()
    for i, path in fields:
        inner = at(inputs[i], path)
        found |= (
            {InputField(i, leaf) for leaf, _ in leaves(inner, path)} if inner is not None else set()
        )
    return frozenset(found)
