from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet
import pytest

from hydro_core.errors import HydroError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import Scan, cut, read_all, scans_of, tick_inputs
from hydro_core.ticks.every import TickLength, parse_time
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import parse_ddl, to_ddl
from hydro_core.types.item import ItemType
from tests.support.refused import Refused

DAYS = [date(2024, 1, 1), date(2024, 1, 3), date(2024, 1, 1)]
TABLE = pa.table({"day": DAYS, "k": ["a", "", None], "v": pa.array([1, 2, None], pa.int32())})


def ticks_of(
    *files: str,
    schemas: Mapping[str, str] | None = None,
    every: str = "1d",
    start: str | None = None,
) -> list[TickInput]:
    declared = {name: parse_ddl(text) for name, text in (schemas or {}).items()}
    inputs = [read_all(scan) for scan in arrived_of(*files, declared=declared)]
    parsed = parse_time(start) if start else None
    return list(tick_inputs(inputs, cut(inputs, TickLength.parse(every), parsed)))


def arrived_of(*files: str, declared: Mapping[str, ItemType] | None = None) -> list[Scan]:
    return scans_of([InputFile.parse(file) for file in files], declared or {})


def batches(ticks: Sequence[TickInput]) -> list[Mapping[str, Any]]:
    return [dict(tick.batches) for tick in ticks]


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    path = tmp_path / "o.parquet"
    pyarrow.parquet.write_table(TABLE, path)
    return str(path)


def test_a_tick_a_day_also_without_rows(parquet: str) -> None:
    ticks = ticks_of(f"o={parquet}:day", schemas={"o": "v long, k string"})
    assert batches(ticks) == [
        {"o": [{"v": 1, "k": "a"}, {"v": None, "k": None}]},
        {"o": []},
        {"o": [{"v": 2, "k": ""}]},
    ]
    assert ticks[1].start == datetime(2024, 1, 2, tzinfo=UTC)
    assert ticks[1].end == datetime(2024, 1, 3, tzinfo=UTC)


def test_without_a_column_everything_is_in_tick_0(parquet: str) -> None:
    ticks = ticks_of(f"o={parquet}", schemas={"o": "k string"})
    assert batches(ticks) == [{"o": [{"k": "a"}, {"k": ""}, {"k": None}]}]
    assert ticks[0].start is None


def test_an_undeclared_input_has_the_columns_and_types_of_its_data(parquet: str) -> None:
    (scan,) = arrived_of(f"o={parquet}:day")
    assert to_ddl(scan.item) == "day date, k string, v integer"
    assert ticks_of(f"o={parquet}:day")[2].batches["o"] == [{"day": DAYS[1], "k": "", "v": 2}]


def test_a_start_of_its_own(parquet: str) -> None:
    ticks = ticks_of(f"o={parquet}:day", start="2023-12-31", every="2d")
    assert [len(t.batches["o"]) for t in ticks] == [2, 1]


def test_a_row_before_the_start(parquet: str, refused: Refused) -> None:
    with refused(HydroError, "input"):
        ticks_of(f"o={parquet}:day", start="2024-01-02")


TOO_MANY = "which makes more than 1,000,000 ticks, as those without rows run, too"


@pytest.mark.parametrize(
    ("column", "last", "moment", "why"),
    [
        (
            "day",
            "9999-12-31",
            "9999-12-31T00:00:00Z",
            ": they begin at 2024-01-01T00:00:00Z, and each is 1d long",
        ),
        ("n", "1000000", "tick 1000000", ""),
    ],
)
def test_a_row_too_far_away(tmp_path: Path, column: str, last: str, moment: str, why: str) -> None:
    first = "2024-01-01" if column == "day" else "0"
    file = tmp_path / "rows.csv"
    file.write_text(f"{column},v\n{first},1\n{last},2\n")
    with pytest.raises(HydroError) as caught:
        ticks_of(f"o={file}:{column}")
    assert caught.value.code == "input"
    said = f"input `o` ({file}): a row is of {moment}, {TOO_MANY}{why}"
    assert caught.value.diagnostics[0].message == said
    assert "mend the row" in (caught.value.diagnostics[0].help or "")


def test_a_null_in_the_tick_column(parquet: str, refused: Refused) -> None:
    with refused(HydroError, "input"):
        ticks_of(f"o={parquet}:v")


@pytest.mark.parametrize(
    ("file", "schema", "words"),
    [
        ("o={}:nope", None, "tick column `nope` is missing"),
        ("o={}", "nope long", "column `nope` is missing"),
        ("o={}", "k long", "column `k`"),
        ("o={}x", None, "nothing to read"),
        ("o={}:k", None, "tick column `k`"),
    ],
)
def test_what_is_wrong_is_an_input_error(
    parquet: str, file: str, schema: str | None, words: str, refused: Refused
) -> None:
    with refused(HydroError, "input"):
        ticks_of(file.format(parquet), schemas={"o": schema} if schema else {})


def test_numbers_of_ticks(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "n.parquet"
    pyarrow.parquet.write_table(pa.table({"t": [2, 0, 2], "item": ["a", "b", "c"]}), path)
    assert batches(ticks_of(f"n={path}:t", schemas={"n": "string"})) == [
        {"n": ["b"]},
        {"n": []},
        {"n": ["a", "c"]},
    ]
    # what was written by `--out` is read back as what it was: a scalar's column is `item`
    assert batches(ticks_of(f"n={path}:t"))[0] == {"n": ["b"]}
    with refused(HydroError, "input"):
        ticks_of(f"n={path}:t", start="2024-01-01")


def test_negative_numbers_of_ticks(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "n.parquet"
    pyarrow.parquet.write_table(pa.table({"t": [-1], "item": ["a"]}), path)
    with refused(HydroError, "input"):
        ticks_of(f"n={path}:t")


def test_numbers_and_times_do_not_mix(tmp_path: Path, parquet: str, refused: Refused) -> None:
    path = tmp_path / "n.parquet"
    pyarrow.parquet.write_table(pa.table({"t": [0]}), path)
    with refused(HydroError, "input"):
        ticks_of(f"n={path}:t", f"o={parquet}:day")


def test_several_inputs_share_their_ticks(tmp_path: Path, parquet: str) -> None:
    path = tmp_path / "p.parquet"
    pyarrow.parquet.write_table(
        pa.table({"at": [datetime(2023, 12, 31, 23, tzinfo=UTC)], "_1": [1], "_2": ["x"]}), path
    )
    other = tmp_path / "q.jsonl"
    other.write_text('{"x": 1}\n')
    ticks = ticks_of(
        f"o={parquet}:day", f"p={path}:at", f"q={other}", schemas={"p": "(long, string)"}
    )
    assert [{n: len(b) for n, b in t.batches.items()} for t in ticks] == [
        {"o": 0, "p": 1, "q": 1},
        {"o": 2, "p": 0, "q": 0},
        {"o": 0, "p": 0, "q": 0},
        {"o": 1, "p": 0, "q": 0},
    ]
    assert ticks[0].batches["p"] == [(1, "x")]


def test_csv_is_typed_by_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text(
        "day,k,n,price,at,x\n"
        "2024-01-01,NA,7,2.5,2024-01-01T01:00:00+01:00,1\n"
        '2024-01-02,"",,,,2\n'
        "2024-01-02,,,,,3\n"
    )
    schema = "k string, n string, price decimal(6,2), at timestamp"
    found = batches(ticks_of(f"o={path}:day", schemas={"o": schema}))
    assert [json.dumps(b["o"], default=str) for b in found] == [
        '[{"k": "NA", "n": "7", "price": "2.50", "at": "2024-01-01 00:00:00+00:00"}]',
        (
            '[{"k": "", "n": null, "price": null, "at": null}, '
            '{"k": null, "n": null, "price": null, "at": null}]'
        ),
    ]


def test_csv_without_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "o.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,c\n1,2.5,x\n"))
    (scan,) = arrived_of(f"o={path}")
    assert to_ddl(scan.item) == "a long, b double, c string"


def test_a_csv_value_that_does_not_fit(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "o.csv"
    path.write_text("a\nx\n")
    with refused(HydroError, "input"):
        ticks_of(f"o={path}", schemas={"o": "a long"})


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text(
        '{"day": "2024-01-02", "x": [1, "a"]}\n\n{"day": "2024-01-01T10:00:00", "y": 1}\n'
    )
    assert batches(ticks_of(f"o={path}:day", schemas={"o": "x (long, string), y double"})) == [
        {"o": [{"x": None, "y": 1.0}]},
        {"o": [{"x": (1, "a"), "y": None}]},
    ]


@pytest.mark.parametrize("text", ["[1]\n", "{\n", '{"x": 9223372036854775808}\n'])
def test_json_lines_that_are_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text(text)
    with pytest.raises(HydroError) as caught:
        ticks_of(f"o={path}", schemas={"o": "x long"})
    assert caught.value.code == "input"


def test_folders_globs_and_delta_tables(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "delta"), TABLE)
    deltalake.write_deltalake(str(tmp_path / "delta"), TABLE, mode="append")
    assert len(ticks_of(f"o={tmp_path / 'delta'}")[0].batches["o"]) == 6
    folder = tmp_path / "folder"
    for month in (1, 2):
        (folder / f"month={month}").mkdir(parents=True)
        pyarrow.parquet.write_table(TABLE, folder / f"month={month}" / "x.parquet")
    (folder / "_SUCCESS").write_text("")
    (scan,) = arrived_of(f"o={folder}")
    assert to_ddl(scan.item) == "day date, k string, v integer, month integer"
    assert len(ticks_of(f"o={folder}/*=1/*.parquet")[0].batches["o"]) == 3


def test_files_of_several_kinds(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.jsonl").write_text("{}\n")
    with refused(HydroError, "input"):
        ticks_of(f"o={tmp_path}")


@pytest.mark.parametrize("text", ["o", "o=", "=x", ""])
def test_an_input_is_name_and_path(text: str, refused: Refused) -> None:
    with refused(HydroError, "config"):
        InputFile.parse(text)


def test_a_colon_in_a_path(tmp_path: Path) -> None:
    odd = tmp_path / "a:b"
    odd.write_text("")
    assert InputFile.parse(f"o={odd}") == InputFile("o", str(odd))
    assert InputFile.parse(f"o={odd}:c") == InputFile("o", str(odd), "c")
    assert InputFile.parse("o=c:/x/y.csv") == InputFile("o", "c:/x/y.csv")


def test_what_nobody_wants_is_not_read(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "o.csv"
    path.write_text("a,b\n1,x\n")
    pyarrow.parquet.write_table(
        pa.table({"a": [1], "b": pa.array([1], pa.time64("us"))}), tmp_path / "o.parquet"
    )
    for file in (path, tmp_path / "o.parquet"):
        assert batches(ticks_of(f"o={file}", schemas={"o": "a long"})) == [{"o": [{"a": 1}]}]
    with refused(HydroError, "input"):
        ticks_of(f"o={tmp_path / 'o.parquet'}")


def test_a_null_where_none_may_be(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text('{"t": 0, "x": 1}\n{"t": 1}\n')
    assert ticks_of(f"o={path}:t", schemas={"o": "x long"})
    with refused(HydroError, "input"):
        ticks_of(f"o={path}:t", schemas={"o": "x long not null"})


def test_a_value_that_does_not_fit_names_its_place(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text('{"t": 0, "x": 1}\n{"t": 1, "x": "a"}\n')
    with refused(HydroError, "input"):
        ticks_of(f"o={path}:t", schemas={"o": "x long"})


@pytest.mark.parametrize("sign", ["[", "]", "|", "^", "\\", "%5B"])
def test_a_delta_table_where_its_library_cannot_open_it_is_refused(
    tmp_path: Path, sign: str, refused: Refused
) -> None:
    deltalake.write_deltalake(tmp_path / "table", TABLE)
    (tmp_path / f"a{sign}b").mkdir()
    place = (tmp_path / "table").rename(tmp_path / f"a{sign}b" / "table")
    with refused(HydroError, "config") as caught:
        ticks_of(f"o={place}:day")
    assert caught.value.diagnostics[0].help


@pytest.mark.parametrize("files", [{"a": (1, "x")}, {"a": (1,), "b": ("x",)}])
def test_json_lines_whose_values_have_no_type_in_common(
    tmp_path: Path, files: Mapping[str, Sequence[Any]], refused: Refused
) -> None:
    for name, values in files.items():
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(f'{{"v": {json.dumps(v)}}}\n' for v in values)
        )
    with refused(HydroError, "input"):
        ticks_of(f"o={tmp_path}")
