"""What items are routed by, as arguments of the operator that takes the items of one shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hydro_core.analysis.partition.locations import RoutingTerms
from hydro_core.analysis.partition.steps import InputLeaves
from hydro_core.analysis.partition.terms import (
    UNKNOWN,
    At,
    KeyTerm,
    fields_of,
    text_of_choice,
    untold,
)
from hydro_core.catalog.spec import Args
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import children, with_children
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.tree import Expr, Make, Op, Param, Part
from hydro_core.functions.views import ITEM
from hydro_core.types.item import BOOLEAN, ItemType, Tuple, at


def arguments(term: KeyTerm | None, item: ItemType, shards: int) -> Args | None:
    """How items are routed by a term; None where a function in it is known by its name only.

    Without a term all go to the first shard.
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
    return untold(UNKNOWN, (source.name,), source.leaves)


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
    return functions + narrow, narrow, text_of_choice(choice)


def _parts(term: KeyTerm) -> Iterator[KeyTerm]:
    """The values that a term is made of: fields, or functions of them."""
    match term:
        case Make("tuple" | "row"):
            for part in children(term):
                yield from _parts(part)
        case Op(name, (_, *fields)) if name == UNKNOWN:
            yield from fields
        case _:
            yield term


def _function(parts: list[KeyTerm], item: ItemType) -> Fn | None:
    """The function that gives the values, if they can be computed."""
    whole = parts[0] if len(parts) == 1 else Make("tuple", tuple(parts))
    tree = _over_items(whole, item)
    return function_of(tree, (ITEM,)) if is_complete(tree) else None


def _over_items(term: KeyTerm, item: ItemType) -> Expr:
    """The term as an expression of the item; it fails where there is nothing to take a field of."""
    if not isinstance(term, At):
        return with_children(term, (_over_items(part, item) for part in children(term)))
    found: Expr = Param(ITEM)
    for i, step in enumerate(term.path):
        is_tuple = isinstance(at(item, term.path[:i]), Tuple)
        found = Part(found, int(step) if is_tuple else step)
    return found
