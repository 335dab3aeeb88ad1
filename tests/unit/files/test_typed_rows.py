"""The declared type decides what a stored value, or the name of a folder, is; and none is rounded.

Each case is read by a run, by ticks of a flow, by its look for some rows, and with wrong rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import cut, read_all, scans_of, tick_inputs
from hydro_core.lang.resolve import parse
from hydro_core.running import run_flow
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches, SlicedBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength
from hydro_core.ticks.wanted import ReadLimits, WantedRows
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import PLACE, REASON, WRONG, ItemType, widened
from tests.support.refused import Refused

CALENDAR = Calendar(datetime(2026, 1, 1, tzinfo=UTC))
DAYS = [date(2026, 1, 1), date(2026, 1, 2)]
TIME = pa.timestamp("us")


def no_spark() -> Any:
    raise AssertionError("few rows need no Spark")


def by_run(path: Path, item: ItemType, column: str | None) -> list[list[Any]]:
    (scan,) = scans_of([InputFile("x", str(path), column)], {"x": item})
    rows = [read_all(scan)]
    ticks = tick_inputs(rows, cut(rows, TickLength.parse("1d"), None))
    return [list(tick.batches["x"]) for tick in ticks]


def by_flow(
    path: Path, item: ItemType, column: str | None, last: int = 1, optional: Any = ()
) -> list[list[Any]]:
    landings = {"x": LandingTable(path, column, optional=frozenset(optional))}
    inputs = InputBatches(landings, {"x": item}, no_spark, calendar=CALENDAR)
    rows = inputs.read(0, last)["x"].rows
    assert isinstance(rows, pa.Table)
    found = zip(rows["t"].to_pylist(), from_arrow(rows["item"], item), strict=True)
    values = list(found)
    return [[value for t, value in values if t == tick] for tick in range(last + 1)]


def by_look(path: Path, item: ItemType, column: str | None) -> list[list[Any]]:
    looked = SlicedBatches({"x": LandingTable(path, column)}, {"x": item}, no_spark, 9, CALENDAR)
    found = looked.wanted(WantedRows("x", ({},), 0), 1, ReadLimits(1000, None))
    return [found.get(tick, []) for tick in range(2)]


READ = (by_run, by_flow, by_look)


def parquet(path: Path, **columns: pa.Array[Any]) -> Path:
    file = path / "rows.parquet"
    pq.write_table(pa.table({"day": DAYS, **columns}), file)
    return file


def delta(path: Path, **columns: pa.Array[Any]) -> Path:
    write_deltalake(path / "table", pa.table({"day": DAYS, **columns}))
    return path / "table"


D = Decimal
SMALL, FINE = pa.decimal128(6, 2), pa.decimal128(8, 3)
INEXACT: dict[str, tuple[pa.Array[Any], str]] = {
    "decimal": (pa.array([D("1.500"), D("1.505")], FINE), "decimal(4,2)"),
    "decimal in a struct": (
        pa.array([None, {"p": D("1.505")}], pa.struct([("p", FINE)])),
        "struct<p: decimal(4,2)>",
    ),
    "decimal in an array": (
        pa.array([[], [D("1.5"), D("1.505")]], pa.list_(FINE)),
        "array<decimal(4,2)>",
    ),
    "digits before the point": (pa.array([None, D("1000.00")], SMALL), "decimal(4,2)"),
    "long in a double": (pa.array([2**53, 2**53 + 1]), "double"),
    "long in a float": (pa.array([2**24, 2**24 + 1]), "float"),
    "long in an int": (pa.array([2**31 - 1, 2**31]), "int"),
    "double in a float": (pa.array([0.5, 0.1]), "float"),
    "double in a decimal": (pa.array([None, 0.1]), "decimal(4,2)"),
    "decimal in a double": (pa.array([D("0.1"), D(2**53 + 1)], pa.decimal128(38, 1)), "double"),
    "double in a long": (pa.array([None, 1.5]), "long"),
    "timestamp in a date": (pa.array([None, datetime(2026, 1, 1, 5)], TIME), "date"),
    "zone": (pa.array([None, 1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
    "unsigned": (pa.array([2**63 - 1, 2**63], pa.uint64()), "long"),
}
FINER = {
    "nanoseconds": (pa.array([1000, 1001], pa.timestamp("ns")), "timestamp_ntz"),
    "nanoseconds with a zone": (pa.array([1000, 1001], pa.timestamp("ns", "UTC")), "timestamp"),
    "nanoseconds within": (
        pa.array([[1000], [1001]], pa.list_(pa.timestamp("ns"))),
        "array<timestamp_ntz>",
    ),
}


@pytest.mark.parametrize("write", [parquet, delta])
@pytest.mark.parametrize("case", INEXACT)
def test_a_value_that_is_not_exact_is_refused(
    tmp_path: Path, case: str, write: Callable[..., Path], refused: Refused
) -> None:
    values, of = INEXACT[case]
    if write is delta and case == "unsigned":
        pytest.skip("Delta has no such type")
    _refused_by_all(write(tmp_path, v=values), of, refused)


@pytest.mark.parametrize("is_int96", [False, True])
@pytest.mark.parametrize("case", FINER)
def test_a_time_that_is_finer_is_refused(
    tmp_path: Path, case: str, is_int96: bool, refused: Refused
) -> None:
    values, of = FINER[case]
    if is_int96:
        of = of.replace("timestamp_ntz", "timestamp")
    path = parquet(tmp_path, v=values)
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=is_int96)
    _refused_by_all(path, of, refused)


def test_times_far_away_are_exact_in_int96(tmp_path: Path) -> None:
    """In nanoseconds they wrap around."""
    times = [datetime(1600, 1, 1, microsecond=1), datetime(9999, 12, 31, 23, 59, 59, 999999)]
    path = parquet(tmp_path, v=pa.array(times, TIME))
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    for read in READ:
        found = read(path, parse_ddl("v timestamp"), "day")
        assert [row["v"] for rows in found for row in rows] == [
            time.replace(tzinfo=UTC) for time in times
        ]


def _refused_by_all(path: Path, of: str, refused: Refused) -> None:
    item = parse_ddl(f"v {of}")
    for read in READ:
        with refused(DataError, "input") as caught:
            read(path, item, "day")
        # Another tick's rows are none of its business.
        assert "row 1, column `v`" in str(caught.value)
    assert by_flow(path, item, "day", 0)[0][0].keys() == {"v"}
    wide = widened(item)
    right, wrong = by_flow(path, wide, "day", optional=WRONG)
    assert right[0][REASON] is None
    assert wrong[0][REASON].startswith("column `v`: ")
    assert wrong[0][PLACE].endswith("row 1")


EXACT: dict[str, tuple[pa.Array[Any], str, list[Any]]] = {
    "decimal": (pa.array([D("1.50"), D("2.5")], FINE), "decimal(4,2)", [D("1.50"), D("2.50")]),
    "whole decimal": (pa.array([1, None]), "decimal(4,2)", [D(1), None]),
    "wider decimal": (pa.array([D("1.5"), None], SMALL), "decimal(9,3)", [D("1.5"), None]),
    "long": (pa.array([2**53, 2**60]), "double", [2.0**53, 2.0**60]),
    "int": (pa.array([1, -5]), "tinyint", [1, -5]),
    "double": (pa.array([0.5, float("inf")]), "float", [0.5, float("inf")]),
    "decimal of a double": (pa.array([D("0.10"), D("0.3")], SMALL), "double", [0.1, 0.3]),
    "nanoseconds": (
        pa.array([1000, None], pa.timestamp("ns")),
        "timestamp",
        [datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), None],
    ),
}


@pytest.mark.parametrize("write", [parquet, delta])
@pytest.mark.parametrize("case", EXACT)
def test_what_is_exact_is_read(tmp_path: Path, case: str, write: Callable[..., Path]) -> None:
    values, of, expected = EXACT[case]
    path = write(tmp_path, v=values)
    for read in READ:
        found = read(path, parse_ddl(f"v {of}"), "day")
        assert [[row["v"] for row in rows] for rows in found] == [[one] for one in expected]


def test_files_of_different_types_are_each_read_as_declared(tmp_path: Path) -> None:
    for name, values in {
        "a": pa.array([D("12345678901234567.89")], pa.decimal128(38, 2)),
        "b": pa.array([D("1.500")], FINE),
        "c": pa.array(["7.25"]),
    }.items():
        pq.write_table(pa.table({"day": DAYS[:1], "v": values}), tmp_path / f"{name}.parquet")
    for read in READ:
        found = read(tmp_path, parse_ddl("v decimal(38,2)"), "day")
        assert [str(row["v"]) for row in found[0]] == ["12345678901234567.89", "1.50", "7.25"]


def test_values_of_a_caller_keep_their_digits(refused: Refused) -> None:
    program = 'x = source("p decimal(4,2)")\nx -> out'
    with refused(DataError, "input"):
        list(run_flow(parse(program), {}, [{"x": [{"p": D("1.505")}]}]))


NULL = "__HIVE_DEFAULT_PARTITION__"
FOLDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("string", {"01234": "01234", "AB1": "AB1", "5": "5", NULL: None, "": ""}),
    "escapes": ("string", {"a%2Fb%3Dc": "a/b=c", "%E2%80%A8": "\u2028", "50%25": "50%"}),
    "equals": ("string", {"a=b": "a=b"}),
    "long": ("long", {"5": 5, "3000000000": 3_000_000_000, NULL: None, "-07": -7}),
    "double": ("double", {"1": 1.0, "1.5": 1.5, NULL: None}),
    "decimal": ("decimal(6,2)", {"1.5": D("1.5"), "10": D(10)}),
    "boolean": ("boolean", {"true": True, "false": False, NULL: None}),
    "date": ("date", {"2026-01-31": date(2026, 1, 31), NULL: None}),
    "timestamp": ("timestamp", {"2026-01-31 10%3A00%3A00": datetime(2026, 1, 31, 10, tzinfo=UTC)}),
    "undeclared": ("", {"5": 5, "3000000000": 3_000_000_000, NULL: None}),
    "undeclared text": ("", {"5": "5", "AB1": "AB1", NULL: None}),
}


def in_folders(path: Path, names: Any, **more: Any) -> Path:
    for number, name in enumerate(names):
        folder = path / f"k={name}"
        folder.mkdir(parents=True)
        table = pa.table({"day": DAYS[:1], "v": [number], **more})
        pq.write_table(table, folder / "rows.parquet")
    return path


@pytest.mark.parametrize("case", FOLDERS)
@pytest.mark.parametrize("in_file", [False, True])
def test_the_declared_type_says_what_a_folder_names(
    tmp_path: Path, case: str, in_file: bool
) -> None:
    of, values = FOLDERS[case]
    # What the name says counts, as for Spark.
    path = in_folders(tmp_path / "x=9", values, **({"k": [-1.5]} if in_file else {}))
    item = parse_ddl(f"k {of}, v long") if of else parse_ddl("v long")
    if not of:
        (scan,) = scans_of([InputFile("x", str(path), "day")], {})
        item = scan.item
    for read in READ:
        (found, _) = [*read(path, item, "day"), []][:2]
        assert {row["v"]: row["k"] for row in found} == dict(enumerate(values.values()))


@pytest.mark.parametrize(("of", "name"), [("long", "AB1"), ("date", "soon"), ("tinyint", "300")])
def test_a_folder_that_does_not_fit(tmp_path: Path, of: str, name: str, refused: Refused) -> None:
    path = in_folders(tmp_path, ["1" if of != "date" else "2026-01-01", name])
    item = parse_ddl(f"k {of}, v long")
    for read in READ:
        with refused(DataError, "input") as caught:
            read(path, item, "day")
        assert f"k={name}" in str(caught.value)
    rows = by_flow(path, widened(item), "day", optional=WRONG)[0]
    assert [row[REASON] for row in rows if row["v"] == 0] == [None]
    (wrong,) = (row[REASON] for row in rows if row[REASON])
    assert wrong.startswith("column `k`: ")


@pytest.mark.parametrize("write", ["folders", "delta"])
@pytest.mark.parametrize(
    ("of", "value"),
    [
        (None, str),
        (None, int),
        ("date", None),
        ("string", str),
        ("timestamp", lambda day: datetime(day.year, day.month, day.day, tzinfo=UTC)),
    ],
)
def test_the_tick_column_is_one_of_folders(
    tmp_path: Path, write: str, of: str | None, value: Any
) -> None:
    told = [n if value is int else value(day) if value else day for n, day in enumerate(DAYS)]
    table = pa.table({"day": told, "v": [0, 1]})
    # What the place above is called says nothing.
    path = tmp_path / "day=2026-01-02" / "rows"
    if write == "delta":
        write_deltalake(path, table, partition_by="day")
    else:
        for number, one in enumerate(told):
            text = str(one).partition("+")[0].replace(":", "%3A")
            (path / f"day={text}").mkdir(parents=True)
            pq.write_table(table.slice(number, 1).drop(["day"]), path / f"day={text}" / "a.parquet")
    item = parse_ddl(f"day {of}, v long" if of else "v long")
    for read in (by_flow, by_look):
        assert [[row["v"] for row in rows] for rows in read(path, item, "day")] == [[0], [1]]
    landing = InputBatches({"x": LandingTable(path, "day")}, {"x": item}, no_spark, 9, CALENDAR)
    assert [landing.read(t, t)["x"].rows_at_hand for t in range(2)] == [1, 1]


@pytest.mark.parametrize("write", ["folders", "delta"])
def test_a_folder_of_no_tick(tmp_path: Path, write: str, refused: Refused) -> None:
    table = pa.table({"day": [DAYS[0], None], "v": [0, 1]})
    path = tmp_path / "rows"
    if write == "delta":
        write_deltalake(path, table, partition_by="day")
    else:
        for number, text in enumerate([str(DAYS[0]), NULL]):
            (path / f"day={text}").mkdir(parents=True)
            pq.write_table(table.slice(number, 1).drop(["day"]), path / f"day={text}" / "a.parquet")
    for read in (by_run, by_flow):
        with refused(DataError, "input"):
            read(path, parse_ddl("v long"), "day")


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["01234", None, "a/b=c %", "\u2028\u0085"]),
        pa.array([5, None, 3_000_000_000, -1]),
        pa.array([D("1.50"), None, D(2), D(3)], SMALL),
        pa.array([True, None, False, True]),
        pa.array([1, None, 2, 3], pa.date32()),
        pa.array([1, None, 2, 3], pa.timestamp("us", "UTC")),
        pa.array([1, None, 2, 3], TIME),
        pa.array([0.5, None, 1.0, 2.0]),
    ],
    ids=lambda values: str(values.type),
)
def test_the_log_of_a_delta_table_says_what_folders_hold(
    tmp_path: Path, values: pa.Array[Any]
) -> None:
    day = pa.array(DAYS[:1] * 4)
    table = pa.table({"day": day, "k": values, "v": range(4)})
    write_deltalake(tmp_path, table, partition_by="k")
    (scan,) = scans_of([InputFile("x", str(tmp_path), "day")], {})
    expected = dict(enumerate(values.to_pylist()))
    for item in (scan.item, widened(scan.item)):
        optional = WRONG if item != scan.item else ()
        found = by_flow(tmp_path, item, "day", optional=optional)[0]
        assert {row["v"]: row["k"] for row in found} == expected
    for read in READ:
        assert {row["v"]: row["k"] for row in read(tmp_path, scan.item, "day")[0]} == expected
