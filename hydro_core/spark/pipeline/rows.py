"""The rows of an output or a state of a pipeline as of a tick, as values for people and JSON.

The ledger says which files count, whatever the tables' own logs have beyond it. No JVM is started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError
from hydro_core.lang.source import did_you_mean
from hydro_core.spark.pipeline.copies import Measure, refuse_damaged
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.schema import TableSpec, flattened, stored
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.json import to_json
from hydro_core.types.values import RowItem, Struct

STATE = "state/"
_PIECE = 10_000
"""Of so many rows the values are there at once."""


@dataclass(frozen=True, slots=True)
class RowsAsOf:
    """Rows as of a tick, as many of them as were asked for; values are made as they are gone
    through, a piece at a time.
    """

    columns: tuple[str, ...]
    total: int
    """How many there are in all."""
    _table: pa.Table
    _spec: TableSpec

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows, by their columns."""
        for first in range(0, len(self), _PIECE):
            piece = self._table.slice(first, _PIECE)
            values = [
                [to_json(v, item) for v in from_arrow(piece[n].combine_chunks(), stored(item))]
                for n, item in self._spec.items
            ]
            if _holds_rows(self._spec):
                yield from (tuple(row.values()) for row in values[0])
            else:
                yield from zip(*values, strict=True)

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as objects."""
        return (dict(zip(self.columns, row, strict=True)) for row in self)


def rows_at(
    pipeline: Pipeline,
    name: str,
    tick: int,
    limit: int | None = None,
    measure: Measure | None = None,
) -> RowsAsOf:
    """The rows of an output or a state as of a committed tick.

    Args:
        pipeline: whose tables are read.
        name: of an output, or of a state; `state/NAME` where an output has its name, too.
        tick: a committed one.
        limit: how many rows to give at most.
        measure: how the sums came about that the ledger has of state; see `verify`.

    Raises:
        DataError: there is no such name (code `name`), the tick is not committed, the table has
            not what was written, or what the state held after it is not kept (`state`).
    """
    spec = _spec(pipeline, name)
    commit = pipeline.ledger.refresh()
    if commit is None or not 0 <= tick <= commit.last:
        raise state_error(f"tick {tick} is not committed", "see `hydrotick status`")
    pipeline.refuse_another_program(commit)
    refuse_damaged(pipeline.directory, spec.name, measure)
    if spec.role == "output":
        pieces = pipeline.output_pieces(spec.of, tick)
    else:
        pipeline.store.check(commit)
        pieces = iter([_of_state(pipeline, spec, tick, commit)])
    shown, total = _first_rows(pieces, spec, limit)
    names = tuple(name for name, _ in spec.items)
    if _holds_rows(spec) and isinstance(spec.item, Row):
        names = spec.item.names
    return RowsAsOf(names, total, shown, spec)


def _first_rows(
    pieces: Iterator[pa.Table], spec: TableSpec, limit: int | None
) -> tuple[pa.Table, int]:
    """The first rows in the order that is shown, and how many there are: with a limit, as many are
    held as it says and a piece has.
    """
    if limit is None:
        rows = _ordered(pa.concat_tables(pieces), spec)
        return rows, rows.num_rows
    shown = next(pieces)
    total = shown.num_rows
    for piece in pieces:
        total += piece.num_rows
        shown = _ordered(pa.concat_tables([shown, piece]), spec).slice(0, limit)
    return _ordered(shown, spec).slice(0, limit), total


def _ordered(rows: pa.Table, spec: TableSpec) -> pa.Table:
    if spec.place is not None:
        return rows.sort_by([(spec.tick, "ascending"), (spec.place, "ascending")])
    return sorted_rows(rows, [n for n, _ in spec.items]) if spec.role == "output" else rows


def output_items(table: pa.Table, spec: TableSpec) -> list[Any]:
    """The items of rows of an output, in their order where it has one."""
    if spec.place is not None:
        table = table.sort_by([(spec.tick, "ascending"), (spec.place, "ascending")])
    return items_of_columns(table, spec.item)


def items_of_columns(table: pa.Table, item: ItemType) -> list[Any]:
    """The items whose columns a table has, as outputs have them."""
    columns = [from_arrow(table[name].combine_chunks(), stored(of)) for name, of in flattened(item)]
    match item:
        case Row():
            rows = zip(*columns, strict=True)
            return [RowItem(zip(item.names, row, strict=True)) for row in rows]
        case Tuple():
            return [Struct(row) for row in zip(*columns, strict=True)]
        case _:
            return columns[0]


def sorted_rows(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows by columns from left to right, nulls first: the same whoever wrote them."""
    columns = []
    for column in map(table.column, by):
        if not pa.types.is_nested(column.type):
            # Arrow sorts nulls last, unless its newest versions are told otherwise.
            columns += [column.is_valid().cast(pa.int8()), column]
    if not columns:
        return table
    names = [str(number) for number in range(len(columns))]
    keys = pa.Table.from_arrays(columns, names=names)
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]))


def _spec(pipeline: Pipeline, name: str) -> TableSpec:
    states, outputs = pipeline.state_tables, pipeline.output_tables
    if name in outputs:
        return outputs[name]
    state = name.removeprefix(STATE)
    if state in states:
        return states[state]
    near = did_you_mean(name, [*outputs, *states])
    there = f"the outputs are {_listed(outputs)}; the states are {_listed(states)}"
    raise DataError.of(
        "name",
        f"there is neither an output nor a state `{name}`",
        help=f"{near} {there}" if near else there,
    )


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _of_state(pipeline: Pipeline, spec: TableSpec, tick: int, now: Commit) -> pa.Table:
    store = pipeline.store
    if spec.is_log:
        if store.tables[spec.name].summed_to() > tick:
            raise _not_kept(spec, "its changes up to a later tick were summed up")
        return store.rows(spec.name, tick, tick)
    slot = next(slot for slot in pipeline.plan.slots if slot.id == spec.of)
    if spec.bound is not None and store.tables[spec.name].summed_to() > tick:
        raise _not_kept(spec, "rows that had left by a later tick were taken out")
    if slot.form is Form.VALUES:
        if tick != now.last:
            raise _not_kept(spec, "it holds what the last committed tick left")
        return store.arrow(spec.name, tick, tick)
    first = 0 if slot.keep is None else max(0, tick - slot.keep + 1)
    return store.arrow(spec.name, first, tick)


def _not_kept(spec: TableSpec, why: str) -> DataError:
    return state_error(
        f"what the state `{spec.of}` held after that tick is not kept: {why}",
        "ask for a later tick, or without `--tick` for the last one",
    )


def _holds_rows(spec: TableSpec) -> bool:
    """Whether the rows of a state are in one column; they are shown as those of an output."""
    return spec.role == "state" and isinstance(spec.item, Row)
