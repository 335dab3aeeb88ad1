"""Lineage within a function: input fields that each field of its result equals or uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from hydro_core.functions.bind import arguments_of
from hydro_core.functions.forms import normal_tree, path_of
from hydro_core.functions.tree import (
    FLATTEN,
    MATCHED,
    RAISE,
    SEQUENCE,
    UNPACK,
    Bind,
    Const,
    Expr,
    Fn,
    Fold,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    Spread,
    children,
    constant_of,
    nodes,
    step_in,
    with_children,
)
from hydro_core.types.item import Array, FieldPath, ItemType, Row, Tuple, Unknown, at, leaves

# Origins of values.
#
# `CopiedField` is the unchanged value of an input field, `ComputedFrom` a value that is computed
# from some. `KnownParts` is a tuple, row or list that the function builds, `RepeatedItem` a list of
# any number of like items, `OptionalValue` a value or None, `NoValue` an expression that fails. Two
# branches are `joined`: the result is a copy only of the fields that both copy.


class InputField(NamedTuple):
    """A field of an argument: the number of the argument, and the path in it."""

    input: int
    path: FieldPath


Fields = frozenset[InputField]
NONE: Fields = frozenset()


@dataclass(frozen=True, slots=True)
class CopiedField:
    """The value of a field of an input."""

    field: InputField
    type: ItemType

    def part(self, name: str) -> CopiedField | None:
        """A field of it, by its name or position; None if there is no such field."""
        match self.type:
            case Row():
                found = self.type.column(name)
            case Tuple(fields) if name.isdecimal() and int(name) < len(fields):
                found = fields[int(name)]
            case _:
                return None
        path = (*self.field.path, name)
        return None if found is None else CopiedField(InputField(self.field.input, path), found)


@dataclass(frozen=True, slots=True)
class ComputedFrom:
    """A value that is computed from fields of the inputs."""

    fields: Fields = NONE


@dataclass(frozen=True, slots=True)
class KnownParts:
    """A tuple, row or list with known parts; parts without names are "0", "1" and so on."""

    kind: Literal["tuple", "row", "list"]
    parts: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class RepeatedItem:
    """A list of any number of items that are all like `item`."""

    item: Value


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """None, or `value`; which one depends on the fields `why`."""

    value: Value
    why: Fields = NONE


@dataclass(frozen=True, slots=True)
class NoValue:
    """There is no value: something raised."""


Value = CopiedField | ComputedFrom | KnownParts | RepeatedItem | OptionalValue | NoValue
NEVER = NoValue()
ONLY_NONE = OptionalValue(NEVER)
"""None itself."""


def sources(*values: Value) -> Fields:
    """All input fields that the values depend on."""
    found: Fields = NONE
    for value in values:
        match value:
            case CopiedField(field):
                found |= {field}
            case ComputedFrom(fields):
                found |= fields
            case KnownParts(_, parts):
                found |= sources(*parts.values())
            case RepeatedItem(inner):
                found |= sources(inner)
            case OptionalValue(inner, why):
                found |= sources(inner) | why
            case NoValue():
                pass
    return found


def computed(*values: Value) -> ComputedFrom:
    return ComputedFrom(sources(*values))


def sequence(kind: Literal["tuple", "list"], values: Iterable[Value]) -> KnownParts:
    return KnownParts(kind, {str(i): value for i, value in enumerate(values)})


def there(value: Value) -> Value:
    """The value under the condition that it is not None: None has no parts, and reading one
    fails.
    """
    return value.value if isinstance(value, OptionalValue) else value


def kind_of(value: Value) -> str | None:
    """The kind of a value's parts: tuple, row or list; None if they are unknown."""
    match value:
        case KnownParts(kind):
            return kind
        case CopiedField(type=Tuple() | Row() as of):
            return "tuple" if isinstance(of, Tuple) else "row"
        case _:
            return None


def opened(value: Value) -> Value:
    """A copied tuple or row as its parts; other values unchanged."""
    match value:
        case CopiedField(type=Tuple(fields)):
            return sequence("tuple", [value.part(str(i)) or NEVER for i in range(len(fields))])
        case CopiedField(type=Row() as row):
            return KnownParts("row", {name: value.part(name) or NEVER for name in row.names})
        case _:
            return value


def part(value: Value, step: str | int) -> Value:
    """A part of a value, by its name or its position."""
    value = there(value)
    if isinstance(value, CopiedField) and isinstance(step, str):
        return value.part(step) or computed(value)
    match opened(value):
        case KnownParts(kind, parts):
            if isinstance(step, int):
                step = "" if kind == "row" else str(step + len(parts) if step < 0 else step)
            return parts.get(step, computed(value))
        case RepeatedItem(item) if isinstance(step, int):
            return item
        case NoValue():
            return NEVER
        case _:
            return computed(value)


def elements(value: Value) -> Value:
    """The common origin of all items of a value, if it is a tuple or list."""
    match opened(value):
        case KnownParts("tuple" | "list", parts):
            return joined(parts.values())
        case RepeatedItem(item):
            return item
        case NoValue():
            return NEVER
        case _:
            return computed(value)


def items_of_list(value: Value) -> Value | None:
    """The common origin of all items of a list that the function builds; None for other values."""
    is_list = isinstance(value, RepeatedItem) or kind_of(value) == "list"
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
    if isinstance(a, OptionalValue) or isinstance(b, OptionalValue):
        whys = (v.why for v in (a, b) if isinstance(v, OptionalValue))
        return OptionalValue(_join(there(a), there(b), why), why.union(*whys))
    if isinstance(a, CopiedField) and a == b:
        return a
    match opened(a), opened(b):
        case KnownParts(kind, parts), KnownParts(other, more) if (
            kind == other and parts.keys() == more.keys()
        ):
            return KnownParts(kind, {n: _join(v, more[n], why) for n, v in parts.items()})
    item, another = items_of_list(a), items_of_list(b)
    if item is not None and another is not None:
        return RepeatedItem(_join(item, another, why))
    return ComputedFrom(sources(a, b) | why)


def unpacked(value: Value, count: int, star: int | None) -> list[Value]:
    """The values of `count` targets of an unpacked value; the target at `star` gets the rest.

    For another length there are no values: unpacking fails, so any claim about them holds.
    """
    inner = there(value)
    match opened(inner):
        case KnownParts("tuple" | "list", parts):
            fields = list(parts.values())
        case RepeatedItem(item):
            return [RepeatedItem(item) if i == star else item for i in range(count)]
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


# Traces values through a function's tree: the origin of each expression's value.


TracedNames = Mapping[str, Value]


@dataclass(slots=True)
class Tracer(Fold[TracedNames, Value]):
    """Traces values through a tree; records the arrays that an unknown call may change."""

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
                    # Only a null does not match; then the result is null, and so are all its parts.
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
                unknown.append(
                    spread.item if isinstance(spread, RepeatedItem) else computed(spread)
                )
            elif is_row:
                known |= spread.parts
            else:
                known |= {str(len(known) + i): v for i, v in enumerate(spread.parts.values())}
        whole = computed(*known.values(), *unknown)
        if node.kind == "list" and unknown:
            return RepeatedItem(joined((*known.values(), *unknown)))
        return whole if unknown or node.kind == "set" else KnownParts(node.kind, known)

    def _bind(self, node: Bind, around: TracedNames) -> Value:
        if node.kind == "function":
            # The arguments of the function come from the other operands, which count anyway.
            return self.of(node.body, {**around, **dict.fromkeys(node.names, ComputedFrom())})
        value = self.of(node.value, around)
        if node.kind == "let":
            return self.of(node.body, {**around, node.names[0]: value})
        item, count = elements(value), len(node.names)
        values = [item] if count == 1 else unpacked(item, count, None)
        inner = {**around, **dict(zip(node.names, values, strict=True))}
        for condition in node.conditions:
            self.of(condition, inner)  # A condition may call a function that changes arrays.
        found = RepeatedItem(self.of(node.body, inner))
        return computed(found, value) if node.kind == "set" else found


def _known(node: Op, values: list[Value]) -> Value | None:
    """The origin of the result of an operation whose result holds parts of its operands."""
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
        case RepeatedItem(item):
            return item
    return None


def _slice(node: Op, base: Value) -> Value | None:
    bounds = [None if bound is None else constant_of(bound) for bound in node.bounds]
    match opened(base):
        case KnownParts("tuple" | "list" as kind, found) if all(
            isinstance(bound, int | None) for bound in bounds
        ):
            return sequence(kind, list(found.values())[slice(*bounds)])
        case KnownParts("list") | RepeatedItem() as many:
            return RepeatedItem(elements(many))
    return None


def _binary(op: str, left: Value, right: Value) -> Value | None:
    one, other = items_of_list(left), items_of_list(right)
    if op == "+" and one is not None and other is not None:
        return RepeatedItem(joined((one, other)))
    if op == "*" and one is not None:
        return RepeatedItem(one)
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
            return (
                RepeatedItem(joined(parts.values(), sources(*others)))
                if len(node.args) == 1
                else None
            )
        case "list" | "sorted" | "reversed", RepeatedItem() as many:
            return many if len(node.args) == 1 else None
        case (name, RepeatedItem(inner)) if name == FLATTEN:
            item = items_of_list(inner)
            return None if item is None else RepeatedItem(item)
    return None


def _fits(value: Value, count: int, star: int | None) -> bool:
    """True if a value is a tuple with as many parts as a pattern needs."""
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
        case CopiedField(found), CopiedField(root) if (
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


# The lineage of fields: output fields of a function that always equal input fields.
#
# Soundness: an output field equals an input field only if, for every item of the result, it is the
# unchanged value of that field of the input item. A function that cannot be read has no lineage; an
# unreadable part of one has none for all that it touches. A call of an unknown function may change
# the arrays that it can reach, nothing else.
#
# A field that is no copy may still be a function of input fields: `bucket(user)`. Two expressions
# with equal normal forms have equal values, so an item can be followed by such a value as by a
# field. Only a single expression qualifies: it has no variables of its own, no unreadable part, and
# no declared result (which may be converted).


ResultUse = Literal["item", "optional", "elements"]
"""The use of a result: an item, an item unless it is null, or a collection of items."""
_MOST = 200
"""Most nodes of an expression; a larger one is not followed."""


@dataclass(frozen=True, slots=True)
class FieldMap:
    """For each field of the output: the input fields it equals, and those it is computed from.

    Keys are paths into the output item; a field that equals some input is not computed. A path that
    leads deeper than a key is part of that key's computed field.
    """

    equal: Mapping[FieldPath, Fields]
    computed: Mapping[FieldPath, Fields]
    made: Mapping[FieldPath, Expr] = field(default_factory=dict)
    """For computed fields: their expressions over the inputs' fields, where they are known."""
    padded: Mapping[FieldPath, Fields] = field(default_factory=dict)
    """For computed fields: the input fields that they equal where they are not null."""

    def nearest(self, path: FieldPath) -> tuple[FieldPath, FieldPath] | None:
        """The longest prefix of a path that is a key, and the rest of the path."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.equal or path[:length] in self.computed:
                return path[:length], path[length:]
        return None


def field_map(fn: Fn, inputs: tuple[ItemType, ...], *, use: ResultUse = "item") -> FieldMap:
    """The lineage of the function's result, for arguments of these types.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (v, k + 1)", mode="eval").body, {})
    >>> found = field_map(f, (parse_ddl("(long, string)"),))
    >>> {".".join(p): [".".join(f.path) for f in fields] for p, fields in found.equal.items()}
    {'0': ['1']}
    """
    wholes = tuple(CopiedField(InputField(i, ()), item) for i, item in enumerate(inputs))
    arguments = arguments_of(fn, inputs) or ()
    is_told = all(a.place is None or a.step is not None for a in arguments)
    if fn.tree is None or len(arguments) < len(fn.params) or not is_told:
        return _result(computed(*wholes), NONE, inputs, fn.returns)
    given = ((wholes[a.input], a.step) for a in arguments)
    values = (whole if step is None else part(whole, step) for whole, step in given)
    tracer = Tracer(inputs)
    value = tracer.of(fn.tree, dict(zip(fn.params, values, strict=True)))
    value = value if use == "item" else there(value)
    value = elements(value) if use == "elements" else value
    made = made_fields(fn, inputs, use=use)
    return _result(value, frozenset(tracer.changed), inputs, fn.returns, made)


def _result(
    value: Value,
    changed: Fields,
    inputs: tuple[ItemType, ...],
    returns: ItemType | None,
    made: Mapping[FieldPath, Expr] | None = None,
) -> FieldMap:
    equal: dict[FieldPath, Fields] = {}
    derived: dict[FieldPath, Fields] = {}
    for path, leaf in _leaves(value, ()):
        is_kept = (
            isinstance(leaf, CopiedField)
            and not any(_overlap(leaf.field, other) for other in changed)
            and (returns is None or at(returns, path) == leaf.type)
        )
        if is_kept:
            equal[path] = sources(leaf)
        else:
            derived[path] = _expanded(sources(leaf), inputs)
    return FieldMap(equal, derived, made or {})


def _leaves(value: Value, path: FieldPath) -> Iterator[tuple[FieldPath, Value]]:
    match opened(value):
        case KnownParts("tuple" | "row", parts):
            for name, inner in parts.items():
                yield from _leaves(inner, (*path, name))
        case leaf:
            yield path, leaf


def _overlap(one: InputField, other: InputField) -> bool:
    short = min(len(one.path), len(other.path))
    return one.input == other.input and one.path[:short] == other.path[:short]


def _expanded(fields: Fields, inputs: tuple[ItemType, ...]) -> Fields:
    """The leaves of fields."""
    found = ((i, path, at(inputs[i], path)) for i, path in fields)
    return frozenset(
        InputField(i, leaf)
        for i, path, inner in found
        if inner is not None
        for leaf, _ in leaves(inner, path)
    )


def made_fields(
    fn: Fn, inputs: tuple[ItemType, ...], *, use: ResultUse = "item"
) -> Mapping[FieldPath, Expr]:
    """The normal forms of the fields that are computed from others.

    >>> import ast
    >>> from hydro_core.functions.forms import argument
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (k % 2, v)", mode="eval").body, {})
    >>> made = made_fields(f, (parse_ddl("(long, string)"),))
    >>> from hydro_core.functions.tree import Part
    >>> made == {("0",): Op("%", (Part(argument(0), 0), Const(2)))}
    True
    """
    if use == "elements" or fn.returns is not None:
        return {}
    tree = normal_tree(fn, inputs)
    if tree is None:
        return {}
    whole = _without_lets(tree, {})
    if use == "optional":
        whole = _kept(whole)
    return {path: part for path, part in _parts(whole, ()) if _is_expression(part)}


def _without_lets(tree: Expr, values: Mapping[str, Expr]) -> Expr:
    """The normal form with variables replaced by their values.

    A variable has one name throughout its body, and no enclosing variable has that name.
    """
    match tree:
        case Param(name):
            return values.get(name, tree)
        case Bind("let", (name,), value, body):
            return _without_lets(body, {**values, name: _without_lets(value, values)})
        case _:
            return with_children(tree, (_without_lets(part, values) for part in children(tree)))


def _kept(tree: Expr) -> Expr:
    """The branch that is evaluated when the result is not None."""
    match tree:
        case IfElse(_, then, Const(None)) | IfElse(_, Const(None), then):
            return _kept(then)
        case _:
            return tree


def _parts(tree: Expr, path: FieldPath) -> Iterator[tuple[FieldPath, Expr]]:
    match tree:
        case Make("tuple" | "row") if tree.fields is not None:
            for name, part in tree.fields.items():
                yield from _parts(part, (*path, str(name)))
        case IfElse(test, then, otherwise):
            one, other = dict(_parts(then, ())), dict(_parts(otherwise, ()))
            for inner, part in one.items() if one.keys() == other.keys() else ():
                same = part == other[inner]
                yield (*path, *inner), part if same else IfElse(test, part, other[inner])
        case _:
            yield path, tree


def _is_expression(tree: Expr) -> bool:
    """True for one expression of fields that is neither a field itself nor a constant."""
    if path_of(tree) is not None:
        return False
    found = list(islice(nodes(tree), _MOST + 1))
    looks = any(isinstance(node, Param) for node in found)
    return looks and len(found) <= _MOST and all(map(_has_text, found))


def _has_text(node: Expr) -> bool:
    """True if the expression can be written alone: it has no variable, and a text of its own."""
    match node:
        case Param():
            return path_of(node) is not None
        case Op(name):
            return name[:1] not in ("(", "?")
        case Make(parts=parts):
            return not any(isinstance(part, Spread) for part in parts)
        case _:
            return not isinstance(node, Bind)
