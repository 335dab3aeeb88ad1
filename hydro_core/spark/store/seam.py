"""A table whose rows are one program's before a tick, and another program's from there on."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.files.parquet import files_as_dataset, opened_parquet
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.delta.write import write_files
from hydro_core.spark.store.outputs.differing import net, signed
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed
from hydro_core.spark.store.store import ALWAYS, Store


def join_at(
    tick: int, served: Store, made: Store, name: str, session: Callable[[], SparkSession]
) -> None:
    """Puts the rows that a table has of the ticks before `tick` before those of another one.

    Of a log, the changes at that tick lead from what the one has to what the other has. Columns
    that only the first has are left out, those that only the second has are null.

    Args:
        tick: the first of the second table's ticks that count.
        served: has the table whose earlier ticks stay.
        made: has the table of the other program, with all ticks; it gets the rows of both.
        name: what the table is called in both.
        session: gives the Spark that does it where the stores do not hold so many rows.
    """
    first, second = served.tables[name], made.tables[name]
    if max(first.rows, second.rows) > made.held_rows and not second.spec.has_unknown:
        _by_executors(tick, served, made, name, session())
        return
    spec = second.spec
    before = _as(spec, _rows(first, ds.field(first.spec.tick) < tick))
    if not spec.is_log:
        since = _rows(second, ds.field(spec.tick) >= tick)
        second.rewrite(pa.concat_tables([before, since]))
        return
    taken = before.set_column(
        before.column_names.index(spec.count_column),
        spec.arrow_schema.field(spec.count_column),
        pc.negate(before[spec.count_column]),
    )
    second.rewrite(
        pa.concat_tables([before, summed(pa.concat_tables([taken, _rows(second)]), spec, tick)])
    )


def _by_executors(tick: int, served: Store, made: Store, name: str, spark: SparkSession) -> None:
    table = made.tables[name]
    spec, at = table.spec, table.spec.tick
    stays = served.frame(spark, name, 0, tick - 1)
    before = None if stays is None else _columns(spec, stays)
    after = made.frame(spark, name, tick + 1 if spec.is_log else tick, ALWAYS)
    parts = [before, after]
    if spec.is_log:
        names = [name for name, _ in spec.columns if name not in (at, spec.count_column)]
        leading = made.frame(spark, name, 0, tick)
        rows, by = signed(before, leading, names, spec.count_column)
        if rows is not None:
            turned = net(rows, by).withColumnRenamed(by, spec.count_column)
            parts.append(_columns(spec, turned.withColumn(at, F.lit(tick).cast("long"))))
    whole = [part for part in parts if part is not None]
    if not whole:
        table.hold(())
        return
    ends = [file.last for file in table.files()]
    # The rows that stay are of earlier ticks than `tick`, and maybe of later ones than the others.
    last = None if None in ends else max([tick, *(end or 0 for end in ends)])
    first = None if last is None else 0
    written = write_files(table, reduce(DataFrame.unionAll, whole), (0, last or tick))
    counted = [(file, opened_parquet(file).metadata.num_rows) for file in written.files]
    table.hold(DataFile(file, file.stat().st_size, n, first, last) for file, n in counted)


def _columns(spec: TableSpec, rows: DataFrame) -> DataFrame:
    """The columns of a table; of those that the rows have not, nulls."""
    there = {name.lower() for name in rows.columns}
    return rows.select(
        *[
            F.col(quoted(field.name))
            if field.name.lower() in there
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in spec.spark_schema.fields
        ]
    )


def _rows(table: StoredTable, where: ds.Expression | None = None) -> pa.Table:
    files = files_as_dataset((file.path for file in table.files()), table.spec.arrow_schema)
    return files.to_table(filter=where)


def _as(spec: TableSpec, rows: pa.Table) -> pa.Table:
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in spec.arrow_schema
    ]
    return pa.table(columns, schema=spec.arrow_schema)
