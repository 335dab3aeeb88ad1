"""What the fields of a function's result are made of: an expression of its arguments' fields.

Where a field is not one of the input's, it may still be a function of some: `bucket(user)`. Two
expressions that are equal in their normal form have equal values, so an item can be followed by
such a value as by a field. Only what is one expression is told: nothing with variables of its own,
nothing of a function that cannot be read whole or whose result is declared (and may be converted).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal

from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import children, nodes, with_children
from hydro_core.functions.forms.normal import normal_tree, path_of
from hydro_core.functions.tree import Bind, Const, Expr, IfElse, Make, Op, Param, Spread
from hydro_core.types.item import FieldPath, ItemType

ResultUse = Literal["item", "optional", "elements"]
"""What a result is: an item, an item unless it is null, or what holds items."""
_MOST = 200
"""Nodes of an expression; a larger one follows nothing."""


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
    return {path: part for path, part in _parts(whole, ()) if _is_told(part)}


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


def _is_told(tree: Expr) -> bool:
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
