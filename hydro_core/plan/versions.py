"""Streams with at most one item of each key at a tick: over a range, a key's rows are versions.

Events look up the version of their tick in one pass, where other rows would have to be tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    ByKey,
    Commands,
    Ends,
    Linear,
    OrderedByKey,
    OverTime,
    PerKey,
    PerPosition,
    Positional,
    Product,
    Projection,
    Running,
)
from hydro_core.catalog.properties import Passes
from hydro_core.catalog.variants import Places
from hydro_core.ir.graph import Node, NodeId
from hydro_core.types.item import FieldPath

Key = tuple[str, ...]
"""Names of columns; none of them: the first field of a tuple."""
FIRST_FIELD: Key = ()


def key_paths(key: Key) -> Sequence[FieldPath]:
    """The paths of a key's parts."""
    return [(name,) for name in key or ("0",)]


def keys_of(typed: Typed) -> Mapping[NodeId, Key]:
    """The key of each node whose output has at most one item of each key."""
    found: dict[NodeId, Key] = {}
    waiting = list(typed.graph)
    changed = True
    while changed:
        changed = False
        for node in waiting:
            key = _key(node, found)
            if key is not None and node.id not in found:
                found[node.id] = key
                changed = True
    return MappingProxyType(found)


def result_key(node: Node) -> Key | None:
    """The key by which an operator has one result each; None where it has one of everything.

    None, too, where it makes no results of items.
    """
    cls = node.cls
    match cls:
        case ByKey(keyed=True) | Running(ByKey(keyed=True)) | Positional(Places.FIRST_OF_KEY):
            return node.args["by"] or FIRST_FIELD
        case Commands(keyed=True):
            return FIRST_FIELD
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def group_key(node: Node) -> Key | None:
    """The key on whose items alone depends what an operator makes of them; None: it has none."""
    of = node.cls.of if isinstance(node.cls, Running) else node.cls
    if isinstance(of, OrderedByKey):
        by: Key | None = node.args["by"]
        return (by or FIRST_FIELD) if of.keyed else None
    return result_key(node)


def _key(node: Node, found: Mapping[NodeId, Key]) -> Key | None:
    own = result_key(node)
    if own is not None:
        return own
    before = found.get(node.inputs[0].node) if node.inputs else None
    cls = node.cls
    alone = cls.passes is Passes.ALL and len(node.inputs) == 1
    if before is None or alone or cls.passes is Passes.SOME:
        return before
    return before if before and keeps_key(node, before) else None


def keeps_key(node: Node, key: Key) -> bool:
    """Whether an operator goes row by row and leaves the columns of a key as they are."""
    if not isinstance(node.cls, Projection):
        return False
    made = node.cls.columns(node.args, key)
    return all(made.get(column) == column for column in key)
