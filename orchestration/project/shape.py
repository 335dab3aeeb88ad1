"""Shape of a flow as its assets show it: inputs, states and outputs with their columns and lineage.

It is worked out from the program alone; neither Spark nor the optimizer nor Dagster is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hydro_core.analysis.lineage import Lineage, lineage
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.errors import Span
from hydro_core.ir.graph import Endpoint, Graph, NodeId
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import WRONG, Array, FieldPath, ItemType, Order, Row, Tuple

ColumnTypes = tuple[tuple[str, str], ...]
"""Names and types of columns, as SQL names them."""

ColumnSources = Mapping[str, tuple[tuple[str, str], ...]]
"""Columns of inputs that each column of an output equals or is computed from."""

_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


@dataclass(frozen=True, slots=True)
class StateShape:
    """A state table; `parents` are the inputs ("landing/NAME") and states ("state/NAME") that it
    is computed from, `earlier` the states that it reads as the tick before left them and that are
    computed from it themselves. `written_by` and `read_by` are the operators that do that.
    """

    name: str
    stratum: int
    says: str
    columns: ColumnTypes
    parents: tuple[str, ...]
    earlier: tuple[str, ...]
    written_by: str
    read_by: tuple[str, ...]
    places: tuple[Span | None, ...]
    """Where the program says what is kept, and what for."""


@dataclass(frozen=True, slots=True)
class OutputShape:
    name: str
    stratum: int
    columns: ColumnTypes
    parents: tuple[str, ...]
    sources: ColumnSources
    changed: frozenset[str]
    """The columns that are computed from these, and not the very value of one."""
    place: Span | None


@dataclass(frozen=True, slots=True)
class FlowShape:
    """All of it, with the plan that it was read from."""

    plan: TickPlan
    inputs: Mapping[str, ColumnTypes]
    states: tuple[StateShape, ...]
    """Each after those that it is computed from."""
    outputs: tuple[OutputShape, ...]


def shape_of(tick_plan: TickPlan) -> FlowShape:
    graph, types = tick_plan.graph, tick_plan.typed.types
    inputs = {
        name: tuple(of for of in columns_of(types[endpoint].item) if of[0] not in WRONG)
        for name, node in graph.sources.items()
        for endpoint in types
        if endpoint.node == node.id
    }
    fields = lineage(tick_plan.typed)
    return FlowShape(
        tick_plan,
        inputs,
        tuple(_states(tick_plan)),
        tuple(_output(tick_plan, name, fields[name]) for name in graph.sinks),
    )


def columns_of(item: ItemType) -> ColumnTypes:
    """The columns under which items of this type are stored: a row's, a tuple's `_1 … _n`, else
    `item`.
    """
    match item:
        case Row(fields):
            return tuple((field.name, _sql(field.type)) for field in fields)
        case Tuple(fields):
            return tuple((f"_{i + 1}", _sql(field)) for i, field in enumerate(fields))
        case _:
            return (("item", _sql(item)),)


def _sql(item: ItemType) -> str:
    """The type of a column that holds such items, by the names of SQL: those the UI knows."""
    match item:
        case Row() | Tuple():
            inside = ", ".join(f"{name}: {kind}" for name, kind in columns_of(item))
            return f"struct<{inside}>"
        case Array(element):
            return f"array<{_sql(element)}>"
        case _:
            name = to_ddl(item)
            return _SQL_NAMES.get(name, name)


def _states(plan: TickPlan) -> Iterator[StateShape]:
    """The states, parents first. Where states feed each other through the tick before, as feedback
    does, the assets keep the edges that close no circle.
    """
    slots = {f"state/{slot.id}": slot for slot in plan.slots}
    read = {name: _parents(plan, [slot.stream]) for name, slot in slots.items()}
    above = _closed({name: set(parents) & set(slots) for name, parents in read.items()})
    left = dict.fromkeys(slots)
    while left:
        # Those above it come first, but for those that are below it, too.
        name = next(n for n in left if all(n in above[other] for other in above[n] & set(left)))
        del left[name]
        earlier = tuple(p for p in read[name] if p in left)
        parents = tuple(p for p in read[name] if p not in left and p != name)
        yield _state(plan, slots[name], parents, earlier)


def _closed(above: dict[str, set[str]]) -> dict[str, set[str]]:
    """All that is above each, directly or not."""
    for middle, higher in above.items():
        for names in above.values():
            if middle in names:
                names.update(higher)
    return above


def _state(
    plan: TickPlan, slot: StateSlot, parents: tuple[str, ...], earlier: tuple[str, ...]
) -> StateShape:
    kept = "every tick" if slot.keep is None else f"the last {slot.keep} ticks"
    if slot.bound is not None:
        kept = f"the ticks so far as long as {slot.bound.shown}"
    if slot.form.stored == "last":
        kept = "the last tick"
    node = plan.graph[slot.stream.node]
    readers = tuple(dict.fromkeys(_operator(plan.graph, reader) for reader in slot.readers))
    says = f"The items of `{slot.stream}` of {kept}, for {', '.join(readers)}."
    ordered = (("ord", "bigint"),) if slot.ordered else ()
    columns = (("t", "bigint"), ("item", _sql(slot.item)), *ordered)
    return StateShape(
        name=slot.id,
        stratum=plan.strata.of[slot.node],
        says=says,
        columns=columns,
        parents=parents,
        earlier=earlier,
        written_by=_operator(plan.graph, node.id),
        read_by=readers,
        places=(node.span, *(plan.graph[reader].span for reader in slot.readers)),
    )


def _operator(graph: Graph, name: NodeId) -> str:
    node = graph[name]
    what = "input" if node.op is SOURCE else node.op.name
    return f"`{what}`" + (f" in line {node.span.line}" if node.span else "")


def _output(plan: TickPlan, name: str, fields: Lineage) -> OutputShape:
    sinks = plan.graph.sinks[name]
    streams = [endpoint for sink in sinks for endpoint in sink.inputs]
    types = plan.typed.types
    item, order = types[streams[0]].item, types[streams[0]].order
    stratum = max(plan.strata.of[sink.id] for sink in sinks)
    ordered = len(streams) == 1 and order is Order.TOTAL
    place = (("position", "bigint"),) if ordered else ()
    columns = (("tick", "bigint"), *columns_of(item), *place)
    sources = _sources(plan, item, fields)
    changed = frozenset(_column(item, path) for path, field in fields.items() if field.computed)
    parents = tuple(_parents(plan, streams))
    return OutputShape(name, stratum, columns, parents, sources, changed, sinks[0].span)


def _sources(plan: TickPlan, item: ItemType, fields: Lineage) -> ColumnSources:
    found: dict[str, dict[tuple[str, str], None]] = {}
    items = {
        name: plan.typed.types[Endpoint(node.id)].item for name, node in plan.graph.sources.items()
    }
    for path, field in fields.items():
        known = found.setdefault(_column(item, path), {})
        read = ((name, _column(items[name], inside)) for name, inside in sorted(field.all))
        # What says that a row is wrong is no column of a landing.
        known |= dict.fromkeys(each for each in read if each[1] not in WRONG)
    return {column: tuple(sources) for column, sources in found.items()}


def _column(item: ItemType, path: FieldPath) -> str:
    match item:
        case Row(_) if path:
            return path[0]
        case Tuple(_) if path:
            return f"_{int(path[0]) + 1}"
        case _:
            return "item"


def _parents(plan: TickPlan, streams: Sequence[Endpoint]) -> list[str]:
    """The inputs and states that streams are computed from, not those behind a state again.

    What an operator keeps of a stream, it has from the state, with what the tick adds to it.
    """
    kept: dict[NodeId, list[StateSlot]] = {}
    for slot in plan.slots:
        for reader in slot.readers:
            kept.setdefault(reader, []).append(slot)
    found: dict[str, None] = {}
    seen: set[NodeId] = set()
    todo = [endpoint.node for endpoint in streams]
    while todo:
        node = plan.graph[todo.pop()]
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op is SOURCE:
            found[f"landing/{node.args['name']}"] = None
        slots = kept.get(node.id, [])
        found |= {f"state/{slot.id}": None for slot in slots}
        behind = {slot.stream for slot in slots}
        todo += [endpoint.node for endpoint in node.inputs if endpoint not in behind]
    return sorted(found)


_NO_NAME = re.compile(r"\W+", re.ASCII)


def asset_path(flow: FlowAsset, asset: str) -> list[str]:
    """The path of an asset of the flow: of "state/NAME", "landing/NAME", or an output.

    An input that is another flow's output has the path that it has there.
    """
    kind, _, name = asset.rpartition("/")
    if kind == "landing" and name in flow.reads:
        read = flow.reads[name]
        return [read.flow, read.output]
    # The UI shows the last part of a key, and a state often has the name of an input.
    match kind:
        case "":
            return [flow.name, name]
        case "state":
            # What a plan has more of than the program is named in words: `totals of shard 2`.
            return [flow.name, kind, f"{_NO_NAME.sub('_', name)}_state"]
        case _:
            return [flow.name, kind, name]


def last_path(flow: FlowAsset, plan: TickPlan) -> list[str]:
    """The path of the asset that a tick records last: a tick that it has, all have."""
    tables = [*(f"state/{slot.id}" for slot in plan.slots), *plan.graph.sinks]
    return asset_path(flow, tables[-1])
