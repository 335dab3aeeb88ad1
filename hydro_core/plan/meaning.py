"""What a stream means: a hash of the sub-program that computes it, whatever its nodes are called.

Two streams with one meaning hold the same items at every tick, so what is stored of one serves
the other. Operators that pass their input on as it is do not count, nor does the order of the
inputs of a union.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Endpoint, Node, NodeId

TRANSPARENT = frozenset({"identity", "tee", "inspect", "next_stratum"})
"""Operators that pass their input on as it is."""


def meanings(typed: Typed, components: Sequence[Sequence[NodeId]]) -> Mapping[NodeId, str]:
    """The meaning of every node.

    `components` are the cycles and single nodes, what is read before what reads it.

    In a cycle, meanings are refined as often as it has nodes: after that, nodes that differ in
    anything differ.
    """
    found: dict[NodeId, str] = {}
    for component in components:
        own = {node: _own(typed.graph[node], typed) for node in component}
        found.update(own)
        for _ in component:
            found.update(
                {node: _with_inputs(own[node], typed.graph[node], found) for node in component}
            )
    return found


def meaning_of(stream: Endpoint, found: Mapping[NodeId, str], *more: str) -> str:
    """The meaning of one output of a node, with what else tells two stored streams apart."""
    return _digest(found[stream.node], stream.port, *more)


def _own(node: Node, typed: Typed) -> str:
    types = [
        f"{e.port}:{t.item}"
        for e, t in typed.types.items()
        if e.node == node.id and not node.inputs
    ]
    return _digest(
        node.op.name, *sorted(types), *(f"{k}={_text(v)}" for k, v in sorted(node.args.items()))
    )


def _with_inputs(own: str, node: Node, found: Mapping[NodeId, str]) -> str:
    inputs = [
        meaning_of(stream, found) if stream.port else found[stream.node] for stream in node.inputs
    ]
    if node.op.name in TRANSPARENT and len(inputs) == 1:
        return inputs[0]
    if node.spec.variadic:
        inputs.sort()
    return _digest(own, *inputs)


def _text(value: Any) -> str:
    """Canonical text of an argument."""
    match value:
        case Fn(source=source):
            return f"function {source}"
        case Aggregate(function, arguments):
            return f"{function}({', '.join(map(_text, arguments))})"
        case tuple() | list():
            return f"{type(value).__name__}({', '.join(map(_text, value))})"
        case Mapping():
            return f"row({', '.join(f'{k}: {_text(v)}' for k, v in value.items())})"
        case _:
            return f"{type(value).__name__} {value!s}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
