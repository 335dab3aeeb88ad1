"""Slices of landings: only the rows that are wanted, whatever the landing is, and without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.settings import MEBIBYTE
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import SlicedBatches
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.ticks.wanted import ReadLimits, TooLargeError, TooManyError, WantedRows
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import canonical

ROWS = [
    (tick, user, amount)
    for tick in range(4)
    for user in ("ann", "bob", None)
    for amount in (tick, 10)
]
MANY = ReadLimits(100)


def no_spark() -> NoReturn:
    raise AssertionError("Spark was started")


@pytest.fixture(params=["delta", "held", "held in parts", "parquet", "csv"])
def batches(request: pytest.FixtureRequest, tmp_path: Path) -> SlicedBatches:
    names, columns = ("tick", "user", "amount"), zip(*ROWS, strict=True)
    types = (pa.int64(), pa.string(), pa.int32())
    table = pa.table({n: pa.array(c, of) for n, c, of in zip(names, columns, types, strict=True)})
    path = tmp_path / "rows"
    match request.param:
        case "delta" | "held":
            write_deltalake(path, table)
        case "held in parts":
            write_deltalake(path, table, partition_by=["user"])
        case "parquet":
            path.mkdir()
            pq.write_table(table, path / "1.parquet")
        case _:
            path.mkdir()
            pyarrow.csv.write_csv(table, path / "1.csv")
    items = {"rows": parse_ddl("user string, amount long")}
    found = SlicedBatches({"rows": LandingTable(path, "tick")}, items, no_spark)
    if request.param.startswith("held"):
        found.held = RowCache(MEBIBYTE)
    return found


def wanted(
    *alternatives: Mapping[str, tuple[Any, ...]], first: int = 0, some: int | None = None
) -> WantedRows:
    given = tuple(
        {(name,): {canonical(value): value for value in values} for name, values in one.items()}
        for one in alternatives
    )
    return WantedRows("rows", given, first, some)


def read(batches: SlicedBatches, asked: WantedRows, last: int = 3) -> list[tuple[int, Any, int]]:
    found = batches.wanted(asked, last, MANY)
    return [(tick, x["user"], x["amount"]) for tick, items in found.items() for x in items]


@pytest.mark.parametrize(
    ("alternatives", "holds"),
    [
        (({"user": ("ann",)},), lambda t, u, a: u == "ann"),
        (({"user": ("ann", "bob"), "amount": (10,)},), lambda t, u, a: u and a == 10),
        (({"user": (None,)}, {"amount": (2,)}), lambda t, u, a: u is None or a == 2),
        (({"amount": (10.0,)},), lambda t, u, a: a == 10),
        (({"user": ()},), lambda t, u, a: False),
        (({},), lambda t, u, a: True),
    ],
)
def test_what_is_wanted_is_read(batches: SlicedBatches, alternatives: Any, holds: Any) -> None:
    expected = [row for row in ROWS if holds(*row)]
    assert sorted(map(str, read(batches, wanted(*alternatives)))) == sorted(map(str, expected))
    later = [row for row in expected if 1 <= row[0] <= 2]
    found = read(batches, wanted(*alternatives, first=1), last=2)
    assert sorted(map(str, found)) == sorted(map(str, later))


def test_some_rows_are_enough(batches: SlicedBatches) -> None:
    found = read(batches, wanted({}, first=2, some=3), last=2)
    assert len(found) >= 3
    assert set(found) <= {row for row in ROWS if row[0] == 2}


def test_more_than_may_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    write_deltalake(path, pa.table({"tick": [0] * 9, "user": ["ann"] * 9, "amount": [1] * 9}))
    items = {"rows": parse_ddl("user string, amount long")}
    batches = SlicedBatches({"rows": LandingTable(path, "tick")}, items, no_spark)
    with pytest.raises(TooManyError):
        batches.wanted(wanted({}), 0, ReadLimits(8))
    assert len(batches.wanted(wanted({}), 0, ReadLimits(9))[0]) == 9
    with pytest.raises(TooLargeError) as refused:
        batches.wanted(wanted({}), 0, ReadLimits(9, size=10))
    assert refused.value.size == sum(file.stat().st_size for file in path.glob("*.parquet"))


def test_rows_are_counted_by_their_values(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    write_deltalake(path, pa.table({"tick": [0, 0, 1, 5], "user": ["a", "b", "a", "a"]}))
    batches = SlicedBatches(
        {"rows": LandingTable(path, "tick")}, {"rows": parse_ddl("user string")}, no_spark
    )
    found = batches.counts([(wanted({"user": ("a", "b")}), [("user",)])], 1)
    assert found == [{("a",): 2, ("b",): 1}]


def test_what_several_want_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    rows = {"tick": [0, 0, 1, 5], "user": ["a", "b", "a", "a"], "city": ["x", "y", "y", "x"]}
    write_deltalake(path, pa.table(rows))
    items = {"rows": parse_ddl("user string, city string")}
    batches = SlicedBatches({"rows": LandingTable(path, "tick")}, items, no_spark)
    both = wanted({"user": ("a",)}), wanted({"city": ("y",)})
    assert batches.counts([(both[0], [("user",)]), (both[1], [("user",)])], 1) == [
        {("a",): 2},
        {("a",): 1, ("b",): 1},
    ]
    batches.gather(both, 1, ReadLimits(9))
    for file in path.glob("*.parquet"):
        file.unlink()
    found = [batches.wanted(one, 1, ReadLimits(2)) for one in both]
    assert [{t: [r["city"] for r in rows] for t, rows in of.items()} for of in found] == [
        {0: ["x"], 1: ["y"]},
        {0: ["y"], 1: ["y"]},
    ]
    with pytest.raises(TooManyError):
        batches.wanted(both[0], 1, ReadLimits(1))


def test_what_is_too_much_together_is_asked_for_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    write_deltalake(path, pa.table({"tick": [0] * 4, "user": ["a", "b", "b", "c"]}))
    batches = SlicedBatches(
        {"rows": LandingTable(path, "tick")}, {"rows": parse_ddl("user string")}, no_spark
    )
    both = wanted({"user": ("a",)}), wanted({"user": ("b",)})
    batches.gather(both, 0, ReadLimits(2))
    assert [len(batches.wanted(one, 0, ReadLimits(2))[0]) for one in both] == [1, 2]
