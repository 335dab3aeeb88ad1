"""Stored results that a tick of few rows reads whole: handed over as what their changes come to.

A log of a result has each change since its files were joined, and behind ranges of many ticks many
of each key. Summed up here, each row is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import pyarrow as pa

from hydro_core.catalog.classes import (
    Ends,
    Linear,
    OpClass,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    Running,
)
from hydro_core.catalog.forms import Form
from hydro_core.ir.walk import behind
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.store.cancelled import without_cancelled
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed

KEPT_ROWS = 2_000
"""Changes of which no more are found are handed to Spark as they are: to sum them up is no gain."""
SUMMED_ROWS = 1_000_000
"""Up to so many changes are summed up here, so that each item is one row."""


def as_it_is(rows: pa.Table, slot: StateSlot, spec: TableSpec, first: int, few: int) -> pa.Table:
    """Stored rows of a slot for the range that starts at `first`, many changes as their sum.

    Args:
        rows: the rows, as they are stored.
        slot: whose they are.
        spec: its table.
        first: the first tick of the range.
        few: so many rows are few.
    """
    if slot.form is Form.CHANGES and min(few, KEPT_ROWS) < rows.num_rows <= SUMMED_ROWS:
        return summed(without_cancelled(rows), spec, slot.ticks_read(first)[1])
    return rows


def whole_results(plan: TickPlan) -> Iterator[StateSlot]:
    """The slots of which a tick may be handed what is there, whenever that came.

    Nothing looks further back than the tick before at what they are read for.
    """
    over_time = [node for node in plan.graph if _is_over_time(node.cls)]
    back = behind(plan.graph, [stream.node for node in over_time for stream in node.inputs])
    for slot in plan.slots:
        readers = [plan.graph[reader] for reader in slot.readers]
        if (
            slot.form is Form.CHANGES
            and not slot.ordered
            and all(isinstance(node.cls, Running) and node.id not in back for node in readers)
        ):
            yield slot


def _is_over_time(cls: OpClass) -> bool:
    """Whether other ticks decide what an operator gives."""
    match cls:
        case OverTime():
            return True
        case Ends() | Linear() | Product() | PerKey() | PerPosition():
            return False
        case _:
            assert_never(cls)
