"""Streams with at most one item of each key at a tick: over a range, a key's rows are versions.

Events look up the version of their tick in one pass, where other rows would have to be tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hydro_core.analysis.infer import Typed
from hydro_core.ir.graph import Node, NodeId
from hydro_core.plan.meaning import TRANSPARENT

Key = tuple[str, ...]
"""Names of columns; none of them: the first field of a tuple."""

_BY_KEY = frozenset(
    {
        *("fold_keyed", "reduce_keyed", "aggregate", "latest", "unique_keyed"),
        *("running_fold_keyed", "running_reduce_keyed", "running_aggregate", "running_latest"),
    }
)
_SELECTIONS = TRANSPARENT | {"filter", "of_shard", "unique", "difference", "anti_join"}
"""Operators that keep an item of their first input or not."""


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


def _key(node: Node, found: Mapping[NodeId, Key]) -> Key | None:
    name = node.op.name
    if name == "persist_mut_keyed":
        return ()
    if name in _BY_KEY:
        by: Key | None = node.args.get("by")
        return by if by is not None else None if name.endswith("aggregate") else ()
    before = found.get(node.inputs[0].node) if node.inputs else None
    if before is None or name in _SELECTIONS:
        return before
    match name:
        case "select":
            return before if before and set(before) <= set(node.args["columns"]) else None
        case "drop":
            return before if before and not set(before) & set(node.args["columns"]) else None
        case "with_columns":
            changed = {column for column, _ in node.args["computed"]}
            return before if before and not set(before) & changed else None
        case _:
            return None
