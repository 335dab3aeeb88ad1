"""The lineage of fields: which output fields of a function are which input fields, always.

Sound first: an output field is said to equal an input field only if, for every item that comes out,
it is the very value of that field of the item that went in. A function that cannot be read says
nothing; a part of one that cannot be says nothing of what it touches. A call of something unknown
may change the arrays it can reach, nothing else.

Where a field is not one of the input's, it may still be a function of some: `bucket(user)`. Two
expressions that are equal in their normal form have equal values, so an item can be followed by
such a value as by a field. Only what is one expression is told: nothing with variables of its own,
nothing of a function that cannot be read whole or whose result is declared (and may be converted).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from hydro_core.functions.bind import arguments_of
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import children, nodes, with_children
from hydro_core.functions.forms.normal import normal_tree, path_of
from hydro_core.functions.lineage.tracer import Tracer
from hydro_core.functions.lineage.traces import (
    NONE,
    Copied,
    Fields,
    InputField,
    KnownParts,
    Value,
    computed,
    elements,
    opened,
    part,
    sources,
    there,
)
from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Make, Op, Param, Spread
from hydro_core.types.item import FieldPath, ItemType, at, leaves

ResultUse = Literal["item", "optional", "elements"]
"""What a result is: an item, an item unless it is null, or what holds items."""
_MOST = 200
"""Nodes of an expression; a larger one follows nothing."""


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
    wholes = tuple(Copied(InputField(i, ()), item) for i, item in enumerate(inputs))
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
            isinstance(leaf, Copied)
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
    """The expressions of the fields that are made of others, in normal form.

    >>> import ast
    >>> from hydro_core.functions.forms.normal import argument
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
    """The normal form with the values of variables in their place.

    A variable has one name throughout its body, and no other around it has that.
    """
    match tree:
        case Param(name):
            return values.get(name, tree)
        case Bind("let", (name,), value, body):
            return _without_lets(body, {**values, name: _without_lets(value, values)})
        case _:
            return with_children(tree, (_without_lets(part, values) for part in children(tree)))


def _kept(tree: Expr) -> Expr:
    """What is there when the result is not None."""
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
    """Whether it is one expression of fields, and not a field itself or a constant."""
    if path_of(tree) is not None:
        return False
    found = list(islice(nodes(tree), _MOST + 1))
    looks = any(isinstance(node, Param) for node in found)
    return looks and len(found) <= _MOST and all(map(_has_text, found))


def _has_text(node: Expr) -> bool:
    """Whether it may stand by itself: it has no variable, and a text of its own."""
    match node:
        case Param():
            return path_of(node) is not None
        case Op(name):
            return name[:1] not in ("(", "?")
        case Make(parts=parts):
            return not any(isinstance(part, Spread) for part in parts)
        case _:
            return not isinstance(node, Bind)
