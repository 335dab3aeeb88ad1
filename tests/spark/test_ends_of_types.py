"""Values at the ends of types come back as they went in, whichever way they are written and read.

A tick of few rows is written by delta-rs, one of many by Spark; `compact` writes both again, and a
copy is read as a whole. All of it must be what the reference interpreter gives.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hydro_core import Flow
from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.settings import SparkSettings
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.pipeline.copies import VerifyReport, copy_pipeline, verify
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.session.session import PARQUET, session_options
from hydro_core.spark.store.schema import flattened
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType, Row
from hydro_core.types.values import canonical
from hydrotick.quality.judge import kept, measure, state_facts
from tests.spark.pipelines import SETTINGS, planned
from tests.support.int96 import has_int96
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

SCHEMA = (
    "k long, at timestamp, wall timestamp_ntz, day date, price decimal(9,2), big decimal(38,10), "
    "d double, f float, b byte, i integer, text string, raw binary, "
    "deep struct<at: timestamp, days: array<date>, pairs: array<(timestamp, decimal(38,0))>>, "
    "ats array<timestamp>"
)
ITEM = parse_ddl(SCHEMA)
PROGRAM = f"""
a = source("{SCHEMA}")
a -> out
a -> persist() -> everything
a -> prev() -> before
a -> persist() -> latest(by="k", order="at") -> last
a -> select("at", "day", "big") -> persist() -> unique() -> distinct
a -> sort() -> in_order
"""
OUTPUTS = ("out", "everything", "before", "last", "distinct", "in_order")

MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 4, 23, 59, 59, tzinfo=UTC),
    datetime(1582, 10, 15, tzinfo=UTC),
    datetime(1677, 9, 21, 0, 12, 43, 145224, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2262, 4, 11, 23, 47, 16, 854776, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    None,
)
DECIMALS = (Decimal("9" * 28 + "." + "9" * 10), Decimal("-" + "9" * 28 + ".9999999999"), None)
DOUBLES = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, None)
TEXTS = ("", "a\0b", "\0", "\U0010ffff", "é\n\r\t\"'", None)


def rows_of(tick: int) -> list[dict[str, Any]]:
    """Rows in which every value stands, in another order at every tick."""
    found = []
    for k, at in enumerate(MOMENTS):
        n = k + tick
        day = None if at is None else at.date()
        wall = None if at is None else at.replace(tzinfo=None)
        big = DECIMALS[n % len(DECIMALS)]
        deep = {
            "at": at,
            "days": [date(1, 1, 1), None, date(9999, 12, 31), day],
            "pairs": [(at, Decimal("9" * 38)), None, (None, Decimal(-1))],
        }
        found.append(
            {
                "k": (-(2**63), 2**63 - 1, 0)[n % 3],
                "at": MOMENTS[n % len(MOMENTS)],
                "wall": wall,
                "day": day,
                "price": Decimal("-9999999.99") if n % 2 else None,
                "big": big,
                "d": DOUBLES[n % len(DOUBLES)],
                "f": (math.nan, -math.inf, -0.0, 1.5)[n % 4],
                "b": (-128, 127)[n % 2],
                "i": (-(2**31), 2**31 - 1)[n % 2],
                "text": TEXTS[n % len(TEXTS)],
                "raw": (b"", b"\0\xff", None)[n % 3],
                "deep": (deep, None, {"at": None, "days": None, "pairs": []})[n % 3],
                "ats": ([at, None, *MOMENTS[:2]], [], None)[n % 3],
            }
        )
    return found


def arrow(tick: int) -> pa.Table:
    items = rows_of(tick)
    assert isinstance(ITEM, Row)
    return pa.table({f.name: to_arrow([r[f.name] for r in items], f.type) for f in ITEM.fields})


TICKS = 3


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture(scope="module")
def reference() -> Mapping[str, list[Counter[Any]]]:
    """What each output has at each tick."""
    found: dict[str, list[Counter[Any]]] = {name: [] for name in OUTPUTS}
    for tick in Flow.parse(PROGRAM).run([{"a": rows_of(t)} for t in range(TICKS)]):
        for name in OUTPUTS:
            found[name].append(Counter(map(canonical, tick[name])))
    return found


def opened(directory: Path, **settings: Any) -> Pipeline:
    return Pipeline(directory, planned(PROGRAM), SETTINGS.with_(**settings))


WAYS: Mapping[str, tuple[int, ...]] = {"few": (1000,), "many": (0,), "both": (0, 1000)}
"""How many rows are few, tick by tick."""


def committed(directory: Path, bounds: tuple[int, ...]) -> Path:
    for tick in range(TICKS):
        bound = bounds[tick % len(bounds)]
        pipeline = opened(directory, small_write_rows=bound, few_rows=bound)
        before = pipeline.ledger.last
        with pipeline.prepare(tick, tick, {"a": arrow(tick)}) as prepared:
            prepared.write()
            facts = state_facts(prepared, before)
            assert all(fact.batch_keys == fact.written_keys for fact in facts)
            specs = {w.spec.of: w.spec for w in prepared.state.values()}
            prepared.commit({"tables": kept(facts, specs)})
    return directory


@pytest.fixture(scope="module", params=WAYS)
def pipeline(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed(tmp_path_factory.mktemp(request.param) / "p", WAYS[request.param])


def found_in(table: pa.Table, item: ItemType) -> list[Counter[Any]]:
    columns = [from_arrow(table[name].combine_chunks(), of) for name, of in flattened(item)]
    found = [Counter[Any]() for _ in range(TICKS)]
    names = [name for name, _ in flattened(item)]
    for tick, *values in zip(table["tick"].to_pylist(), *columns, strict=True):
        if tick < TICKS:
            found[tick][canonical(dict(zip(names, values, strict=True)))] += 1
    return found


def agree(directory: Path, expected: Mapping[str, list[Counter[Any]]]) -> None:
    """All outputs, as this process reads them and as Spark does."""
    read = opened(directory)
    for name in OUTPUTS:
        item = read.output_tables[name].item
        # An output of which ticks add to what was there is read as what each adds.
        here = found_in(read.output(name, every=True), item)
        by_spark = found_in(read.output_frame(name, every=True).toArrow(), item)
        wanted = expected[name]
        if name in ("everything", "distinct"):
            wanted = [
                now - before for now, before in zip(wanted, [Counter(), *wanted], strict=False)
            ]
        assert here == wanted, name
        assert by_spark == wanted, name


def whole(directory: Path) -> VerifyReport:
    found = verify(directory, measure)
    assert found.problems == found.notes == ()
    return found


def test_ticks_are_read_as_they_were_written(
    pipeline: Path, reference: Mapping[str, list[Counter[Any]]]
) -> None:
    agree(pipeline, reference)
    whole(pipeline)
    assert not any(map(has_int96, pipeline.rglob("*.parquet")))


def test_what_is_joined_and_copied_is_the_same(
    pipeline: Path, reference: Mapping[str, list[Counter[Any]]], tmp_path: Path
) -> None:
    copy_pipeline(pipeline, tmp_path / "copied")
    agree(tmp_path / "copied", reference)
    for _ in range(2):
        opened(tmp_path / "copied").compact(keep_hours=0)
        agree(tmp_path / "copied", reference)
        whole(tmp_path / "copied")


def test_a_session_of_the_users_own_writes_microseconds(
    tmp_path: Path, spark: SparkSession
) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    settings = SETTINGS.with_(small_write_rows=0, few_rows=0)
    Pipeline(tmp_path / "p", planned(PROGRAM), settings, own).run_tick(0, {"a": arrow(0)})
    assert not any(map(has_int96, tmp_path.rglob("*.parquet")))


def test_what_spark_wrote_is_looked_at_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    options = {"spark.sql.parquet.outputTimestampType": "INT96"}
    monkeypatch.setattr("hydro_core.spark.frames.parquet.PARQUET", options)
    pipeline = opened(tmp_path / "p", small_write_rows=0, few_rows=0)
    with refused(DataError, "state"):
        pipeline.run_tick(0, {"a": arrow(0)})
    assert pipeline.last_committed is None


def test_an_outer_option_does_not_win() -> None:
    """What is set when Spark is started is set again by whoever writes."""
    extra = (("spark.sql.parquet.outputTimestampType", "INT96"),)
    started = session_options(SparkSettings(extra=extra))
    assert started["spark.sql.parquet.outputTimestampType"] == "INT96"
    assert (
        session_options(SparkSettings())["spark.sql.parquet.outputTimestampType"]
        == (PARQUET["spark.sql.parquet.outputTimestampType"])
    )


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_a_run_reads_what_others_wrote_and_writes_what_all_read(
    engine: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Spark's INT96 in a folder, and a Delta table with such files."""
    other = spark.newSession()
    other.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows = other.createDataFrame(arrow(0), spark_type(ITEM)).coalesce(1)
    rows.write.parquet(str(tmp_path / "files"))
    rows.write.format("delta").save(str(tmp_path / "table"))
    assert any(map(has_int96, (tmp_path / "files").glob("*.parquet")))
    program = tmp_path / "p.hydro"
    program.write_text(f'a = source("{SCHEMA}")\na -> out\n')
    for place in ("files", "table"):
        out = tmp_path / f"{place}-out"
        given = ["--input", f"a={tmp_path / place}", "--out", str(out), "--engine", engine]
        assert main(["run", str(program), *given]) == 0
        assert not any(map(has_int96, out.rglob("*.parquet")))
        table = pq.read_table(out / "out")
        expected = Counter(map(canonical, rows_of(0)))
        assert found_in(table, ITEM)[0] == expected
