"""What passes through the process that drives a tick is bounded, however many rows a tick has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from hydro_core.catalog.forms import Form
from hydro_core.files import parquet
from hydro_core.plan.tick_plan import Kind
from hydro_core.project.flow_asset import Expect
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store import earlier_tables as as_it_was
from hydro_core.spark.store import earlier_tables as seam
from hydro_core.spark.store import store
from hydro_core.spark.store.delta import table as table_rows
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.outputs import changes as net_changes
from hydro_core.spark.store.outputs import published
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydrotick.quality import changed
from hydrotick.quality.judge import counted, measure
from hydrotick.quality.suites import ROWS, Verdict, judge_counts
from hydrotick.runner.runner import TickRunner
from tests.orchestration.late import SCHEMA, Late

pytestmark = [pytest.mark.spark]


class Passed:
    """Counts the rows that come to this process: of jobs, of stored tables, of what was written."""

    def __init__(self) -> None:
        self.of_jobs, self.of_tables, self.piece = 0, 0, 0

    @contextmanager
    def counting(self) -> Iterator[Passed]:
        """Within it rows are counted."""
        with pytest.MonkeyPatch.context() as patch:
            self._count(patch, DataFrame, "toArrow", "of_jobs")
            self._count(patch, DataFrame, "collect", "of_jobs")
            rows = self._count(patch, table_rows, "rows_of", "of_tables")
            patch.setattr(store, "rows_of", rows)
            self._count(patch, published.PublishedTable, "rows", "of_tables")
            self._count(patch, seam, "_rows", "of_tables")
            self._count(patch, changed, "_hashed", "of_tables")
            pieces = parquet.in_pieces

            def in_pieces(*given: Any, **named: Any) -> Iterator[pa.Table]:
                for piece in pieces(*given, **named):
                    self.piece = max(self.piece, piece.num_rows)
                    yield piece

            for module in (parquet, table_rows, published, net_changes, as_it_was):
                patch.setattr(module, "in_pieces", in_pieces)
            yield self

    def _count(self, patch: pytest.MonkeyPatch, of: Any, name: str, number: str) -> Any:
        work = getattr(of, name)

        def does(*given: Any, **named: Any) -> Any:
            found = work(*given, **named)
            setattr(self, number, getattr(self, number) + len(found))
            return found

        patch.setattr(of, name, does)
        return does


def begun(home: Path, bound: int, monkeypatch: pytest.MonkeyPatch) -> Late:
    """The small flow, for which so many rows are few."""
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", bound)
    settings = Settings().with_(few_rows=bound, small_write_rows=bound, held_rows=bound)
    monkeypatch.setattr(TickRunner, "settings", property(lambda _: settings))
    monkeypatch.setattr(TickRunner, "settings_for", lambda *_: settings)
    late = Late(home, "next", "parquet")
    expect = {"totals": (Expect("total", at_least=0), Expect("user", unique=True, not_null=True))}
    late.flow = replace(late.flow, expect=expect, sample_keys=2)
    return late


def land(late: Late, tick: int, users: range) -> None:
    """Lands a row of each of these users."""
    named = pa.array(users).cast(pa.string())
    count = len(users)
    columns = [pa.repeat(pa.scalar(tick), count), named, pa.repeat(pa.scalar(1), count)]
    name = f"{tick}-{users.start}.parquet"
    pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), late.place / name)
    late.open()


def passing(
    spark: SparkSession, home: Path, rows: int, bound: int, monkeypatch: pytest.MonkeyPatch
) -> Passed:
    """What passes of a tick with so many new keys, over as many that are there; bound: few rows."""
    assert spark is not None
    late, passed = begun(home, bound, monkeypatch), Passed()
    for tick in (0, 1):
        land(late, tick, range(tick * rows, (tick + 1) * rows))
        if tick:
            with passed.counting():
                late.ran((tick, tick))
        else:
            late.ran((tick, tick))
    commit = late.runner.pipeline(late.flow).ledger.refresh()
    assert commit is not None
    assert commit.rows["outputs/totals"] == rows
    assert verify(late.runner.directory(late.flow), measure).problems == ()
    return passed


def same_whatever_the_rows(
    spark: SparkSession, tmp_path: Path, sizes: tuple[int, int], bound: int
) -> None:
    found = []
    for size in sizes:
        with pytest.MonkeyPatch.context() as patch:
            found.append(passing(spark, tmp_path / str(size), size, bound, patch))
    few, many = found
    # Of what was small a tick ago each partition gives so many until it is known not to be.
    assert (few.of_jobs, few.of_tables) == (many.of_jobs, many.of_tables)
    assert 0 < many.piece <= bound
    assert many.of_jobs + many.of_tables <= 8 * bound


def test_few_rows_pass_whatever_a_tick_has(spark: SparkSession, tmp_path: Path) -> None:
    same_whatever_the_rows(spark, tmp_path, (3_000, 12_000), 500)


@pytest.mark.slow
def test_few_of_a_million_rows_pass(spark: SparkSession, tmp_path: Path) -> None:
    same_whatever_the_rows(spark, tmp_path, (400_000, 1_000_000), 100_000)


ITEM = parse_ddl("user string, total double, day date")
EXPECTED = (
    Expect("user", not_null=True, unique=True, matches="^u", one_of=("u1", "u2", "u3", "u4")),
    Expect("total", at_least=0, at_most=100, unique=True, severity="warn"),
)
"""Of rows that break all of it and rows that break none, in several pieces."""
GOOD = [(0, f"u{n}", float(n), None) for n in range(1, 5)]
BAD = [(0, "u1", 1.0, None), (0, None, None, None), (0, "v", -1.0, None), (1, "u1", 1e9, None)]


def essence(verdicts: tuple[Verdict, ...]) -> list[Any]:
    """What verdicts find; of the rows that break one, not which of them are quoted."""
    return sorted(
        (v.check, v.passed, v.severity, bool(v.seen.get(ROWS)), v.says.partition(", such")[0])
        for v in verdicts
    )


@pytest.mark.parametrize("rows", [GOOD, [*GOOD, *BAD], []], ids=["good", "bad", "none"])
def test_verdicts_of_pieces_are_those_of_the_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Any]
) -> None:
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 2)
    of = ("outputs/out", "output", "out", ITEM, False, Form.GROWTH, Kind.E, "")
    spec = TableSpec(*of)
    table = pa.Table.from_pylist(
        [dict(zip(spec.arrow_schema.names, row, strict=True)) for row in rows], spec.arrow_schema
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    files = (tmp_path / "rows.parquet",) if rows else ()
    shown = WrittenRows(spec, len(rows), None, files)
    whole = replace(shown, table=table)
    found = [counted(EXPECTED, of, lambda: spark) for of in (shown, whole)]
    in_pieces, at_once = (essence(judge_counts("flow", "out", EXPECTED, of)) for of in found)
    assert in_pieces == at_once
