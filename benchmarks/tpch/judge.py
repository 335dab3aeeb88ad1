"""What DuckDB says of TPC-H's queries over all rows that have come up to a tick."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb

from benchmarks.tpch.data import FACTS, KEYS, Ticks, newest

Row = tuple[Any, ...]


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


def differences(ours: Sequence[Row], judged: Sequence[Row]) -> str | None:
    """Where two bags of rows differ, None where they do not: decimals and all else are equal.

    Where DuckDB has a double, of a mean or a quotient, it is ours to the last digit.
    """
    if len(ours) != len(judged):
        return f"{len(ours)} rows, and DuckDB has {len(judged)}"
    rough = {i for row in judged for i, value in enumerate(row) if isinstance(value, float)}

    def ordered(rows: Sequence[Row]) -> list[Row]:
        exact = [i for i in range(len(rows[0])) if i not in rough] if rows else []
        return sorted(rows, key=lambda row: [_text(row[i]) for i in exact])

    for own, other in zip(ordered(ours), ordered(judged), strict=True):
        if len(own) != len(other) or not all(map(_equal, own, other)):
            return f"{own}, and DuckDB has {other}"
    return None


def _text(value: Any) -> str:
    return f"{value:f}".rstrip("0") if isinstance(value, Decimal) and value % 1 else f"{value}"


def _equal(own: Any, other: Any) -> bool:
    if isinstance(other, float) and isinstance(own, Decimal):
        half = Decimal(10) ** int(own.as_tuple().exponent) / 2
        return abs(own - Decimal(other)) <= half * Decimal("1.0001")
    return bool(own == other)
