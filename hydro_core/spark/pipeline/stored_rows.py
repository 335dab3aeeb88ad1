"""The stored rows that a range of few rows reads, at hand: those that are there at its time, those
that it meets, and results that are read whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.catalog.classes import (
    Linear,
    OpClass,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    RunningResult,
    StreamEnd,
)
from hydro_core.catalog.forms import Form
from hydro_core.files.parquet import parquet_format
from hydro_core.ir.graph import behind
from hydro_core.plan.stored_rows import ExtremeRows
from hydro_core.plan.streams import in_one_form
from hydro_core.plan.tick_plan import StateSlot, TickPlan, TimeBound
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.pipeline.prepared import RangeRequest
from hydro_core.spark.store.cancelled import without_cancelled
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups.agreeing import MatchedRows
from hydro_core.spark.store.lookups.extremes import (
    LeadingRows,
    came,
    leading,
    places_in_order,
)
from hydro_core.spark.store.lookups.large_files import stored_leaf
from hydro_core.spark.store.lookups.lookup_files import LookupFiles
from hydro_core.spark.store.recent_rows import LiveRows
from hydro_core.spark.store.row_cache import ROW_CACHE
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed
from hydro_core.spark.store.store import Store
from hydro_core.spark.store.values import Column, in_order, leaf_of
from hydro_core.ticks.untimed import refuse_untimed, timed_nodes
from hydro_core.types.item import ItemType


def leading_rows(
    table: StoredTable,
    lookup_files: LookupFiles,
    wanted: tuple[ExtremeRows, ItemType],
    count: int,
    last: int,
) -> LeadingRows | None:
    """The first rows of a log that came up to a `last` tick: so many of each large file, and of all
    others together. None where too much would be gone through, or something cannot be read: whoever
    reads all of it says what.
    """
    rows, item = wanted
    schema = table.spec.arrow_schema
    files = [file for file in table.files() if file.rows != 0 and file.may_hold(0, last)]
    leaf = stored_leaf(schema, item, rows.leaf)
    ends = (0, count) if rows.greatest else (count, 0)
    looked_up, rest = lookup_files.leading(files, schema, leaf, ends)
    parts = [
        LeadingRows(came(part, 0, last), _last_value(part, wanted)[: int(more)])
        for part, more in looked_up
    ]
    try:
        paths = [str(file.path) for file in rest]
        stored = ds.dataset(paths, schema=schema, format=parquet_format())
        held = ROW_CACHE.rows(Path(str(table.path)).joinpath, stored, schema.names)
        if held is stored and paths:
            return None
        parts.append(leading(came(held.to_table(), 0, last), item, rows, count))
    except (pa.ArrowInvalid, OSError):
        return None
    items = pa.concat_arrays([part.items for part in parts])
    return LeadingRows(items, pa.concat_arrays([part.beyond for part in parts]))


def _last_value(part: pa.Table, wanted: tuple[ExtremeRows, ItemType]) -> Column:
    """The value that comes last of those of some rows, in their order; of none nothing."""
    rows, item = wanted
    values = in_order(leaf_of(part[ITEM].combine_chunks(), item, rows.leaf))
    order = places_in_order(values)
    return values.take(pa.array(order[:1] if rows.greatest else order[-1:]))


SEARCHED_ROWS = 10_000_000
"""State of which more rows are gone through is left to Spark: to search them here would take longer
than a job does."""


@dataclass(frozen=True, slots=True)
class SearchedTables:
    """The state of a pipeline for a range that starts at a tick."""

    store: Store
    specs: Mapping[str, TableSpec]
    first: int

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""
        return slot.ticks_read(self.first)

    def met(self, slot: StateSlot, met: MatchedRows) -> pa.Table | None:
        """The stored rows of a slot that are met; None where too many would be looked at."""
        name = self.specs[slot.id].name
        many = self.store.lookup_files.gone_through(self.store.tables[name])
        return self.store.met(name, met) if many <= SEARCHED_ROWS else None

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> LeadingRows | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""
        table = self.store.tables[self.specs[slot.id].name]
        files = self.store.lookup_files
        return leading_rows(table, files, (rows, slot.item), count, self.first - 1)


def alive_rows(
    plan: TickPlan,
    store: Store,
    tables: Mapping[str, TableSpec],
    run: RangeRequest,
    asked: tuple[Collection[str], int],
) -> Mapping[str, pa.Table]:
    """The rows of such slots by the slots' ids, of those that have few.

    Rows that have left are not read, nor those that stay where nobody looks at them.

    `asked` are the outputs of which what they add or change is all that is looked at, and how many
    rows are few.

    Raises:
        DataError: a tick has no times, and rows leave by them (code `input`).
    """
    nodes = timed_nodes(plan.graph)
    for tick in range(run.first, run.last + 1) if nodes else ():
        if None in run.times.get(tick, (None,)):
            raise refuse_untimed(nodes[0], tick)
    slots = [(slot, slot.bound) for slot in plan.slots if slot.bound and not slot.ordered]
    start, _ = run.times.get(run.first, (None, None))
    _, end = run.times.get(run.last, (None, None))
    if not slots or start is None or end is None:
        return {}
    added, most = asked
    alone = in_one_form(plan, added)
    found = {}
    for slot, bound in slots:
        # What leaves first is what leaves the shortest of the windows over these rows.
        ends = [TimeBound.of(plan.graph[reader]) for reader in slot.readers]
        leaves = [one.since(end) for one in ends if one is not None]
        upto = max(leaves) if alone.issuperset(slot.readers) else None
        alive = LiveRows(bound, bound.since(start), upto)
        rows = store.few_alive(tables[slot.id].name, run.first - 1, alive, most)
        if rows is not None:
            found[slot.id] = rows
    return found


KEPT_ROWS = 2_000
"""Changes of which no more are found are handed to Spark as they are: to sum them up is no gain."""
SUMMED_ROWS = 1_000_000
"""Up to so many changes are summed up here, so that each item is one row."""


def as_it_is(rows: pa.Table, slot: StateSlot, spec: TableSpec, first: int, few: int) -> pa.Table:
    """Stored rows of a slot for the range that starts at `first`, many changes as their sum."""
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
            and all(isinstance(node.cls, RunningResult) and node.id not in back for node in readers)
        ):
            yield slot


def _is_over_time(cls: OpClass) -> bool:
    """Whether other ticks decide what an operator gives."""
    match cls:
        case OverTime():
            return True
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition():
            return False
        case _:
            assert_never(cls)
