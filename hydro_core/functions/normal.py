"""The normal form of a function: what is equal for two functions only if they do the same.

It is the function's tree over what it is applied to: parameters by position, variables by the place
where they are bound, constants by type and value, fields by path. How a function is written, what
its parameters are called and where it stands do not count. It is made of tuples and strings, so
that its text is stable: stored state is known by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hydro_core.functions.bind import BoundParameter, arguments_of
from hydro_core.functions.fields import field_in
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import is_complete
from hydro_core.functions.tree import (
    UNARY,
    Comprehension,
    Const,
    Expr,
    IfElse,
    Inner,
    Let,
    Make,
    Op,
    Param,
    Part,
    SameTree,
    Spread,
)
from hydro_core.types.item import UNKNOWN, Array, ItemType

NormalForm = tuple[Any, ...]
"""Nested tuples of strings and numbers."""


@dataclass(frozen=True, slots=True)
class _Named:
    """What a name stands for: its form, and its type as far as it is known."""

    form: NormalForm
    type: ItemType = UNKNOWN


_Names = Mapping[str, _Named]


def normal_form(fn: Fn, arguments: Sequence[ItemType]) -> NormalForm:
    """The normal form of a function that is applied to arguments of these types.

    A function of more parameters gets the fields of the last argument. One that cannot be read
    whole is known by its source.
    """
    declared = (str(fn.returns) if fn.returns else "", *map(int, _declared(fn)))
    known = arguments_of(fn, arguments)
    if known is None or not is_complete(fn.tree) or fn.tree is None:
        return ("source", fn.source, fn.closed, len(fn.params), *declared)
    return ("function", _whole(SameTree(fn.tree), fn.params, known), *declared)


@lru_cache(maxsize=4096)
def _whole(
    of: SameTree, params: tuple[str, ...], arguments: tuple[BoundParameter, ...]
) -> NormalForm:
    names = {p: _argument(a, len(params)) for p, a in zip(params, arguments, strict=True)}
    return _form(of.tree, names, 0)


def _declared(fn: Fn) -> tuple[bool, ...]:
    algebra = fn.algebra
    return (algebra.commutative, algebra.associative, algebra.idempotent, algebra.neutral)


def _argument(argument: BoundParameter, parameters: int) -> _Named:
    whole = ("argument", argument.input)
    of = argument.type if isinstance(argument.type, ItemType) else UNKNOWN
    if argument.step is not None:
        return _Named(("field", whole, argument.step), of)
    if argument.place is not None:
        # the item's type is not known: its fields are known by their number
        return _Named(("spread", whole, parameters - argument.input, argument.place))
    return _Named(whole, of)


def _form(node: Expr, names: _Names, depth: int) -> NormalForm:
    return _read(node, names, depth).form


def _read(node: Expr, names: _Names, depth: int) -> _Named:
    """The form of an expression; `depth` is the number of variables that are bound around it."""
    match node:
        case Const(value):
            return _Named(_constant(value))
        case Param(name):
            return names.get(name) or _Named(("free", name))
        case Part(base):
            return _part_of(node, _read(base, names, depth))
        case Op("[]", (base, index)):
            return _Named(("index", _form(base, names, depth), _form(index, names, depth)))
        case Let(name, value, body):
            bound = _read(value, names, depth)
            inner = _read(body, {**names, name: _Named(("variable", depth), bound.type)}, depth + 1)
            return _Named(("let", bound.form, inner.form), inner.type)
        case _:
            return _Named(_other(node, names, depth))


def _part_of(node: Part, base: _Named) -> _Named:
    """A field, where it is one for sure; an element of an array, or what is not known."""
    field = field_in(base.type, node)
    if field is not None:
        return _Named(("field", base.form, field.step), field.type)
    if node.by_name:
        return _Named(("attribute", base.form, node.step))
    element = base.type.element if isinstance(base.type, Array) else UNKNOWN
    known = element if isinstance(node.step, int) else UNKNOWN
    return _Named(("index", base.form, _constant(node.step)), known)


def _other(node: Expr, names: _Names, depth: int) -> NormalForm:
    def form(part: Expr) -> NormalForm:
        return _form(part, names, depth)

    match node:
        case Op("and" | "or" as op):
            return (op, *map(form, _flat(node)))
        case Op():
            return _operation(node, names, depth)
        case IfElse(test, then, otherwise):
            return ("if", form(test), form(then), form(otherwise))
        case Make(kind, parts):
            made = zip(parts, node.names or (None,) * len(parts), strict=True)
            return (kind, *(_made(part, kind, name, form) for part, name in made))
        case Inner(params, body):
            inner = {p: _Named(("variable", depth + i)) for i, p in enumerate(params)}
            return ("lambda", len(params), _form(body, {**names, **inner}, depth + len(params)))
        case Comprehension():
            return _comprehension(node, names, depth)
        case _:
            raise TypeError(f"{type(node).__name__} has no normal form")


def _operation(node: Op, names: _Names, depth: int) -> NormalForm:
    form = tuple(_form(arg, names, depth) for arg in node.args)
    keywords = tuple((name, _form(value, names, depth)) for name, value in node.keywords)
    match node.family:
        case "unary":
            return ("unary", UNARY[node.name], *form)
        case "binary":
            return ("binary", node.name, *form)
        case "comparison":
            return ("compare", form[0], *zip(node.name.split(","), form[1:], strict=True))
        case "slice":
            return ("slice", form[0], *(b and _form(b, names, depth) for b in node.bounds))
        case "text":
            return ("text", *(_text(p, f) for p, f in zip(node.args, form, strict=True)))
        case "format":
            return form
        case "method":
            return ("method", form[0], node.name[1:], form[1:], keywords)
        case "call":
            return ("call", node.name, form, keywords)
        case _:
            raise TypeError(f"{node.name} has no normal form")


def _text(part: Expr, form: NormalForm) -> str | NormalForm:
    """A part of an f-string: a text, or a value with its conversion and format."""
    match part:
        case Op("{}", (_, Const(conversion), Const(spec))):
            return (form[0], conversion, spec)
        case Const(str() as text):
            return text
        case _:
            raise TypeError("an f-string has parts of its own")


def _flat(node: Op) -> list[Expr]:
    """`(a and b) and c` is `a and b and c`."""
    found: list[Expr] = []
    for value in node.args:
        found += _flat(value) if isinstance(value, Op) and value.name == node.name else [value]
    return found


def _made(
    part: Expr | Spread, kind: str, name: str | None, form: Callable[[Expr], NormalForm]
) -> NormalForm:
    if isinstance(part, Spread):
        return ("**" if kind == "row" else "*", form(part.value))
    return form(part) if name is None else ("column", name, form(part))


def _comprehension(node: Comprehension, names: _Names, depth: int) -> NormalForm:
    source = _read(node.source, names, depth)
    element = source.type.element if isinstance(source.type, Array) else UNKNOWN
    bound = {}
    for i, name in enumerate(node.targets):
        of = element if len(node.targets) == 1 else UNKNOWN
        bound[name] = _Named(("variable", depth + i), of)
    inner, deeper = {**names, **bound}, depth + len(node.targets)
    conditions = tuple(_form(c, inner, deeper) for c in node.conditions)
    made = _form(node.element, inner, deeper)
    return ("comprehension", node.kind, len(node.targets), source.form, conditions, made)


def _constant(value: Any) -> NormalForm:
    """A constant by type and value: 1, 1.0, True and Decimal(1) are four, and −0.0 is not 0.0."""
    match value:
        case dict():
            return ("constant", "dict", *((_constant(k), _constant(v)) for k, v in value.items()))
        case tuple() | list():
            return ("constant", type(value).__name__, *map(_constant, value))
        case _:
            return ("constant", type(value).__name__, repr(value))
