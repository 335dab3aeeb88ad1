"""A table takes over the rows of one that has its columns in another order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from hydro_core.catalog.forms import Form
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl


@pytest.mark.parametrize(
    "columns",
    [
        ("k string, v long", "v long, k string", "k string, v long"),
        ("n struct<a: long, b: long>", "n struct<b: long, a: long>", "n struct<a: long, b: long>"),
    ],
)
def test_columns_in_another_order(columns: tuple[str, ...], tmp_path: Path) -> None:
    for tick, ddl in enumerate(columns):
        table = _stored(tmp_path, ddl)
        if not table.exists:
            table.create()
        table.hold([])
        assert table.schema_matches()
        row = {f.name: None for f in table.spec.arrow_schema} | {"tick": tick}
        table.append(pa.Table.from_pylist([row], schema=table.spec.arrow_schema))
        # Another process opens it anew.
        assert _stored(tmp_path, ddl).schema_matches()
        there = DeltaTable(table.path).to_pyarrow_table()
        assert there.schema.names == table.spec.arrow_schema.names
        assert there.to_pylist() == [row]


def _stored(directory: Path, ddl: str) -> StoredTable:
    item = parse_ddl(ddl)
    spec = TableSpec("outputs/x", "output", "x", item, False, Form.GROWTH, Kind.E, "")
    return StoredTable(directory, spec, checkpoint_interval=100)
