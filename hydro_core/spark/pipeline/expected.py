"""What is known of a range before a job runs: about how many rows it has to do with, and which
tables get none, or what came as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import NodeId
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import MEBIBYTE
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.prepared import RangeRequest
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.commit import Commit

_COMPILED_ROWS = 60_000
"""So many may arrive where the plan is kept, and what it is compiled to with it."""

_COMPILED_BYTES = 64 * MEBIBYTE
"""And rows of so many bytes: the heap of the driver has them all."""


def rows_at_hand(inputs: Mapping[str, Batch]) -> float:
    """How many rows arrive; infinitely many where that is not known."""
    counts = [batch.rows_at_hand for batch in inputs.values()]
    return float("inf") if None in counts else sum(n or 0 for n in counts)


def is_compiled(inputs: Mapping[str, Batch]) -> bool:
    """Whether what arrives is little enough for one task, if the plan is kept and compiled."""
    tables = [batch.rows for batch in inputs.values() if isinstance(batch.rows, pa.Table)]
    few = rows_at_hand(inputs) <= _COMPILED_ROWS
    return few and sum(rows.nbytes for rows in tables) <= _COMPILED_BYTES


def expected_rows(before: Commit | None, table: str, run: RangeRequest) -> float:
    """How many rows a table is to get if the range is as the one before."""
    if before is None or not before.ticks:
        return 0
    return before.rows.get(table, 0) / len(before.ticks) * (run.last - run.first + 1)


def empty_tables(
    plan: TickPlan, tables: Tables, inputs: Mapping[str, Batch]
) -> Mapping[str, WrittenRows]:
    """The tables that get no rows, since nothing came that could reach them."""
    there = {name for name, batch in inputs.items() if not batch.is_empty}
    empty = surely_empty(plan, set(plan.graph.sources) - there)
    sinks = plan.graph.sinks
    return {
        spec.name: WrittenRows(spec, 0, spec.arrow_schema.empty_table())
        for spec in (
            *(tables.state[slot.id] for slot in plan.slots if slot.stream.node in empty),
            *(tables.outputs[n] for n, all_ in sinks.items() if all(s.id in empty for s in all_)),
        )
    }


def as_they_came(
    plan: TickPlan, tables: Tables, inputs: Mapping[str, Batch], last: int
) -> Mapping[str, WrittenRows]:
    """What the slots keep that store an input, where its rows are at hand, up to a `last` tick."""
    sources = {node.id: name for name, node in plan.graph.sources.items()}
    found = {}
    for slot in plan.slots:
        if slot.ordered or slot.stream.node not in sources:
            continue
        spec = tables.state[slot.id]
        batch = inputs.get(sources[slot.stream.node])
        if batch is None:
            found[spec.name] = WrittenRows(spec, 0, spec.arrow_schema.empty_table())
        elif isinstance(batch.rows, pa.Table):
            rows = batch.rows
            if slot.form is Form.VALUES:
                rows = rows.filter(pc.field(TICK) == last)
            rows = rows.select([TICK, ITEM]).cast(spec.arrow_schema)
            found[spec.name] = WrittenRows(spec, rows.num_rows, rows)
    return found


def surely_empty(plan: TickPlan, inputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes that give nothing where these inputs are empty: a day without new airlines needs no
    job that finds out how many there are.

    Those with an input that is not, with a past, or in a cycle are left out: so are operators of
    which one empty input would do, since others may fail on what the other one has.
    """
    graph = plan.graph
    found = {graph.sources[name].id for name in inputs}
    for component in plan.components:
        for name in component.nodes if component.how == "once" else ():
            node = graph[name]
            if (
                node.inputs
                and node.spec.zero
                and node.spec.state is State.NONE
                and all(stream.node in found for stream in node.inputs)
            ):
                found.add(name)
    return frozenset(found)
