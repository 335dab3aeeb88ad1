"""What DuckDB says of TPC-H's queries over all rows that have come up to a tick."""

from __future__ import annotations

import duckdb

from benchmarks.judged import Row, Ticks
from benchmarks.tpch.data import FACTS, KEYS, newest


class Judge:
    """DuckDB with all rows of all ticks."""

    def __init__(self, ticks: Ticks) -> None:
        self._db = duckdb.connect()
        for name, table in ticks.tables.items():
            self._db.register("arrow_rows", table)
            self._db.execute(f"CREATE TABLE all_{name} AS SELECT * FROM arrow_rows")
        self._db.unregister("arrow_rows")

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def rows(self, sql: str, tick: int) -> list[Row]:
        """The rows of a query as of a tick."""
        self.at(tick)
        return self._db.sql(sql).fetchall()

    def at(self, tick: int) -> None:
        """Lets the tables be what they are as of a tick."""
        for name in (*FACTS, *KEYS):
            so_far = f"(SELECT * FROM all_{name} WHERE tick <= {tick})"
            text = newest(name, so_far) if name in KEYS else so_far.strip("()")
            self._db.execute(f"CREATE OR REPLACE VIEW {name} AS {text}")
