"""Nexmark's queries, each as a program and as SQL for DuckDB, over people, auctions and bids that
only come.

What looks at one event at a time gives the events of the tick; all others give, at each tick, what
the query is over all that has come. In SQL the bids of the tick are `new_bid`.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.judged import Row, Ticks

QUERIES = Path(__file__).parent / "queries"
NAMES = tuple(sorted(file.stem for file in QUERIES.glob("*.hydro")))


def program(name: str) -> str:
    """The program of a query."""
    return (QUERIES / f"{name}.hydro").read_text(encoding="utf-8")


def sql(name: str) -> str:
    """The same query as SQL."""
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


class Judge:
    """DuckDB with all rows of all ticks."""

    def __init__(self, ticks: Ticks) -> None:
        self._db = duckdb.connect()
        self._names = tuple(ticks.tables)
        for name, table in ticks.tables.items():
            self._db.register("arrow_rows", table)
            self._db.execute(f"CREATE TABLE all_{name} AS SELECT * FROM arrow_rows")
        self._db.unregister("arrow_rows")

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def rows(self, text: str, tick: int) -> list[Row]:
        """The rows of a query as of a tick."""
        for name in self._names:
            for view, of in ((name, f"tick <= {tick}"), (f"new_{name}", f"tick = {tick}")):
                made = f"SELECT * EXCLUDE (tick) FROM all_{name} WHERE {of}"
                self._db.execute(f"CREATE OR REPLACE VIEW {view} AS {made}")
        return self._db.sql(text).fetchall()
