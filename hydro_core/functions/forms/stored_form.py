"""Normal forms as text: tuples of strings and numbers, by which stored state is known.

They are the same in every release: what is printed here, and how, never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import Fold
from hydro_core.functions.forms.normal import ARGUMENT, VARIABLE, declared, normal_tree
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
    exact,
)
from hydro_core.types.item import ItemType

StoredForm = tuple[Any, ...]
"""Nested tuples of strings and numbers."""


def stored_form(fn: Fn, arguments: Sequence[ItemType]) -> StoredForm:
    """The text of the normal form of a function that is applied to arguments of these types.

    One that cannot be read whole is known by its source.
    """
    tree = normal_tree(fn, arguments)
    if tree is None:
        return ("source", fn.source, fn.closed, len(fn.params), *declared(fn))
    return ("function", _printed(SameTree(tree)), *declared(fn))


def printed(tree: Expr) -> StoredForm:
    """The text of a tree in normal form."""
    return _STORED.of(tree, None)


@lru_cache(maxsize=4096)
def _printed(of: SameTree) -> StoredForm:
    return printed(of.tree)


class StoredText(Fold[None, StoredForm]):
    """The text of trees in normal form."""

    def _all(self, parts: Sequence[Expr]) -> StoredForm:
        return tuple(self.of(part, None) for part in parts)

    def _const(self, node: Const, around: None) -> StoredForm:
        return _constant(node.value)

    def _param(self, node: Param, around: None) -> StoredForm:
        kind, _, number = node.name.partition(" ")
        return (kind, int(number)) if kind in (ARGUMENT, VARIABLE) and number else ("free", kind)

    def _part(self, node: Part, around: None) -> StoredForm:
        return ("attribute" if node.by_name else "field", self.of(node.base, None), node.step)

    def _if_else(self, node: IfElse, around: None) -> StoredForm:
        return ("if", *self._all((node.test, node.then, node.otherwise)))

    def _make(self, node: Make, around: None) -> StoredForm:
        star = "**" if node.kind == "row" else "*"
        made: list[StoredForm] = []
        for part, name in zip(node.parts, node.names or (None,) * len(node.parts), strict=True):
            if isinstance(part, Spread):
                made.append((star, self.of(part.value, None)))
            else:
                form = self.of(part, None)
                made.append(form if name is None else ("column", name, form))
        return (node.kind, *made)

    def _bind(self, node: Bind, around: None) -> StoredForm:
        body, number = self.of(node.body, None), len(node.names)
        if node.kind == "function":
            return ("lambda", number, body)
        value = self.of(node.value, None)
        if node.kind == "let":
            return ("let", value, body)
        return ("comprehension", node.kind, number, value, self._all(node.conditions), body)

    def _op(self, node: Op, around: None) -> StoredForm:
        if node.family == "text":
            return ("text", *map(self._text, node.args))
        form = self._all(node.args)
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
            case _:
                return self._called(node, form)

    def _called(self, node: Op, form: StoredForm) -> StoredForm:
        keywords = tuple((name, self.of(value, None)) for name, value in node.keywords)
        if node.family == "method":
            return ("method", form[0], node.name[1:], form[1:], keywords)
        if node.family == "call":
            return ("call", node.name, form, keywords)
        # what has no entry, as it stands in normal forms, is known by plain numbers and names
        parts = zip(node.args, form, strict=True)
        known_by = (arg.value if isinstance(arg, Const) else part for arg, part in parts)
        return (node.name.strip("?()"), *known_by)

    def _text(self, part: Expr) -> str | StoredForm:
        """A part of an f-string: a text, or a value with its conversion and format."""
        match part:
            case Op("{}", (value, Const(conversion), Const(spec))):
                return (self.of(value, None), conversion, spec)
            case Const(str() as text):
                return text
            case _:
                raise TypeError("an f-string has parts of its own")


_STORED = StoredText()


def _constant(value: Any) -> StoredForm:
    match value:
        case dict():
            return ("constant", "dict", *((_constant(k), _constant(v)) for k, v in value.items()))
        case tuple() | list():
            return ("constant", type(value).__name__, *map(_constant, value))
        case _:
            return ("constant", *exact(value))
