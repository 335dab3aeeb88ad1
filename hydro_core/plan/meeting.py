"""By which parts the items of two streams meet, in matches, products and results by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hydro_core.catalog.variants import Compares, Meets
from hydro_core.ir.graph import Node
from hydro_core.plan.versions import Key
from hydro_core.types.item import FieldPath, ItemType, at, children, leaves

KeyPaths = tuple[Sequence[FieldPath], Sequence[FieldPath]]
"""The parts of a key in the items of two streams."""


def keys_of_two(how: Meets | Compares, node: Node) -> KeyPaths:
    """The parts of the key by which items of two inputs meet."""
    key = key_paths(node.args.get("on") or ())
    match how:
        case Meets.ALL | Meets.SINGLE | Compares.NOTHING:
            return (), ()
        case Meets.KEY | Compares.KEYS:
            return key, key
        case Compares.ITEMS:
            return [()], [()]
        case Compares.BARE_KEYS:
            return key, [()]


def key_paths(key: Key) -> Sequence[FieldPath]:
    """The paths of a key's parts."""
    return [(name,) for name in key or ("0",)]


def leaf_pairs(
    mine: tuple[ItemType, FieldPath], other: tuple[ItemType, FieldPath]
) -> Iterator[tuple[FieldPath, FieldPath]]:
    """The leaves of a part of a key on both sides."""
    own, theirs = at(*mine), at(*other)
    if own is None or theirs is None:
        return
    for path, _ in leaves(own):
        found = at(theirs, path)
        if found is not None and not list(children(found)):
            yield (*mine[1], *path), (*other[1], *path)
