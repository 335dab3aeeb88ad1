"""Which streams hold the rows of a key's value apart from all others, and in which field.

A routing by a key says where the items of a stream lie (`locations`). Where every item lies at a
field of its own, the rows with one value there are what that value's shard makes, and the others
are what the program makes of inputs that never had it. So the value's rows are taken out of what
is stored without computing anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.locations import locate
from hydro_core.analysis.partition.steps import steps_of
from hydro_core.analysis.partition.terms import At
from hydro_core.ir.graph import NodeId
from hydro_core.types.item import FieldPath

PathSet = frozenset[FieldPath]


@dataclass(frozen=True, slots=True)
class KeyedStreams:
    fields: Mapping[NodeId, PathSet | None] = field(default_factory=dict)
    """The fields of each stream that are the key, any of which tells; None: nothing of it comes of
    rows that have the key.
    """
    obstacles: tuple[str, ...] = ()
    """What brings rows of several values together; empty where nothing does."""


def keyed_streams(
    typed: Typed, keys: Mapping[str, FieldPath], wanted: Iterable[NodeId]
) -> KeyedStreams:
    """Where some streams of a program have a key of its inputs.

    Args:
        typed: the program, or a plan's.
        keys: the inputs that have the key, each with its field; no row of another input is of one
            value of it.
        wanted: the streams.
    """
    steps = steps_of(typed)
    others = {source.name for source in steps.sources.values()} - set(keys)
    found = locate(steps, {name: At(path) for name, path in keys.items()}, others)
    if found.failed:
        operators = (f"`{s.node.op.name}` ({s.node.id})" for s in found.failed)
        return KeyedStreams(obstacles=tuple(f"{one} brings rows together" for one in operators))
    if found.splits:
        parts = dict.fromkeys(f"`{node}` has rows of other inputs, too" for node, _ in found.splits)
        return KeyedStreams(obstacles=tuple(parts))
    cut = steps.cut(others)
    fields: dict[NodeId, PathSet | None] = {}
    for node in wanted:
        terms = found.terms.get(node) or ()
        paths = frozenset(term.path for term in terms if isinstance(term, At))
        fields[node] = None if node in steps.of and node not in cut else paths
    return KeyedStreams(fields)
