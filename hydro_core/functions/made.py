"""What the fields of a function's result are made of: an expression of its arguments' fields.

Where a field is not one of the input's, it may still be a function of some: `bucket(user)`. Two
expressions that are equal in their normal form have equal values, so an item can be followed by
such a value as by a field. Only what is one expression is told: nothing with variables of its own,
nothing of a function that cannot be read whole or whose result is declared (and may be converted).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hydro_core.functions.fn import Fn
from hydro_core.functions.normal import NormalForm, normal_form
from hydro_core.types.item import FieldPath, ItemType

ResultUse = Literal["item", "optional", "elements"]
"""What a result is: an item, an item unless it is null, or what holds items."""
_NONE: NormalForm = ("constant", "NoneType", "None")
_BOUND = frozenset({"variable", "lambda", "comprehension", "free", "spread", "source", "*", "**"})
_MOST = 200
"""Parts of an expression; a larger one follows nothing."""


def made_fields(
    fn: Fn, inputs: tuple[ItemType, ...], *, use: ResultUse = "item"
) -> Mapping[FieldPath, NormalForm]:
    """The expressions of the fields that are made of others, over ("argument", i).

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda k, v: (k % 2, v)", mode="eval").body, {})
    >>> made_fields(f, (parse_ddl("(long, string)"),))
    {('0',): ('binary', '%', ('field', ('argument', 0), 0), ('constant', 'int', '2'))}
    """
    if use == "elements" or fn.returns is not None:
        return {}
    kind, form, *_ = normal_form(fn, inputs)
    if kind != "function":
        return {}
    whole = _inlined(form, {}, 0)
    if whole is None:
        return {}
    if use == "optional":
        whole = _kept(whole)
    return {path: part for path, part in _parts(whole, ()) if _is_told(part)}


def _inlined(form: NormalForm, values: Mapping[int, NormalForm], depth: int) -> NormalForm | None:
    """The form with the values of its outermost variables in their place."""
    match form:
        case ("let", value, body):
            inner = _inlined(value, values, depth)
            return None if inner is None else _inlined(body, {**values, depth: inner}, depth + 1)
        case ("variable", int() as number) if number in values:
            return values[number]
        case ("lambda" | "comprehension", *_):
            return None if values else form
    parts = []
    for part in form:
        inner = _inlined(part, values, depth) if isinstance(part, tuple) else part
        if inner is None and part is not None:
            return None
        parts.append(inner)
    return tuple(parts)


def _kept(form: NormalForm) -> NormalForm:
    """What is there when the result is not None."""
    match form:
        case ("if", _, then, otherwise) if otherwise == _NONE:
            return _kept(then)
        case ("if", _, then, otherwise) if then == _NONE:
            return _kept(otherwise)
        case _:
            return form


def _parts(form: NormalForm, path: FieldPath) -> list[tuple[FieldPath, NormalForm]]:
    match form:
        case ("tuple", *parts) if not any(part[0] == "*" for part in parts):
            named = [(str(i), part) for i, part in enumerate(parts)]
        case ("row", *parts) if all(part[0] == "column" for part in parts):
            named = list({name: part for _, name, part in parts}.items())
        case ("if", test, then, otherwise):
            return _branches(test, then, otherwise, path)
        case _:
            return [(path, form)]
    return [found for name, part in named for found in _parts(part, (*path, name))]


def _branches(
    test: NormalForm, then: NormalForm, otherwise: NormalForm, path: FieldPath
) -> list[tuple[FieldPath, NormalForm]]:
    one, other = dict(_parts(then, ())), dict(_parts(otherwise, ()))
    if one.keys() != other.keys():
        return []
    return [
        ((*path, *p), part if part == other[p] else ("if", test, part, other[p]))
        for p, part in one.items()
    ]


def _is_told(form: NormalForm) -> bool:
    """Whether it is one expression of fields, and not a field itself or a constant."""
    names, count, looks = set(), 0, False
    todo = [form]
    while todo:
        part = todo.pop()
        count += 1
        if part[:1] == ("constant",):
            continue
        names |= {word for word in part[:1] if isinstance(word, str)}
        if part[:1] == ("call",) and part[1].startswith("("):
            return False  # it has no text of its own
        looks = looks or part[:1] == ("argument",)
        todo += [inner for inner in part if isinstance(inner, tuple)]
    return looks and count <= _MOST and form[0] not in ("field", "argument") and not names & _BOUND
