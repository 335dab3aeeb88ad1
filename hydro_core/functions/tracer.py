"""Follows values through a function's tree: where does the value of each expression come from?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hydro_core.functions.fields import step_in
from hydro_core.functions.fold import Fold
from hydro_core.functions.scope import FLATTEN, MATCHED, RAISE, SEQUENCE, UNPACK
from hydro_core.functions.traces import (
    NEVER,
    NONE,
    ONLY_NONE,
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
    sequence,
    sources,
)
from hydro_core.functions.tree import (
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
from hydro_core.types.item import Array, Unknown, at, leaves

TracedNames = Mapping[str, Value]


@dataclass(slots=True)
class Tracer(Fold[TracedNames, Value]):
    """Follows values through a tree; notes the arrays that an unknown call may change."""

    shapes: Shapes
    changed: set[InputField] = field(default_factory=set)

    def _const(self, node: Const, around: TracedNames) -> Value:
        return ONLY_NONE if node.value is None else _constant(node.value)

    def _param(self, node: Param, around: TracedNames) -> Value:
        return around[node.name]

    def _part(self, node: Part, around: TracedNames) -> Value:
        base = self.of(node.base, around)
        inner = base.value if isinstance(base, Maybe) else base
        if not node.by_name:
            return self.shapes.part(base, node.step)
        step = step_in(self.shapes.kind(inner), node)
        if step is not None:
            return self.shapes.part(base, step)
        return NEVER if isinstance(inner, NoValue) else computed(base)

    def _op(self, node: Op, around: TracedNames) -> Value:
        values = [self.of(a, around) for a in node.operands]
        found: Value | None = None
        match node.family:
            case "unread":
                return self._unread(node, values)
            case "index":
                found = self._index(node, *values)
            case "slice":
                found = self._slice(node, values[0])
            case "binary":
                found = self._binary(node.name, *values)
            case "and" | "or":
                found = self.shapes.joined(values, NONE.union(*map(sources, values)))
            case "method" if node.name == ".get" and len(node.args) > 1:
                found = self._got(values[0], constant_of(node.args[1]))
            case "call" if node.args:
                found = self._call(node, *values)
        return computed(*values) if found is None else found

    def _index(self, expr: Op, base: Value, index: Value) -> Value | None:
        key = constant_of(expr.args[1])
        if isinstance(key, bool):
            return self.shapes.part(base, int(key))
        inner = base.value if isinstance(base, Maybe) else base
        match self.shapes.opened(inner):
            case KnownParts(_, parts):
                return self.shapes.joined(parts.values(), sources(index))
            case Many(item):
                return item
        return None

    def _slice(self, expr: Op, base: Value) -> Value | None:
        bounds = [None if p is None else constant_of(p) for p in expr.bounds]
        match self.shapes.opened(base):
            case KnownParts("tuple" | "list" as kind, found) if all(_is_bound(b) for b in bounds):
                return sequence(kind, list(found.values())[slice(*bounds)])
            case KnownParts("list") | Many() as many:
                return Many(self.shapes.items(many) or NEVER)
        return None

    def _binary(self, op: str, left: Value, right: Value) -> Value | None:
        one, other = self.shapes.items(left), self.shapes.items(right)
        if op == "+" and one is not None and other is not None:
            return Many(self.shapes.joined((one, other)))
        if op == "*" and one is not None:
            return Many(one)
        match op, self.shapes.opened(left), self.shapes.opened(right):
            case "+", KnownParts("tuple", a), KnownParts("tuple", b):
                return sequence("tuple", (*a.values(), *b.values()))
        return None

    def _if_else(self, node: IfElse, around: TracedNames) -> Value:
        test = self.of(node.test, around)
        then, otherwise = self.of(node.then, around), self.of(node.otherwise, around)
        if otherwise == ONLY_NONE and isinstance(node.test, Op) and node.test.name == SEQUENCE:
            subject, count, star = node.test.args
            value = self.of(subject, around)
            if self._fits(value, constant_of(count), constant_of(star)):
                # Only a null does not match; then the result is null, and so is all within it.
                return _within(then, value)
        return self.shapes.joined((then, otherwise), sources(test))

    def _fits(self, value: Value, count: int, star: int | None) -> bool:
        opened = self.shapes.opened(value)
        return (
            isinstance(opened, KnownParts)
            and opened.kind == "tuple"
            and (len(opened.parts) == count if star is None else len(opened.parts) >= count - 1)
        )

    def _call(self, expr: Op, value: Value, *others: Value) -> Value | None:
        opened = self.shapes.opened(value)
        match expr.name, opened:
            case (name, _) if name in (UNPACK, MATCHED):
                return self._unpacked(value, constant_of(expr.args[1]), constant_of(expr.args[2]))
            case "tuple", KnownParts("tuple" | "list", parts) if not others:
                return KnownParts("tuple", parts)
            case "dict", KnownParts("row") if not others:
                return opened
            case (("list" | "sorted" | "reversed"), _) if len(expr.args) == 1:
                return self._listed(value, *others)
            case (name, Many(inner)) if name == FLATTEN:
                item = self.shapes.items(inner)
                return None if item is None else Many(item)
        return None

    def _listed(self, value: Value, *others: Value) -> Value:
        match self.shapes.opened(value):
            case KnownParts("tuple" | "list", parts):
                return Many(self.shapes.joined(parts.values(), NONE.union(*map(sources, others))))
            case Many() as many:
                return many
            case _:
                return computed(value, *others)

    def _unpacked(self, value: Value, count: int, star: int | None) -> Value:
        inner = value.value if isinstance(value, Maybe) else value
        match self.shapes.opened(inner):
            case KnownParts("tuple" | "list", parts):
                fields = list(parts.values())
            case Many(item):
                fields = [Many(item) if i == star else item for i in range(count)]
                return sequence("tuple", fields)
            case NoValue():
                return sequence("tuple", [NEVER] * count)
            case _:
                return sequence("tuple", [computed(value)] * count)
        spare = len(fields) - count
        if star is None:
            # Of another length there are no values: unpacking fails.
            return sequence("tuple", fields if spare == 0 else [computed(value)] * count)
        if spare < -1:
            return sequence("tuple", [computed(value)] * count)
        end = star + spare + 1
        rest = sequence("list", fields[star:end])
        return sequence("tuple", [*fields[:star], rest, *fields[end:]])

    def _got(self, base: Value, name: Any) -> Value | None:
        """`base.get(name)`."""
        match self.shapes.opened(base):
            case KnownParts("row", parts) if isinstance(name, str):
                return parts.get(name)
        return None

    def _unread(self, expr: Op, values: list[Value]) -> Value:
        if expr.name == RAISE:
            return NEVER
        found = computed(*values)
        if not expr.name.startswith("?("):
            self._may_change(found.computed if values else _whole(self.shapes))
        return found

    def _may_change(self, fields: Fields) -> None:
        for i, path in fields:
            inner = at(self.shapes.inputs[i], path)
            for leaf, kind in leaves(inner, path) if inner is not None else ():
                if isinstance(kind, Array | Unknown):
                    self.changed.add(InputField(i, leaf))

    def _make(self, node: Make, around: TracedNames) -> Value:
        match node.kind:
            case "row":
                return self._row(node, around)
            case "set":
                return computed(self._display("list", node.parts, around))
            case kind:
                return self._display(kind, node.parts, around)

    def _display(
        self, kind: Literal["tuple", "list"], parts: tuple[Any, ...], names: TracedNames
    ) -> Value:
        values: list[Value] = []
        exact = True
        for part in parts:
            if not isinstance(part, Spread):
                values.append(self.of(part, names))
                continue
            spread = self.of(part.value, names)
            match self.shapes.opened(spread):
                case KnownParts("tuple" | "list", inner):
                    values.extend(inner.values())
                case Many(item):
                    values.append(item)
                    exact = False
                case _:
                    values.append(computed(spread))
                    exact = False
        if exact:
            return sequence(kind, values)
        return Many(self.shapes.joined(values)) if kind == "list" else computed(*values)

    def _row(self, expr: Make, names: TracedNames) -> Value:
        row: dict[str, Value] = {}
        unknown: list[Value] = []
        for name, part in zip(expr.names, expr.parts, strict=True):
            if not isinstance(part, Spread):
                row[str(name)] = self.of(part, names)
                continue
            spread = self.of(part.value, names)
            match self.shapes.opened(spread):
                case KnownParts("row", inner):
                    row.update(inner)
                case _:
                    unknown.append(spread)
        return computed(*row.values(), *unknown) if unknown else KnownParts("row", row)

    def _bind(self, node: Bind, around: TracedNames) -> Value:
        inner = {**around, **self._variables(node, around)}
        for condition in node.conditions:
            self.of(condition, inner)
        body = self.of(node.body, inner)
        if not node.is_loop:
            return body
        found = Many(body)
        return computed(found, self.of(node.value, around)) if node.kind == "set" else found

    def _variables(self, node: Bind, around: TracedNames) -> TracedNames:
        if node.kind == "function":
            # What it is called with comes from the other arguments, which count anyway.
            return dict.fromkeys(node.names, Trace())
        value = self.of(node.value, around)
        if node.kind == "let":
            return {node.names[0]: value}
        match self.shapes.opened(value):
            case KnownParts("tuple" | "list", parts):
                item = self.shapes.joined(parts.values())
            case Many(inner):
                item = inner
            case _:
                item = computed(value)
        if len(node.names) == 1:
            return {node.names[0]: item}
        unpacked = self._unpacked(item, len(node.names), None)
        return {n: self.shapes.part(unpacked, i) for i, n in enumerate(node.names)}


def _within(value: Value, whole: Value) -> Value:
    """The value, as far as it equals fields within `whole`."""
    match value, whole:
        case KnownParts(kind, parts), _:
            return KnownParts(kind, {name: _within(part, whole) for name, part in parts.items()})
        case Trace(equal, others), Trace(roots):
            kept = frozenset(
                f
                for f in equal
                for r in roots
                if f.input == r.input and f.path[: len(r.path)] == r.path
            )
            return Trace(kept, NONE if kept else equal | others)
        case NoValue(), _:
            return value
        case _:
            return computed(value)


def _constant(value: Any) -> Value:
    match value:
        case None:
            return ONLY_NONE
        case tuple():
            return sequence("tuple", map(_constant, value))
        case list():
            return sequence("list", map(_constant, value))
        case dict() if all(isinstance(name, str) for name in value):
            return KnownParts("row", {name: _constant(v) for name, v in value.items()})
        case _:
            return Trace()


def _is_bound(bound: Any) -> bool:
    return bound is None or (isinstance(bound, int) and bound is not ...)


def _whole(shapes: Shapes) -> Fields:
    return frozenset(InputField(i, ()) for i in range(len(shapes.inputs)))
