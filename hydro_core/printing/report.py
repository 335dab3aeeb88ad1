"""What is known of a program before it runs: what `hydrotick check` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.ir.graph import Node
from hydro_core.plan.planner import plan
from hydro_core.plan.repeated import repeated
from hydro_core.printing.table import table
from hydro_core.types.ddl import to_ddl
from hydro_core.types.stream import StreamType

_WIDEST = 56
"""Characters of a type in the table of streams."""


def as_json(typed: Typed, strata: Strata) -> Mapping[str, Any]:
    ready = plan(typed)
    return {
        "name": typed.graph.name,
        "inputs": {name: to_ddl(stream.item) for name, stream in typed.inputs.items()},
        "outputs": {name: _stream(stream) for name, stream in typed.outputs.items()},
        "streams": {str(endpoint): _stream(stream) for endpoint, stream in typed.types.items()},
        "strata": [list(strata.members(number)) for number in range(strata.count)],
        "recursive": [sorted(cycle) for cycle in strata.recursive],
        "handoffs": [
            {"stream": str(endpoint), "from": before, "to": after}
            for endpoint, before, after in strata.handoffs
        ],
        "tick_by_tick": list(ready.notes),
        "repeated": list(repeated(ready).values()),
        "warnings": [warning.as_json() for warning in typed.graph.warnings],
    }


def _stream(stream: StreamType) -> Mapping[str, Any]:
    return {"type": to_ddl(stream.item), "order": stream.order.value, "single": stream.single}


def as_text(typed: Typed, strata: Strata) -> str:
    inputs = [[name, to_ddl(stream.item)] for name, stream in typed.inputs.items()]
    outputs = [
        [name, stream.order.value, to_ddl(stream.item)] for name, stream in typed.outputs.items()
    ]
    parts = [
        f"{typed.graph.name}: {len(typed.graph.nodes)} operators in {_plural(strata.count)}",
        table(["input", "items"], inputs) if inputs else "no inputs",
        table(["output", "order", "items"], outputs) if outputs else "no outputs",
        table(["stratum", "stream", "operator", "order", "items"], _rows(typed, strata)),
    ]
    if strata.recursive:
        cycles = (", ".join(sorted(cycle)) for cycle in strata.recursive)
        parts.append("\n".join(f"runs to a fixpoint: {cycle}" for cycle in cycles))
    ready = plan(typed)
    notes = (*ready.notes, *repeated(ready).values())
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _plural(count: int) -> str:
    return "1 stratum" if count == 1 else f"{count} strata"


def _rows(typed: Typed, strata: Strata) -> list[list[str]]:
    rows = []
    for number in range(strata.count):
        for i, name in enumerate(strata.members(number)):
            node = typed.graph[name]
            rows.append([str(number) if i == 0 else "", name, node.op.name, *_types(typed, node)])
    return rows


def _types(typed: Typed, node: Node) -> tuple[str, str]:
    if node.op.outputs == "none":
        return "", ""
    stream = typed.of(node.id)
    order = "ordered" if stream.order.value == "TotalOrder" else ""
    return order, _shortened(to_ddl(stream.item))


def _shortened(text: str) -> str:
    """As much of a long type as keeps the table readable; inputs and outputs stand above whole."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1].rstrip(" ,") + "…"
