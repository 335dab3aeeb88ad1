"""Batches from landing tables: the rows whose column says that they are of a tick.

A landing table is a Delta table, or Parquet files; its column holds the number of the tick, or a
date or timestamp that lies in the tick's window. A table without such a column arrives whole at
tick 0. Of a Delta table the version is fixed when a range is first read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.errors import DataError, Diagnostic
from hydro_core.spark.batches import Batch, batch_of
from hydro_core.spark.ledger import InputRead
from hydro_core.spark.store_schema import flattened
from hydro_core.ticks.files import is_delta
from hydro_core.types.item import ItemType

Window = tuple[datetime, datetime]

_TICK = "__tick"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the rows of an input land, and which column tells their tick."""

    path: Path
    column: str | None = None

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table."""
        return is_delta(str(self.path))


class InputBatches:
    """The batches of a pipeline's inputs, range by range.

    Args:
        landings: where each input lands.
        items: the items' types, by the inputs' names.
        spark: gives the session, when rows are too many to be collected.
        small: up to this many rows a batch is read without Spark.
    """

    def __init__(
        self,
        landings: Mapping[str, Landing],
        items: Mapping[str, ItemType],
        spark: Callable[[], SparkSession],
        small: int = 100_000,
    ) -> None:
        self._landings, self._items, self._spark, self._small = landings, items, spark, small

    def read(
        self,
        first: int,
        last: int,
        times: Mapping[int, Window] | None = None,
        versions: Mapping[str, int] | None = None,
    ) -> Mapping[str, Batch]:
        """The batches of a range; `versions` are those of an earlier reading that is repeated.

        Raises:
            DataError: a table is not there or has other columns (code `input`).
        """
        windows = times or {}
        return {
            name: self._batch(name, (first, last), windows, (versions or {}).get(name))
            for name in self._landings
        }

    def _batch(
        self, name: str, ticks: tuple[int, int], times: Mapping[int, Window], version: int | None
    ) -> Batch:
        landing, item = self._landings[name], self._items[name]
        if not landing.path.exists():
            raise _wrong(name, f"{landing.path} is not there", "land its data first")
        if landing.column is None and ticks[0] > 0:
            return batch_of(name, _empty(item), item, 0, InputRead(name, 0, str(landing.path)))
        data, version = _dataset(name, landing, version)
        axis = _axis(name, landing, data.schema, ticks, times)
        where = None if axis is None else axis.within
        count = data.count_rows(filter=where)
        read = InputRead(name, count, str(landing.path), version)
        if count > self._small:
            frame = _frame(self._spark(), landing, version)
            if axis is not None:
                frame = axis.numbered(frame)
            return batch_of(name, frame, item, 0 if axis is None else _TICK, read)
        columns = [c for c, _ in flattened(item) if c in data.schema.names]
        if axis is not None:
            columns.append(axis.column)
        table = data.to_table(columns=list(dict.fromkeys(columns)) or None, filter=where)
        return batch_of(name, table, item, 0 if axis is None else axis.numbers(table), read)


def latest(landing: Landing, zone: str = "UTC") -> int | datetime | None:
    """The last tick or moment that a row of a landing table is of; None where it has no rows."""
    if landing.column is None or not landing.path.exists():
        return None
    data, _ = _dataset(landing.path.name, landing, None)
    if landing.column not in data.schema.names:
        raise _without(landing.path.name, landing, data.schema)
    found = [pc.max(batch[landing.column]).as_py() for batch in data.to_batches([landing.column])]
    last = max((value for value in found if value is not None), default=None)
    if isinstance(last, date) and not isinstance(last, datetime):
        return datetime.combine(last, time.min, ZoneInfo(zone))
    return last


class _Axis:
    """From the values of a tick column to ticks, for a range."""

    def __init__(
        self,
        column: str,
        kind: pa.DataType,
        ticks: tuple[int, int],
        starts: list[datetime] | None = None,
    ) -> None:
        self.column = column
        self._first, self._last = ticks
        self._starts = starts
        field = ds.field(column)
        if starts is None:
            self.within = (field >= self._first) & (field <= self._last)
        else:
            # Bounds of the column's own type let the file's statistics tell what need not be read.
            low, high = (_bound(moment, kind) for moment in (starts[0], starts[-1]))
            self.within = (field >= low) & (field < high)

    def numbers(self, table: pa.Table) -> pa.Array[Any]:
        """The ticks of the rows of a table."""
        values: Any = table[self.column].combine_chunks()
        if self._starts is None:
            numbers: pa.Array[Any] = values.cast(pa.int64())
            return numbers
        moments = values.cast(_TIME).cast(pa.int64()).to_numpy(zero_copy_only=False)
        starts = np.array([_micros(start) for start in self._starts])
        found = np.searchsorted(starts, moments, side="right") - 1 + self._first
        return pa.array(found.tolist(), pa.int64())

    def numbered(self, frame: DataFrame) -> DataFrame:
        """The rows of the range, with their ticks in a column of their own."""
        quoted = self.column.replace("`", "``")
        value = F.col(f"`{quoted}`")
        if self._starts is None:
            rows = frame.where(value.between(self._first, self._last))
            return rows.withColumn(_TICK, value.cast("long"))
        moment = F.unix_micros(value.cast("timestamp"))
        starts = [_micros(start) for start in self._starts]
        rows = frame.where((moment >= starts[0]) & (moment < starts[-1]))
        return rows.withColumn(_TICK, _position(moment, starts) + F.lit(self._first))


_TIME = pa.timestamp("us", tz="UTC")


def _axis(
    name: str,
    landing: Landing,
    schema: pa.Schema,
    ticks: tuple[int, int],
    times: Mapping[int, Window],
) -> _Axis | None:
    if landing.column is None:
        return None
    if landing.column not in schema.names:
        raise _without(name, landing, schema)
    kind = schema.field(landing.column).type
    if pa.types.is_integer(kind):
        return _Axis(landing.column, kind, ticks)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise _wrong(
            name,
            f"the column `{landing.column}` of {landing.path} is {kind}, which tells no tick",
            "use a column with the tick's number, a date or a timestamp",
        )
    missing = [t for t in range(ticks[0], ticks[1] + 1) if t not in times]
    if missing:
        raise _wrong(
            name,
            f"tick {missing[0]} has no window, so a {kind} cannot tell it",
            "give the start and end of each tick",
        )
    windows = [times[t] for t in range(ticks[0], ticks[1] + 1)]
    for (_, end), (start, _) in pairwise(windows):
        if end != start:
            raise ValueError("the windows of a range follow each other without a gap")
    starts = [*(start for start, _ in windows), windows[-1][1]]
    return _Axis(landing.column, kind, ticks, starts)


def _without(name: str, landing: Landing, schema: pa.Schema) -> DataError:
    return _wrong(
        name,
        f"{landing.path} has no column `{landing.column}`",
        f"its columns are {', '.join(f'`{c}`' for c in schema.names)}",
    )


def _position(moment: Column, starts: list[int]) -> Column:
    """The number of the window that holds the moment."""
    steps = {later - start for start, later in pairwise(starts)}
    if len(steps) == 1:
        step = steps.pop()
        since = moment - F.lit(starts[0])
        # A whole number of steps, so the division is exact.
        return ((since - since % F.lit(step)) / F.lit(step)).cast("long")
    passed = F.filter(F.array(*map(F.lit, starts)), lambda start: start <= moment)
    return (F.size(passed) - 1).cast("long")


def _bound(moment: datetime, kind: pa.DataType) -> Any:
    """The moment as a value of a tick column; a date begins at its midnight in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    if pa.types.is_date(kind):
        is_midnight = moment.time() == time.min
        day = moment.date() if is_midnight else moment.date() + timedelta(days=1)
        return pa.scalar(day, pa.date32()).cast(kind)
    return pa.scalar(moment, pa.timestamp("us")).cast(kind)


def _dataset(name: str, landing: Landing, version: int | None) -> tuple[ds.Dataset, int | None]:
    if not landing.is_delta:
        return ds.dataset(landing.path, format="parquet"), None
    try:
        table = DeltaTable(landing.path, version=version)
        rows = table.to_pyarrow_dataset()
    except DeltaError as error:
        first_line = str(error).strip().partition("\n")[0]
        at = "" if version is None else f" at version {version}"
        raise _wrong(
            name, f"{landing.path} cannot be read{at}: {first_line}", "land its data again"
        ) from error
    if landing.column is not None:
        _refuse_nulls(name, landing, table)
    return rows, table.version()


def _refuse_nulls(name: str, landing: Landing, table: DeltaTable) -> None:
    """Rows without a tick would never arrive; the table's statistics tell of them."""
    counts = f"null_count.{landing.column}"
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    nulls = sum(action.get(counts) or 0 for action in actions)
    if nulls:
        raise _wrong(
            name,
            f"{nulls} of its rows in {landing.path} have a null in `{landing.column}`",
            "give every row its tick when it lands",
        )


def _frame(spark: SparkSession, landing: Landing, version: int | None) -> DataFrame:
    if version is None:
        return spark.read.parquet(str(landing.path))
    reader = spark.read.format("delta").option("versionAsOf", version)
    return reader.load(str(landing.path))


def _empty(item: ItemType) -> pa.Table:
    return pa.table({column: pa.array([], pa.null()) for column, _ in flattened(item)})


def _micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def _wrong(name: str, message: str, cure: str) -> DataError:
    return DataError(
        Diagnostic(
            code="input",
            message=f"the input `{name}` cannot be read: {message}",
            operator="source",
            help=cure,
        )
    )
