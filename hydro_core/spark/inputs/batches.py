"""The batch of a tick: rows from the caller or from a landing, as items with their ticks.

Small batches are Arrow tables, which are counted for the ledger on the way; large ones stay with
Spark. The counts are compared with those of the ledger: a row that is lost or doubled unseen is the
worst that a pipeline can do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.catalog.itemwise import SOURCE
from hydro_core.errors import DataError
from hydro_core.files.inputs import fits_whole
from hydro_core.files.row_batch import ArrowRows, misfit, plain_table
from hydro_core.files.rows import column_of
from hydro_core.plan.planner import Leaf
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.leaf import table_frame, together
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.frames.types import UnsupportedType, item_type, spark_type
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.spark.store.ledger.records import Counts, InputRead
from hydro_core.spark.store.schema import flattened
from hydro_core.spark.store.store import Store
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import TickRange, count_ticks, micros, moment_of
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import TIMESTAMP, Array, ItemType, Row, Tuple, Unknown, required_columns
from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of one input in a range of ticks: columns `item` and `t`, as Arrow or in Spark."""

    rows: pa.Table | DataFrame
    item: ItemType
    read: InputRead

    def frame(self, spark: SparkSession) -> DataFrame:
        """The batch as a DataFrame (item, t)."""
        if isinstance(self.rows, pa.Table):
            return together(table_frame(spark, self.rows, relation_schema(self.item)))
        return self.rows

    def within(self, first: int, last: int) -> Batch:
        """The items of some of the ticks."""
        known = self.read.counts
        counts = None if known is None else {t: n for t, n in known.items() if first <= t <= last}
        total = None if counts is None else sum(counts.values())
        read = replace(self.read, rows=total, counts=counts)
        if isinstance(self.rows, pa.Table):
            rows = self.rows.filter((pc.field(TICK) >= first) & (pc.field(TICK) <= last))
            return replace(self, rows=rows, read=replace(read, rows=rows.num_rows))
        return replace(self, rows=self.rows.where(F.col(TICK).between(first, last)), read=read)

    def with_rows(self, rows: pa.Table | DataFrame) -> Batch:
        """The same with more rows (item, t), after its own; what is kept of the reading stays."""
        if isinstance(self.rows, pa.Table) and isinstance(rows, pa.Table):
            return replace(self, rows=pa.concat_tables([self.rows, rows.cast(self.rows.schema)]))
        frames = [part for part in (self.rows, rows) if isinstance(part, DataFrame)]
        session = frames[0].sparkSession
        own, more = (replace(self, rows=part).frame(session) for part in (self.rows, rows))
        return replace(self, rows=own.unionByName(more))

    @property
    def is_empty(self) -> bool:
        """True if it surely has no rows."""
        return self.rows_at_hand == 0

    @property
    def rows_at_hand(self) -> int | None:
        """The number of rows, if they are at hand."""
        return self.rows.num_rows if isinstance(self.rows, pa.Table) else None


def relation_schema(item: ItemType) -> spark_types.StructType:
    return spark_types.StructType(
        [
            spark_types.StructField(ITEM, spark_type(item)),
            spark_types.StructField(TICK, spark_types.LongType()),
        ]
    )


def arrow_schema(item: ItemType) -> pa.Schema:
    return pa.schema([(ITEM, arrow_type(item)), (TICK, pa.int64())])


def batch_of(
    name: str,
    data: pa.Table | DataFrame,
    item: ItemType,
    tick: int | str | pa.Array[Any],
    read: InputRead | None = None,
) -> Batch:
    """The batch that the columns of `data` make: those that the item's type declares, no others.

    Args:
        name: the input's name, for errors.
        data: its rows; a scalar stands in the column `item`, or in the only one.
        item: the declared type of its items.
        tick: the tick of all rows, the ticks of Arrow rows, or the column that holds them.
        read: what the ledger is to keep of the reading.

    Raises:
        DataError: a column is missing or does not fit (code `input`).
    """
    if isinstance(data, pa.Table):
        rows = _arrow_rows(name, data, item, tick)
        return Batch(rows, item, read or InputRead(name, data.num_rows))
    return Batch(_spark_rows(name, data, item, tick), item, read or InputRead(name))


def _arrow_rows(
    name: str, data: pa.Table, item: ItemType, tick: int | str | pa.Array[Any]
) -> pa.Table:
    wanted: Any = arrow_type(item)
    found = _columns(name, item, data.column_names)
    try:
        rows = ArrowRows(plain_table(data.select(found)), found)
        parts = []
        for column, (field, of) in zip(found, flattened(item), strict=True):
            misfits: dict[int, str] = {}
            required = field in required_columns(item)
            parts.append(column_of(rows, column, of, misfits.setdefault, required=required))
            if misfits:
                row, why = next(iter(misfits.items()))
                raise misfit(why, row, column)
    except ValueProblem as problem:
        raise _unfit(name, item, str(problem)) from problem
    items: Any = parts[0] if parts else None
    if isinstance(item, Row | Tuple):
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        nothing = pa.array([{}] * data.num_rows, wanted)
        items = pa.StructArray.from_arrays(parts, fields=fields) if fields else nothing
    return pa.table({ITEM: items, TICK: _ticks(data, tick)})


def _ticks(data: pa.Table, tick: int | str | pa.Array[Any]) -> pa.Array[Any]:
    if isinstance(tick, int):
        return pa.repeat(pa.scalar(tick, pa.int64()), data.num_rows)
    if isinstance(tick, str):
        column: pa.Array[Any] = data[tick].combine_chunks().cast(pa.int64())
        return column
    return tick


def _spark_rows(
    name: str, data: DataFrame, item: ItemType, tick: int | str | pa.Array[Any]
) -> DataFrame:
    found = _columns(name, item, data.columns)
    schema = data.schema
    columns = []
    for column, (field, wanted) in zip(found, flattened(item), strict=True):
        there = schema[column].dataType
        try:
            fits = _fits(item_type(there), wanted)
        except UnsupportedType:
            fits = False
        if not fits:
            raise _unfit(name, item, f"its column `{column}` is {there.simpleString()}")
        columns.append(F.col(quoted(column)).cast(spark_type(wanted)).alias(field))
    items = F.struct(*columns) if isinstance(item, Row | Tuple) else columns[0]
    if not isinstance(tick, int | str):
        raise TypeError("the ticks of a DataFrame are one number or one of its columns")
    when = F.col(tick) if isinstance(tick, str) else F.lit(tick)
    return data.select(items.alias(ITEM), when.cast("long").alias(TICK))


def _columns(name: str, item: ItemType, there: list[str]) -> list[str]:
    """The columns of the data that make an item, in the order of its type."""
    wanted = [column for column, _ in flattened(item)]
    if not isinstance(item, Row | Tuple) and ITEM not in there and len(there) == 1:
        return list(there)
    missing = [column for column in wanted if column not in there]
    if not missing:
        return wanted
    listed = ", ".join(f"`{column}`" for column in missing)
    has = ", ".join(f"`{column}`" for column in there)
    raise DataError.of(
        "input",
        f"the input `{name}` has no column {listed}; it has {has or 'none'}",
        operator=SOURCE.name,
        help="declare the columns that the data has, or rename them in the data",
    )


def _fits(of: ItemType, to: ItemType) -> bool:
    """True if a cast makes items of one type of all values of the other, nested ones too."""
    match of, to:
        case Unknown(), _:
            return True
        case Row(fields), Row(others) if of.names == to.names:
            return all(_fits(a.type, b.type) for a, b in zip(fields, others, strict=True))
        case Tuple(parts), Tuple(others) if len(parts) == len(others):
            return all(map(_fits, parts, others))
        case Array(element), Array(other):
            return _fits(element, other)
        case _:
            return fits_whole(of, to)


def _unfit(name: str, item: ItemType, why: str) -> DataError:
    return DataError.of(
        "input",
        f"the input `{name}` does not hold items of type {item}: {why}",
        operator=SOURCE.name,
        help="declare the type that the data has, or convert the data before it lands",
    )


def ticks_within(batches: Mapping[str, Batch], first: int, last: int) -> None:
    """Refuses rows of other ticks than those of the range, where they can be seen.

    Raises:
        DataError: which input, and which tick (code `input`).
    """
    for name, batch in batches.items():
        if not isinstance(batch.rows, pa.Table) or batch.rows.num_rows == 0:
            continue
        found: Any = pc.min_max(batch.rows[TICK]).as_py()
        nulls = batch.rows[TICK].null_count
        if nulls or found["min"] < first or found["max"] > last:
            wrong = "no tick" if nulls else f"ticks from {found['min']} to {found['max']}"
            raise DataError.of(
                "input",
                f"the input `{name}` has rows of {wrong}, not of {first} to {last}",
                operator=SOURCE.name,
                help="give each range the rows of its own ticks",
            )


_SMALL = 100_000


def stored_batches(
    store: Store, leaves: Mapping[str, Leaf], ticks: tuple[int, int], spark: SparkSession
) -> Mapping[str, Batch]:
    """The rows of tables in the ticks of a range, by the names of the inputs they stand for.

    Args:
        store: the tables that serve.
        leaves: the tables, by the inputs' names.
        ticks: the first and the last tick.
        spark: reads the tables that are not small.
    """
    return {name: _batch(store, leaf.table, ticks, spark, name) for name, leaf in leaves.items()}


def _batch(
    store: Store, table: str, ticks: tuple[int, int], spark: SparkSession, name: str
) -> Batch:
    spec = store.tables[table].spec
    files = [file for file in store.tables[table].files() if file.may_hold(*ticks)]
    rows: pa.Table | DataFrame | None
    if sum(file.rows or 0 for file in files) <= min(_SMALL, store.held_rows):
        rows = store.arrow(table, *ticks)
        read = InputRead(name, rows.num_rows, table)
    else:
        rows, read = store.frame(spark, table, *ticks), InputRead(name, None, table)
    if rows is None:
        raise AssertionError(f"{table} has files without rows")
    if spec.role == "output":
        return batch_of(name, rows, spec.item, spec.tick, read)
    return Batch(rows.select([ITEM, TICK]), spec.item, read)


@dataclass(frozen=True, slots=True)
class EventLateness:
    """Rows of a tick whose events lie before its interval, and by how much at most."""

    rows: int
    most: timedelta


def event_lateness(batch: Batch, column: str, ticks: TickRange) -> Mapping[int, EventLateness]:
    """How late the rows of each tick are; ticks without such rows are left out.

    Args:
        batch: the rows.
        column: the one that has the time of the event: a date, or a timestamp.
        ticks: the ticks, which have windows.
    """
    of = batch.item.column(column) if isinstance(batch.item, Row) else None
    calendar = ticks.calendar
    if of is None or calendar is None:
        return {}
    if isinstance(batch.rows, pa.Table):
        return dict(_of_arrow(batch.rows, column, calendar))
    return dict(_of_spark(batch.rows, column, of, ticks.ticks, calendar))


def _of_arrow(
    rows: pa.Table, column: str, calendar: Calendar
) -> Iterator[tuple[int, EventLateness]]:
    items: Any = rows[ITEM].combine_chunks()
    events, tick_of = pc.struct_field(items, column), rows[TICK].combine_chunks()
    there = events.is_valid()
    events, tick_of = events.filter(there), tick_of.filter(there)
    every = TickRange(0, None, calendar)
    # What is of no tick is from before the first one: these have no end.
    early = pa.array(every.numbers(events) < tick_of.to_numpy()) if len(events) else None
    if early is None or not pc.any(early).as_py():
        return
    late = pa.table({TICK: tick_of.filter(early), ITEM: events.filter(early)})
    found = late.group_by(TICK).aggregate([(ITEM, "min"), (ITEM, "count")])
    for row in found.to_pylist():
        first = moment_of(row[f"{ITEM}_min"], calendar.zone)
        most = calendar.start_of(row[TICK]) - first
        yield row[TICK], EventLateness(row[f"{ITEM}_count"], most)


def _of_spark(
    rows: DataFrame, column: str, of: ItemType, ticks: range, calendar: Calendar
) -> Iterator[tuple[int, EventLateness]]:
    event = F.col(f"{ITEM}.{quoted(column)}").cast("timestamp")
    if of != TIMESTAMP and calendar.zone != "UTC":
        event = F.to_utc_timestamp(event, calendar.zone)
    starts = [F.lit(n) for t in ticks for n in (t, micros(calendar.start_of(t)))]
    by = F.create_map(*starts)[F.col(TICK)] - F.unix_micros(event)
    found = rows.select(TICK, by.alias("by")).where("by > 0")
    told = found.groupBy(TICK).agg(F.count(F.lit(1)).alias("n"), F.max("by").alias("by"))
    for row in told.collect():
        yield row[TICK], EventLateness(row["n"], timedelta(microseconds=row["by"]))


_CURE = (
    "nothing of it counts, and everything is as it was; run it again, and report it with the "
    "pipeline's ledger if it stays so"
)
_GONE = (
    "land again what is missing; or let `hydrotick correct` compute the ticks again without it "
    "first, from the one that is named"
)


def refuse_unlisted(seen: LandingView, read: InputRead, ticks: tuple[int, int]) -> None:
    """Refuses what was read of files where their list says otherwise.

    Raises:
        DataError: which tick has other rows (code `state`).
    """
    listing = seen.now.listing
    listed = None if listing is None else listing.rows_at(range(ticks[0], ticks[1] + 1))
    if listed is not None and read.counts is not None:
        _refuse(read.name, {t: listed[t] for t in read.counts}, read.counts, "are listed", _CURE)


def refuse_miscounted(read: InputRead, rows: pa.Table, ticks: tuple[int, int]) -> InputRead:
    """The ledger's record of a batch, with the number of its rows at each tick.

    Raises:
        DataError: the number that was noted is another (code `state`).
    """
    found = count_ticks(rows[TICK].to_numpy())
    there = {tick: found[tick] for tick in range(ticks[0], ticks[1] + 1)}
    if read.counts is not None:
        _refuse(read.name, read.counts, there, "were counted as they were read", _CURE)
    return replace(read, counts=there)


def refuse_unlike(name: str, known: Counts, found: Mapping[int, int | None]) -> None:
    """Refuses ticks that were read as they had been, where they have other rows by now.

    Args:
        name: the input's.
        known: how many rows its ticks have that serve.
        found: how many they have now.

    Raises:
        DataError: which tick has others (code `state`).
    """
    known = {tick: known.get(tick) for tick in found}
    _refuse(name, known, found, "are in what serves", _GONE)


def refuse_gain(name: str, before: int, after: int, gain: int) -> None:
    """Refuses ticks that were computed again, where rows got lost or came twice.

    Raises:
        DataError: how many (code `state`).
    """
    if after - before != gain:
        raise state_error(
            f"input `{name}`: the ticks that were computed again have {after:,} rows after "
            f"{before:,}, and {gain:+,} have come or gone since",
            _CURE,
        )


def total(counts: Counts, ticks: Collection[int]) -> int | None:
    """How many rows some ticks have together; None: not all are counted."""
    found = [counts[tick] for tick in ticks if tick in counts]
    return None if None in found else sum(n or 0 for n in found)


def _refuse(
    name: str,
    known: Mapping[int, int | None],
    found: Mapping[int, int | None],
    where: str,
    cure: str,
) -> None:
    for tick in sorted(found):
        before, now = known.get(tick), found[tick]
        if before is not None and now is not None and before != now:
            rows = f"{before:,} row(s) of tick {tick} {where}, and {now:,} would be read"
            raise state_error(f"input `{name}`: {rows}", cure)
