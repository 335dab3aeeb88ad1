"""The stored rows that are there, or leave, in a range of ticks, where their time says when."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from hydro_core.plan.changes import in_one_form
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.spark.pipeline.prepared import RangeRequest
from hydro_core.spark.store.recent_rows import Alive
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.store import Store
from hydro_core.ticks.untimed import refuse_untimed, timed_nodes


def alive_rows(
    plan: TickPlan,
    store: Store,
    tables: Mapping[str, TableSpec],
    run: RangeRequest,
    asked: tuple[Collection[str], int],
) -> Mapping[str, pa.Table]:
    """The rows of such slots by the slots' ids, of those that have few.

    Rows that have left are not read, nor those that stay where nobody looks at them.

    Args:
        plan: what runs.
        store: the tables.
        tables: those of the slots, by the slots' ids.
        run: the range.
        asked: the outputs of which what they add or change is all that is looked at, and how many
            rows are few.

    Raises:
        DataError: a tick has no times, and rows leave by them (code `input`).
    """
    _refuse_untimed(plan, run)
    slots = [(slot, slot.bound) for slot in plan.slots if slot.bound and not slot.ordered]
    start, _ = run.times.get(run.first, (None, None))
    _, end = run.times.get(run.last, (None, None))
    if not slots or start is None or end is None:
        return {}
    added, most = asked
    alone = in_one_form(plan, added)
    found = {}
    for slot, bound in slots:
        upto = bound.since(end) if alone.issuperset(slot.readers) else None
        alive = Alive(bound, bound.since(start), upto)
        rows = store.few_alive(tables[slot.id].name, run.first - 1, alive, most)
        if rows is not None:
            found[slot.id] = rows
    return found


def _refuse_untimed(plan: TickPlan, run: RangeRequest) -> None:
    nodes = timed_nodes(plan.graph)
    for tick in range(run.first, run.last + 1) if nodes else ():
        if None in run.times.get(tick, (None,)):
            raise refuse_untimed(nodes[0], tick)
