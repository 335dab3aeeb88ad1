"""A table whose rows are one program's before a tick, and another program's from there on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import files_as_dataset
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed
from hydro_core.spark.store.table import StoredTable


def join_at(tick: int, served: StoredTable, made: StoredTable) -> None:
    """Puts the rows that a table has of the ticks before `tick` before those of another one.

    Of a log, the changes at that tick lead from what the one has to what the other has. Columns
    that only the first has are left out, those that only the second has are null.

    Args:
        tick: the first of the second table's ticks that count.
        served: the table whose earlier ticks stay.
        made: the table of the other program, which has all ticks; it gets the rows of both.
    """
    spec = made.spec
    before = _as(spec, _rows(served, ds.field(served.spec.tick) < tick))
    if not spec.is_log:
        since = _rows(made, ds.field(spec.tick) >= tick)
        made.rewrite(pa.concat_tables([before, since]))
        return
    taken = before.set_column(
        before.column_names.index(spec.count_column),
        spec.arrow_schema.field(spec.count_column),
        pc.negate(before[spec.count_column]),
    )
    made.rewrite(
        pa.concat_tables([before, summed(pa.concat_tables([taken, _rows(made)]), spec, tick)])
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
