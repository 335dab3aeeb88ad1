"""What the definitions say of rows in Arrow, tick by tick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks.judged import Row, Ticks
from hydro_core.compile import CompiledProgram
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import ItemType
from hydro_core.types.item import Row as RowType


def answers(of: CompiledProgram, ticks: Ticks) -> Iterator[list[Row]]:
    """The rows of a program's one output at each tick."""
    given = (_given(of, ticks, tick) for tick in range(ticks.count))
    for outputs in run_ticks(of.typed, of.strata, given):
        [rows] = outputs.values()
        yield [tuple(row.values()) for row in rows]


def _given(of: CompiledProgram, ticks: Ticks, tick: int) -> TickInput:
    items = {name: of.typed.inputs[name].item for name in of.graph.sources}
    return TickInput({n: _items(ticks.rows(n, tick, tick), item) for n, item in items.items()})


def _items(rows: pa.Table, item: ItemType) -> list[Any]:
    assert isinstance(item, RowType)
    return from_arrow(rows.select(item.names).combine_chunks().to_struct_array(), item)
