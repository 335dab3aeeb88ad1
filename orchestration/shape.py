"""The shape of a flow as its assets show it: strata, states, inputs and outputs, each with its
columns.

It is worked out from the program alone; neither Spark nor the optimizer is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydro_core.ir.graph import Graph, NodeId
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType, Row, Tuple

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns, as Spark DDL."""


@dataclass(frozen=True, slots=True)
class StratumShape:
    """A stratum: its operators, and the inputs that it reads first."""

    number: int
    operators: tuple[str, ...]
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateShape:
    """A state table, in the stratum whose operators read it."""

    name: str
    stratum: int
    says: str
    columns: Columns


@dataclass(frozen=True, slots=True)
class OutputShape:
    """An output, with the inputs and states that it is computed from."""

    name: str
    stratum: int
    columns: Columns
    ancestors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlowShape:
    """All of it, with the plan that it was read from."""

    plan: TickPlan
    inputs: Mapping[str, Columns]
    strata: tuple[StratumShape, ...]
    states: tuple[StateShape, ...]
    outputs: tuple[OutputShape, ...]


def shape_of(tick_plan: TickPlan) -> FlowShape:
    """The shape of a planned program."""
    graph, strata = tick_plan.graph, tick_plan.strata.of
    numbers = sorted(set(strata.values()))
    types = tick_plan.typed.types
    inputs = {
        name: columns_of(types[endpoint].item)
        for name, node in graph.sources.items()
        for endpoint in types
        if endpoint.node == node.id
    }
    return FlowShape(
        tick_plan,
        inputs,
        tuple(_stratum(graph, strata, number) for number in numbers),
        tuple(_state(slot, strata) for slot in tick_plan.slots),
        tuple(_output(graph, strata, tick_plan, name) for name in graph.sinks),
    )


def columns_of(item: ItemType) -> Columns:
    """The columns under which items of this type are stored: a row's, a tuple's `_1 … _n`, else
    `item`.
    """
    match item:
        case Row(fields):
            return tuple((field.name, to_ddl(field.type)) for field in fields)
        case Tuple(fields):
            return tuple((f"_{i + 1}", to_ddl(field)) for i, field in enumerate(fields))
        case _:
            return (("item", to_ddl(item)),)


def _stratum(graph: Graph, strata: Mapping[NodeId, int], number: int) -> StratumShape:
    nodes = [node for node in graph if strata[node.id] == number]
    operators = [node.op.name for node in nodes if node.op.name not in ("source", "sink")]
    inputs = [node.args["name"] for node in nodes if node.op.name == "source"]
    return StratumShape(number, tuple(dict.fromkeys(operators)), tuple(inputs))


def _state(slot: StateSlot, strata: Mapping[NodeId, int]) -> StateShape:
    kept = "every tick" if slot.keep is None else f"the last {slot.keep} ticks"
    if slot.mode.value == "last":
        kept = "the last tick"
    readers = ", ".join(f"`{reader}`" for reader in slot.readers)
    says = f"The items of `{slot.stream}` of {kept}, for {readers}."
    columns = (("item", to_ddl(slot.item)), ("t", "long"))
    ordered = (("ord", "long"),) if slot.ordered else ()
    return StateShape(slot.id, strata[slot.node], says, (*columns, *ordered))


def _output(
    graph: Graph, strata: Mapping[NodeId, int], tick_plan: TickPlan, name: str
) -> OutputShape:
    sinks = graph.sinks[name]
    item = tick_plan.typed.types[sinks[0].inputs[0]].item
    ancestors = _ancestors(graph, [sink.id for sink in sinks])
    read = [n.args["name"] for n in graph if n.id in ancestors and n.op.name == "source"]
    states = [f"state/{slot.id}" for slot in tick_plan.slots if ancestors & set(slot.readers)]
    stratum = max(strata[sink.id] for sink in sinks)
    return OutputShape(name, stratum, (("tick", "bigint"), *columns_of(item)), (*read, *states))


def _ancestors(graph: Graph, roots: list[NodeId]) -> set[NodeId]:
    found: set[NodeId] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += [endpoint.node for endpoint in graph[node].inputs]
    return found
