"""The normal form of a function: what is equal for two functions only if they do the same.

It is the function's tree over what it is applied to: parameters by position, variables by the place
where they are bound, constants by type and value, fields by path. How a function is written, what
its parameters are called and where it stands do not count. It is made of tuples and strings, so
that its text is stable: stored state is known by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hydro_core.functions.bind import BoundParameter, arguments_of
from hydro_core.functions.fields import field_in
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import Fold
from hydro_core.functions.from_tree import is_complete
from hydro_core.functions.tree import (
    UNARY,
    Bind,
    Const,
    Expr,
    IfElse,
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


@dataclass(frozen=True, slots=True)
class _Names:
    """What names stand for."""

    of: Mapping[str, _Named]
    depth: int = 0
    """The number of variables that are bound around."""

    def inner(self, types: Sequence[tuple[str, ItemType]]) -> _Names:
        """With further variables."""
        bound = {
            name: _Named(("variable", self.depth + i), of) for i, (name, of) in enumerate(types)
        }
        return _Names({**self.of, **bound}, self.depth + len(types))


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
    return _NORMAL.form(of.tree, _Names(names))


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


class _Normal(Fold[_Names, _Named]):
    """The form of an expression, and its type as far as it is known for sure."""

    def form(self, node: Expr, around: _Names) -> NormalForm:
        """The form alone."""
        return self.of(node, around).form

    def _const(self, node: Const, around: _Names) -> _Named:
        return _Named(_constant(node.value))

    def _param(self, node: Param, around: _Names) -> _Named:
        return around.of.get(node.name) or _Named(("free", node.name))

    def _part(self, node: Part, around: _Names) -> _Named:
        """A field, where it is one for sure; an element of an array, or what is not known."""
        base = self.of(node.base, around)
        field = field_in(base.type, node)
        if field is not None:
            return _Named(("field", base.form, field.step), field.type)
        if node.by_name:
            return _Named(("attribute", base.form, node.step))
        element = base.type.element if isinstance(base.type, Array) else UNKNOWN
        known = element if isinstance(node.step, int) else UNKNOWN
        return _Named(("index", base.form, _constant(node.step)), known)

    def _op(self, node: Op, around: _Names) -> _Named:
        parts = _flat(node) if node.family in ("and", "or") else node.args
        forms = tuple(self.form(part, around) for part in parts)
        keywords = tuple((name, self.form(value, around)) for name, value in node.keywords)
        return _Named(_operation(node, forms, keywords))

    def _if_else(self, node: IfElse, around: _Names) -> _Named:
        parts = (node.test, node.then, node.otherwise)
        return _Named(("if", *(self.form(part, around) for part in parts)))

    def _make(self, node: Make, around: _Names) -> _Named:
        star = "**" if node.kind == "row" else "*"
        made: list[NormalForm] = []
        for part, name in zip(node.parts, node.names or (None,) * len(node.parts), strict=True):
            if isinstance(part, Spread):
                made.append((star, self.form(part.value, around)))
            else:
                form = self.form(part, around)
                made.append(form if name is None else ("column", name, form))
        return _Named((node.kind, *made))

    def _bind(self, node: Bind, around: _Names) -> _Named:
        value = self.of(node.value, around)
        types: list[ItemType] = [UNKNOWN] * len(node.names)
        if node.kind == "let":
            types = [value.type]
        elif node.is_loop and len(types) == 1 and isinstance(value.type, Array):
            types = [value.type.element]
        inner = around.inner(list(zip(node.names, types, strict=True)))
        conditions = tuple(self.form(c, inner) for c in node.conditions)
        body, number = self.of(node.body, inner), len(node.names)
        match node.kind:
            case "let":
                return _Named(("let", value.form, body.form), body.type)
            case "function":
                return _Named(("lambda", number, body.form))
            case kind:
                form = ("comprehension", kind, number, value.form, conditions, body.form)
                return _Named(form)


_NORMAL = _Normal()


def _operation(  # noqa: C901, PLR0911 - a closed set of cases
    node: Op, form: tuple[NormalForm, ...], keywords: NormalForm
) -> NormalForm:
    match node.family:
        case "and" | "or":
            return (node.name, *form)
        case "unary":
            return ("unary", UNARY[node.name], *form)
        case "binary":
            return ("binary", node.name, *form)
        case "comparison":
            return ("compare", form[0], *zip(node.name.split(","), form[1:], strict=True))
        case "index":
            return ("index", *form)
        case "slice":
            given = iter(form[1:])
            return ("slice", form[0], *(next(given) if b in node.name else None for b in "lhs"))
        case "text":
            return ("text", *(_text(p, f) for p, f in zip(node.args, form, strict=True)))
        case "format":
            return form
        case "method":
            return ("method", form[0], node.name[1:], form[1:], keywords)
        case "call":
            return ("call", node.name, form, keywords)
        case "unread":
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


def _constant(value: Any) -> NormalForm:
    """A constant by type and value: 1, 1.0, True and Decimal(1) are four, and −0.0 is not 0.0."""
    match value:
        case dict():
            return ("constant", "dict", *((_constant(k), _constant(v)) for k, v in value.items()))
        case tuple() | list():
            return ("constant", type(value).__name__, *map(_constant, value))
        case _:
            return ("constant", type(value).__name__, repr(value))
