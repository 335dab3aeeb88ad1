"""What items are routed by, as arguments of the operator that takes the items of one shard."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from hydro_core.analysis.partition.locations import RoutingTerms
from hydro_core.analysis.partition.steps import InputLeaves
from hydro_core.analysis.partition.terms import (
    DETERMINED,
    UNKNOWN,
    At,
    KeyTerm,
    fields_of,
    is_determined,
    of_form,
)
from hydro_core.analysis.partition.wording import as_lambda
from hydro_core.catalog.spec import Args
from hydro_core.errors import TypeProblem
from hydro_core.functions.field_map import field_map
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
from hydro_core.types.item import BOOLEAN, ItemType, at


def arguments(term: KeyTerm | None, item: ItemType, shards: int) -> Args | None:
    """How items are routed by a term; None where a function in it is known by its name only.

    Args:
        term: what they are routed by; None: all go to the first shard.
        item: the type of the items.
        shards: how many shards there are.
    """
    parts = [] if term is None else list(_parts(term))
    by = tuple(part.path for part in parts if isinstance(part, At))
    function = None
    if len(by) < len(parts):
        function = _function(parts, item)
        if function is None:
            return None
        by = ()
    return Args((("by", by), ("f", function), ("shards", shards), ("shard", 0)))


def whole_item(source: InputLeaves) -> KeyTerm:
    """The term of an input that a choice does not name: its whole items."""
    return (UNKNOWN, source.name, *map(At, source.leaves))


def badness(choice: RoutingTerms, sources: Mapping[str, InputLeaves]) -> tuple[Any, ...]:
    """By what choices are put in order: the first is taken, where nothing is said of the data.

    Fields are better than functions of them, which have fewer values and are computed apart; what
    has two values only is worst.
    """
    functions = sum(not isinstance(part, At) for t in choice.values() for part in _parts(t))
    narrow = sum(
        at(sources[name].item, path) == BOOLEAN
        for name, term in choice.items()
        for path in fields_of(term)
    )
    return functions + narrow, narrow, repr(sorted(choice.items(), key=repr))


def _parts(term: KeyTerm) -> Iterator[KeyTerm]:
    """The values that a term is made of: fields, or functions of them."""
    match term:
        case At():
            yield term
        case ("tuple", *parts):
            for part in parts:
                yield from _parts(part)
        case (_, _, *parts) if term[0] == UNKNOWN:
            for part in parts:
                yield from _parts(part)
        case ("row", *columns):
            for _, _, part in columns:
                yield from _parts(part)
        case _:
            yield term


def _function(parts: list[KeyTerm], item: ItemType) -> Fn | None:
    """The function that gives the values, if it can be read, and means the same when it is."""
    if any(is_determined(part) or part[:1] == (DETERMINED,) for part in parts):
        return None
    for part in parts:
        alone = _read(as_lambda([part]))
        if not isinstance(part, At) and (alone is None or _term_of(alone, item) != part):
            return None
    return _read(as_lambda(parts))


def _read(tree: ast.Lambda) -> Fn | None:
    try:
        return read_function(tree, {})
    except TypeProblem:
        return None


def _term_of(function: Fn, item: ItemType) -> KeyTerm | None:
    form = field_map(function, (item,)).made.get(())
    return None if form is None else of_form(form, item)
