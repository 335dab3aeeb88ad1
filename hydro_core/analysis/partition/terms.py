"""Location terms: a value of an item by which the item's shard is known.

A term is a field, or a function of fields in its normal form, in which fields stand as `At`. Terms
are equal if their values are, whatever the item. All inputs of a choice are routed by one function
h of a value; that an item lies at the term t says that its shard is h(t(item)).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

from hydro_core.functions.normal import NormalForm
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    STRING,
    FieldPath,
    ItemType,
    Row,
    Tuple,
    at,
    children,
    is_integer,
    leaves,
)

MOST_TERMS = 32
"""So many terms are kept of a stream, and so many ways to write one: to know fewer is no error."""
LARGEST = 40
"""Fields and operations of a term; around a cycle a larger one would grow without end."""


class At(NamedTuple):
    """The field at a path; it is a leaf of the item's type."""

    path: FieldPath


KeyTerm = tuple[Any, ...]
"""An `At`, or nested tuples of words that hold some."""
TermTable = Mapping[KeyTerm, tuple[KeyTerm, ...]]
"""How terms over one item are written over another, where they can be."""

UNKNOWN, DETERMINED = "unknown", "determined"
"""Functions that are not told: an input's routing of its whole items, and one that a functional
dependency says there is. Each is known by the input's name.
"""
HOLE = At(("(hole)",))


@lru_cache(maxsize=1 << 14)
def fields_of(term: KeyTerm) -> frozenset[FieldPath]:
    if isinstance(term, At):
        return frozenset([term.path])
    return frozenset().union(*(fields_of(part) for part in term if isinstance(part, tuple)))


def is_determined(term: KeyTerm) -> bool:
    """Whether a function in it is known to exist only, so that it cannot be computed."""
    return term[:1] == (DETERMINED,) or (
        not isinstance(term, At)
        and any(is_determined(part) for part in term if isinstance(part, tuple))
    )


@lru_cache(maxsize=1 << 14)
def size_of(term: KeyTerm) -> int:
    """How many fields and operations a term is made of."""
    if isinstance(term, At):
        return 1
    return 1 + sum(size_of(part) for part in term if isinstance(part, tuple))


def rewritten(term: KeyTerm, table: TermTable) -> tuple[KeyTerm, ...]:
    """The ways to write a term over the other item: whole, or part by part."""
    if isinstance(term, At):
        return table.get(term, ())[:MOST_TERMS]
    found = dict.fromkeys(table.get(term, ()))
    if fields_of(term):
        ways = [
            rewritten(part, table) if isinstance(part, tuple) and fields_of(part) else (part,)
            for part in term
        ]
        found.update(dict.fromkeys(islice(product(*ways), MOST_TERMS)))
    return tuple(islice(found, MOST_TERMS))


def all_rewritten(terms: Iterable[KeyTerm], table: TermTable) -> frozenset[KeyTerm]:
    """All that is known of the other item by these terms of the one."""
    return fewest({new for term in terms for new in rewritten(term, table)})


def fewest(terms: Iterable[KeyTerm]) -> frozenset[KeyTerm]:
    """The terms, of too many the simplest."""
    found = frozenset(terms)
    return (
        found if len(found) <= MOST_TERMS else frozenset(sorted(found, key=_simplest)[:MOST_TERMS])
    )


def simplest(terms: Iterable[KeyTerm]) -> KeyTerm:
    """Of some terms the one that is easiest to compute, always the same one."""
    return min(terms, key=_simplest)


def _simplest(term: KeyTerm) -> tuple[int, str]:
    return (size_of(term), repr(term))


def whole(item: ItemType, path: FieldPath = ()) -> KeyTerm:
    """The term that is the value at a path: of a tuple or row all of its leaves."""
    found = at(item, path)
    match found:
        case None:
            raise ValueError(f"{item} has no field {path}")
        case Tuple():
            return ("tuple", *(whole(item, (*path, name)) for name, _ in children(found)))
        case Row():
            parts = (("column", name, whole(item, (*path, name))) for name, _ in children(found))
            return ("row", *parts)
        case _:
            return At(path)


def of_form(form: NormalForm, item: ItemType) -> KeyTerm | None:
    """The term of a function's normal form over the item; None where it says too little."""
    path = _path(form)
    if path is not None:
        return None if at(item, path) is None else whole(item, path)
    parts: list[Any] = []
    for part in form:
        inner = of_form(part, item) if isinstance(part, tuple) else part
        if inner is None and part is not None:
            return None
        parts.append(inner)
    return tuple(parts)


def _path(form: NormalForm) -> FieldPath | None:
    match form:
        case ("argument", _):
            return ()
        case ("field", tuple() as base, int() | str() as step):
            around = _path(base)
            return None if around is None else (*around, str(step))
        case _:
            return None


def keeps_value(a: ItemType | None, b: ItemType | None) -> bool:
    """Whether a value is the same after it went from one type to the other.

    An integer is, of any width; of a double's or a decimal's digits some may be lost.
    """
    return a is not None and b is not None and (a == b or (is_integer(a) and is_integer(b)))


def is_exact(item: ItemType | None) -> bool:
    """Whether values of the type that are equal are equal to every function: −0.0 is not 0.0."""
    return item is not None and (is_integer(item) or item in (STRING, BOOLEAN, DATE))


def is_computable(term: KeyTerm, item: ItemType) -> bool:
    """Whether equal items have equal values of the term: so has a field, and most functions."""
    return isinstance(term, At) or all(is_exact(at(item, path)) for path in fields_of(term))


def leaf_paths(item: ItemType) -> tuple[FieldPath, ...]:
    return tuple(path for path, _ in leaves(item))
