"""What has landed for a tick: the rows of each input's landing table that its window cuts out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from assets.spec import FlowAsset, Landing
from hydro_core.errors import DataError, Diagnostic
from hydro_core.types.item import ItemType, Row, Tuple
from orchestration.ticks import Window

if TYPE_CHECKING:
    from hydro_core.spark.batches import Batch


def batches_of(
    flow: FlowAsset, landing: Path, window: Window, items: Mapping[str, ItemType]
) -> Mapping[str, Batch]:
    """The batch of every input of `flow` in the tick of `window`.

    Raises:
        DataError: a landing table is missing, or its rows do not fit (code `input`).
    """
    return {
        name: _batch(name, flow.inputs[name], landing, window, item) for name, item in items.items()
    }


def _batch(name: str, where: Landing, landing: Path, window: Window, item: ItemType) -> Batch:
    from hydro_core.spark.batches import batch_of
    from hydro_core.spark.ledger import InputRead

    table = _open(name, landing / where.path)
    data = table.to_pyarrow_dataset()
    columns = _columns(item, data.schema)
    if where.column is None:
        rows = data.to_table(columns=columns)
        rows = rows if window.tick == 0 else rows.slice(0, 0)
    elif where.column not in data.schema.names:
        raise _wrong(name, f"its table {where.path} has no column `{where.column}`")
    else:
        kind = data.schema.field(where.column).type
        rows = data.to_table(columns=columns, filter=_within(where.column, kind, window))
    read = InputRead(name, rows.num_rows, where.path, table.version())
    return batch_of(name, rows, item, window.tick, read)


def _open(name: str, path: Path) -> DeltaTable:
    if not path.exists():
        raise _wrong(name, f"its landing table {path} is missing")
    try:
        return DeltaTable(path)
    except DeltaError as error:
        raise _wrong(name, f"its landing table cannot be read: {error}") from error


def _columns(item: ItemType, schema: pa.Schema) -> list[str]:
    match item:
        case Row(fields):
            wanted = [field.name for field in fields]
        case Tuple(fields):
            wanted = [f"_{i + 1}" for i in range(len(fields))]
        case _:
            wanted = ["item"]
    return [column for column in wanted if column in schema.names]


def _within(column: str, kind: pa.DataType, window: Window) -> pc.Expression:
    if pa.types.is_integer(kind):
        return pc.field(column) == window.tick
    start, end = (_scalar(moment, kind) for moment in (window.start, window.end))
    return (pc.field(column) >= start) & (pc.field(column) < end)


def _scalar(moment: datetime, kind: pa.DataType) -> pa.Scalar[Any]:
    if pa.types.is_date(kind):
        return pa.scalar(moment.date(), kind)
    if getattr(kind, "tz", None) is None:
        moment = moment.replace(tzinfo=None)
    return pa.scalar(moment, kind)


def _wrong(name: str, why: str) -> DataError:
    return DataError(
        Diagnostic(
            code="input",
            message=f"the input `{name}` cannot be read: {why}",
            operator="source",
            help="land the table first, or correct `inputs` of the flow's asset",
        )
    )
