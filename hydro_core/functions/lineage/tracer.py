"""Follows values through a function's tree: where does the value of each expression come from?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hydro_core.functions.fields import step_in
from hydro_core.functions.fold import Fold
from hydro_core.functions.lineage.traces import (
    NEVER,
    ONLY_NONE,
    ComputedFrom,
    Copied,
    InputField,
    KnownParts,
    Many,
    NoValue,
    Value,
    computed,
    elements,
    items_of_list,
    joined,
    kind_of,
    opened,
    part,
    sequence,
    sources,
    there,
    unpacked,
)
from hydro_core.functions.tree import (
    FLATTEN,
    MATCHED,
    RAISE,
    SEQUENCE,
    UNPACK,
    Bind,
    Const,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    Spread,
    constant_of,
)
from hydro_core.types.item import Array, ItemType, Unknown, at, leaves

TracedNames = Mapping[str, Value]


@dataclass(slots=True)
class Tracer(Fold[TracedNames, Value]):
    """Follows values through a tree; notes the arrays that an unknown call may change."""

    inputs: tuple[ItemType, ...]
    changed: set[InputField] = field(default_factory=set)

    def _const(self, node: Const, around: TracedNames) -> Value:
        return _constant(node.value)

    def _param(self, node: Param, around: TracedNames) -> Value:
        return around[node.name]

    def _part(self, node: Part, around: TracedNames) -> Value:
        base = self.of(node.base, around)
        step = step_in(kind_of(there(base)), node) if node.by_name else node.step
        if step is not None:
            return part(base, step)
        return NEVER if isinstance(there(base), NoValue) else computed(base)

    def _if_else(self, node: IfElse, around: TracedNames) -> Value:
        test = self.of(node.test, around)
        then, otherwise = self.of(node.then, around), self.of(node.otherwise, around)
        match node.test:
            case Op(name, (subject, count, star)) if name == SEQUENCE and otherwise == ONLY_NONE:
                value = self.of(subject, around)
                if _fits(value, constant_of(count), constant_of(star)):
                    # Only a null does not match; then the result is null, and so is all within it.
                    return _within(then, value)
        return joined((then, otherwise), sources(test))

    def _op(self, node: Op, around: TracedNames) -> Value:
        values = [self.of(operand, around) for operand in node.operands]
        if node.family == "unread":
            return self._unread(node, values)
        found = _known(node, values) if node.args else None
        return computed(*values) if found is None else found

    def _unread(self, node: Op, values: list[Value]) -> Value:
        if node.name == RAISE:
            return NEVER
        found = computed(*values)
        if not node.name.startswith("?("):
            wholes = frozenset(InputField(i, ()) for i in range(len(self.inputs)))
            for i, path in found.fields if values else wholes:
                inner = at(self.inputs[i], path)
                for leaf, kind in leaves(inner, path) if inner is not None else ():
                    if isinstance(kind, Array | Unknown):
                        self.changed.add(InputField(i, leaf))
        return found

    def _make(self, node: Make, around: TracedNames) -> Value:
        is_row, known = node.kind == "row", dict[str, Value]()
        unknown: list[Value] = []
        for name, made in zip(node.names or (None,) * len(node.parts), node.parts, strict=True):
            if not isinstance(made, Spread):
                known[str(len(known)) if name is None else name] = self.of(made, around)
                continue
            spread = opened(self.of(made.value, around))
            if not isinstance(spread, KnownParts) or (spread.kind == "row") != is_row:
                unknown.append(spread.item if isinstance(spread, Many) else computed(spread))
            elif is_row:
                known |= spread.parts
            else:
                known |= {str(len(known) + i): v for i, v in enumerate(spread.parts.values())}
        whole = computed(*known.values(), *unknown)
        if node.kind == "list" and unknown:
            return Many(joined((*known.values(), *unknown)))
        return whole if unknown or node.kind == "set" else KnownParts(node.kind, known)

    def _bind(self, node: Bind, around: TracedNames) -> Value:
        if node.kind == "function":
            # What it is called with comes from the other arguments, which count anyway.
            return self.of(node.body, {**around, **dict.fromkeys(node.names, ComputedFrom())})
        value = self.of(node.value, around)
        if node.kind == "let":
            return self.of(node.body, {**around, node.names[0]: value})
        item, count = elements(value), len(node.names)
        values = [item] if count == 1 else unpacked(item, count, None)
        inner = {**around, **dict(zip(node.names, values, strict=True))}
        for condition in node.conditions:
            self.of(condition, inner)  # what it calls may change arrays
        found = Many(self.of(node.body, inner))
        return computed(found, value) if node.kind == "set" else found


def _known(node: Op, values: list[Value]) -> Value | None:
    """Of an operation whose result holds parts of its operands, what these are."""
    first, *others = values
    match node.family:
        case "index":
            return _index(first, others[0], constant_of(node.args[1]))
        case "slice":
            return _slice(node, first)
        case "binary":
            return _binary(node.name, first, others[0])
        case "and" | "or":
            return joined(values, sources(*values))
        case "method" if node.name == ".get" and len(node.args) > 1:
            match opened(first), constant_of(node.args[1]):
                case KnownParts("row", parts), str(name):
                    return parts.get(name)
            return None
        case "call":
            return _call(node, first, others)
        case _:
            return None


def _index(base: Value, index: Value, key: Any) -> Value | None:
    if isinstance(key, bool):
        return part(base, int(key))
    match opened(there(base)):
        case KnownParts(_, parts):
            return joined(parts.values(), sources(index))
        case Many(item):
            return item
    return None


def _slice(node: Op, base: Value) -> Value | None:
    bounds = [None if bound is None else constant_of(bound) for bound in node.bounds]
    match opened(base):
        case KnownParts("tuple" | "list" as kind, found) if all(
            isinstance(bound, int | None) for bound in bounds
        ):
            return sequence(kind, list(found.values())[slice(*bounds)])
        case KnownParts("list") | Many() as many:
            return Many(elements(many))
    return None


def _binary(op: str, left: Value, right: Value) -> Value | None:
    one, other = items_of_list(left), items_of_list(right)
    if op == "+" and one is not None and other is not None:
        return Many(joined((one, other)))
    if op == "*" and one is not None:
        return Many(one)
    match op, opened(left), opened(right):
        case "+", KnownParts("tuple", a), KnownParts("tuple", b):
            return sequence("tuple", (*a.values(), *b.values()))
    return None


def _call(node: Op, value: Value, others: list[Value]) -> Value | None:
    match node.name, opened(value):
        case (name, _) if name in (UNPACK, MATCHED):
            count, star = map(constant_of, node.args[1:])
            return sequence("tuple", unpacked(value, count, star))
        case "tuple", KnownParts("tuple" | "list", parts) if not others:
            return KnownParts("tuple", parts)
        case "dict", KnownParts("row") as row if not others:
            return row
        case "list" | "sorted" | "reversed", KnownParts("tuple" | "list", parts):
            return Many(joined(parts.values(), sources(*others))) if len(node.args) == 1 else None
        case "list" | "sorted" | "reversed", Many() as many:
            return many if len(node.args) == 1 else None
        case (name, Many(inner)) if name == FLATTEN:
            item = items_of_list(inner)
            return None if item is None else Many(item)
    return None


def _fits(value: Value, count: int, star: int | None) -> bool:
    """Whether a value is a tuple that has as many parts as a pattern."""
    match opened(value):
        case KnownParts("tuple", parts):
            return len(parts) == count if star is None else len(parts) >= count - 1
        case _:
            return False


def _within(value: Value, whole: Value) -> Value:
    """The value, as far as it copies fields within `whole`."""
    match value, whole:
        case KnownParts(kind, parts), _:
            return KnownParts(kind, {name: _within(inner, whole) for name, inner in parts.items()})
        case Copied(found), Copied(root) if (
            found.input == root.input and found.path[: len(root.path)] == root.path
        ):
            return value
        case NoValue(), _:
            return value
        case _:
            return computed(value)


def _constant(value: Any) -> Value:
    match value:
        case None:
            return ONLY_NONE
        case tuple() | list():
            kind: Literal["tuple", "list"] = "tuple" if isinstance(value, tuple) else "list"
            return sequence(kind, map(_constant, value))
        case dict() if all(isinstance(name, str) for name in value):
            return KnownParts("row", {name: _constant(v) for name, v in value.items()})
        case _:
            return ComputedFrom()
