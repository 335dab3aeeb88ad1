"""`run --input` on Spark gives what the reference gives: the same rows, the same errors."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from hydro_core.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = """
rows -> persist() -> aggregate(by="k", n=count(), total=sum("v")) -> delta() -> totals
rows -> sort_by_key(lambda r: (r.v is not None, r.v)) -> enumerate() -> ordered
rows -> map(lambda r: r.v) -> values
tick() -> rename(number="tick") -> ticks
"""
DECLARED = 'rows = source("k string, v long")\n'
DAYS = [date(2024, 1, 30), date(2024, 3, 3), date(2024, 1, 31), date(2024, 2, 1)]
TABLE = pa.table(
    {
        "day": DAYS,
        "k": ["a", "", None, "a"],
        "v": pa.array([1, 2, None, 2**40], pa.int64()),
        "small": pa.array([1, 2, 3, None], pa.int16()),
        "at": pa.array(
            [datetime(d.year, d.month, d.day, 23, 59, 59, 999999, UTC) for d in DAYS],
            pa.timestamp("us", "UTC"),
        ),
        "text": [d.isoformat() for d in DAYS],
        "number": pa.array([3, 0, 0, 2], pa.int32()),
    }
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


Run = Callable[..., Any]


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """What one engine answers, and the rows that it writes, for a program and arguments."""

    def of_engine(engine: str, program: str, *words: str) -> Any:
        (here / "p.hydro").write_text(program)
        out = here / "out" / engine
        status = main(
            ["run", "p.hydro", *words, "--engine", engine, "--out", str(out), "--format", "json"]
        )
        said = json.loads(capsys.readouterr().out)
        if status:
            assert not out.exists() or not any(p.suffix == ".parquet" for p in out.rglob("*"))
            return said
        return said, {folder.name: rows_in(folder) for folder in sorted(out.iterdir())}

    return of_engine


def rows_in(folder: Path) -> list[str]:
    """The rows that were written, whatever the files and the order in them."""
    assert not [p for p in folder.iterdir() if p.suffix != ".parquet"]
    table = pyarrow.parquet.read_table(folder)
    types = {field.name: str(field.type) for field in table.schema}
    return sorted(repr((types if not i else {}, row)) for i, row in enumerate(table.to_pylist()))


def same(run: Run, program: str, *words: str) -> Any:
    """Both engines answer the same; the answer."""
    expected, found = run("reference", program, *words), run("spark", program, *words)
    assert shape(found) == shape(expected)
    return expected


def shape(answer: Any) -> Any:
    """The answer; of what a reader of Parquet says about a file only that it cannot be read."""
    if isinstance(answer, dict):
        message = re.sub(
            r"(cannot be read: ).*", r"\1…", answer["error"]["message"], flags=re.DOTALL
        )
        return {**answer["error"], "message": message}
    said, rows = answer
    return said, {
        name: sorted(re.sub(r"^\({.*?}, ", "(", row) for row in of) for name, of in rows.items()
    }


def write(path: Path, form: str, table: pa.Table = TABLE) -> str:
    """The table in a form of files."""
    match form:
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "delta":
            deltalake.write_deltalake(str(path), table.slice(0, 2))
            deltalake.write_deltalake(str(path), table.slice(2), mode="append")
        case "csv":
            pyarrow.csv.write_csv(table.drop_columns(["at"]), str(path) + ".csv")
            return str(path) + ".csv"
        case "jsonl":
            lines = [json.dumps(row, default=str) for row in table.to_pylist()]
            Path(f"{path}.jsonl").write_text("\n".join(lines))
            return f"{path}.jsonl"
    if form == "parquet":
        path.rename(f"{path}.parquet")
        return f"{path}.parquet"
    return str(path)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("parquet", ("day", "--every", "1w")),
        ("delta", ("day", "--every", "1mo", "--ticks-at-once", "2")),
        ("delta", ("text", "--every", "2mo", "--start", "2023-12-31T00:00:01")),
        ("parquet", ("text", "--every", "2mo", "--start", "2023-12-31T00:00:01")),
        ("csv", ("number",)),
        ("jsonl", ("day", "--every", "4w")),
        ("delta", ()),
    ],
    ids=lambda words: words if isinstance(words, str) else "-".join(words).replace("--", ""),
)
def test_forms(run: Run, here: Path, form: str, words: tuple[str, ...]) -> None:
    path = write(here / "data", form)
    column, *rest = words or ("",)
    at_once = rest[-2:] if "--ticks-at-once" in rest else []
    rest = rest[:-2] if at_once else rest
    given = ["--input", f"rows={path}{':' if column else ''}{column}", *rest]
    expected = run("reference", DECLARED + PROGRAM, *given)
    found = run("spark", DECLARED + PROGRAM, *given, *at_once)
    assert shape(found) == shape(expected)
    assert expected[0]["ticks"]


@pytest.mark.parametrize("form", ["parquet", "delta", "csv", "jsonl"])
def test_inputs_without_a_schema(run: Run, here: Path, form: str) -> None:
    path = write(here / "data", form)
    same(run, "rows -> out", "--input", f"rows={path}:day", "--every", "1mo")


MOMENTS = """
rows -> map(lambda r: r.v) -> values
tick() -> rename(number="tick") -> ticks
"""


@pytest.mark.parametrize(
    "words", [("3mo",), ("7d",), ("1mo", "--start", "2024-01-30T23:59:59.999999")]
)
def test_moments(run: Run, here: Path, words: tuple[str, ...]) -> None:
    path = write(here / "data", "parquet")
    same(run, DECLARED + MOMENTS, "--input", f"rows={path}:at", "--every", *words)


ITEMS = {
    "long": [1, -(2**63), None],
    "double": [0.5, float("nan"), float("inf"), None],
    "string": ["", "ä\U0001f600", None],
    "boolean": [True, None],
    "date": [date(1, 1, 1), date(9999, 12, 31), None],
    "decimal(10,2)": [Decimal("0.50"), Decimal("-99999999.99"), None],
    "array<long>": [[1, None], [], None],
    "binary": [b"\x00\xff", None],
}


def test_items_of_every_type(run: Run, here: Path) -> None:
    words = []
    program = ""
    for number, (of, values) in enumerate(ITEMS.items()):
        column = pa.array(values)
        if of.startswith("decimal"):
            column = column.cast(pa.decimal128(10, 2))
        pyarrow.parquet.write_table(pa.table({"item": column}), f"i{number}.parquet")
        words += [
            "--input",
            f"i{number}=i{number}.parquet",
            "--input",
            f"j{number}=i{number}.parquet",
        ]
        program += (
            f'i{number} = source("{of}")\ni{number} -> out{number}\nj{number} -> more{number}\n'
        )
        program += f"i{number} -> sort() -> enumerate() -> down{number}\n"
    same(run, program, *words)


def test_types_that_spark_does_not_read(run: Run, here: Path) -> None:
    odd = pa.table(
        {
            "k": pa.array(["x", "y"]).dictionary_encode(),
            "v": pa.array([1, 2**40], pa.uint64()),
            "at": pa.array([1000, 1_700_000_000_123_456_000], pa.timestamp("ns")),
        }
    )
    pyarrow.parquet.write_table(odd, "odd.parquet")
    same(run, DECLARED + "rows -> out", "--input", "rows=odd.parquet")
    same(run, "rows -> out", "--input", "rows=odd.parquet:at", "--every", "100mo")


@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("values", "of"),
    [
        (pa.array([Decimal("1.5"), Decimal("1.505")], pa.decimal128(6, 3)), "decimal(4,2)"),
        (pa.array([[], [Decimal("1.505")]], pa.list_(pa.decimal128(6, 3))), "array<decimal(4,2)>"),
        (pa.array([2**53, 2**53 + 1]), "double"),
        (pa.array([0.5, 0.1]), "float"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else value,
)
def test_what_is_not_exact(run: Run, here: Path, form: str, values: Any, of: str) -> None:
    table = pa.table({"day": [1, 1], "v": values})
    if form == "delta":
        deltalake.write_deltalake("data", table)
    else:
        Path("data").mkdir()
        pyarrow.parquet.write_table(table, "data/a.parquet")
    program = f'rows = source("v {of}")\nrows -> out'
    message = same(run, program, "--input", "rows=data:day")["error"]["message"]
    assert "row 1, column `v`" in message


def test_folders_name_values_of_the_declared_types(run: Run, here: Path) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    folders = [
        ("01234", "5", "2024-01-30", "1.5"),
        ("AB1", "3000000000", "2024-03-03", null),
        (null, null, "2024-01-31", "10"),
        ("a%2Fb%3Dc", "-1", "2024-02-01", "0.25"),
    ]
    for number, (zipped, k, day, price) in enumerate(folders):
        folder = here / "data" / f"zip={zipped}" / f"k={k}" / f"day={day}" / f"price={price}"
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(pa.table({"v": [number]}), folder / "x.parquet")
    declared = 'rows = source("zip string, k long, day date, price decimal(9,2), v long")\n'
    words = ("--input", "rows=data:day", "--every", "1mo")
    said, found = same(run, declared + "rows -> out", *words)
    assert len(said["ticks"]) == 3
    assert sum(null in row for rows in found.values() for row in rows) == 0
    same(run, "rows -> out", *words)
    shutil.rmtree("out")
    error = same(run, 'rows = source("zip long")\nrows -> out', *words)["error"]["message"]
    assert "/zip=AB1/" in error
    assert "names the column `zip`: 'AB1' is not of type long" in error


def test_the_log_of_a_delta_table_has_the_values_of_its_folders(run: Run, here: Path) -> None:
    table = pa.table(
        {
            "zip": ["01234", None, "a/b=c %", "\u2028"],
            "k": [5, None, 3_000_000_000, -1],
            "at": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.50"), None, Decimal(2), Decimal(3)], pa.decimal128(9, 2)),
            "flag": [True, None, False, True],
            "day": DAYS,
            "v": [0, 1, 2, 3],
        }
    )
    by = ["zip", "k", "at", "price", "flag", "day"]
    deltalake.write_deltalake("data", table, partition_by=by)
    words = ("--input", "rows=data:day", "--every", "1mo")
    _, found = same(run, "rows -> out", *words)
    assert sum(len(rows) for rows in found.values()) == 4
    same(run, 'rows = source("zip string, price decimal(12,3), v long")\nrows -> out', *words)
    shutil.rmtree("out")
    early = same(run, "rows -> out", *words, "--start", "2024-02-01")["error"]["message"]
    # Files of partitions are written in any order, and the first of the log is named.
    assert any(f"row 0 is of 2024-01-{day}" in early for day in (30, 31))


def test_folders_with_columns_and_files_of_different_types(run: Run, here: Path) -> None:
    for month in (1, 2):
        folder = here / "data" / f"month={month}"
        folder.mkdir(parents=True)
        kind = pa.int32() if month == 1 else pa.int64()
        pyarrow.parquet.write_table(
            pa.table({"k": ["a"], "v": pa.array([month], kind)}), folder / "x.parquet"
        )
    same(run, "rows -> out", "--input", "rows=data")
    same(run, DECLARED + "rows -> out", "--input", "rows=data/*=1/*.parquet")


def test_files_that_spark_wrote(run: Run, here: Path, spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT string(id) k, id v, timestamp'2024-01-01 00:00:00' + make_interval(0,0,0,id) at "
        "FROM range(4)"
    )
    frame.coalesce(1).write.parquet(str(here / "data"))
    same(run, DECLARED + MOMENTS, "--input", "rows=data:at")


def test_csv_that_is_quoted_packed_and_changes_its_types(run: Run, here: Path) -> None:
    text = 'day,k,v\n2024-01-01,"a,\n""b""",1\n2024-01-02,"",\n2024-01-02,,3\n'
    (here / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    same(run, DECLARED + "rows -> out", "--input", "rows=a.csv.gz:day")
    (here / "b.csv").write_text("a,b,c\n" + "1,,2024-01-01\n" * 90_000 + "x,5,2024-01-01 10:00\n")
    same(run, "b -> aggregate(by='a', n=count(), b=max('b')) -> n", "--input", "b=b.csv")


def test_several_inputs_share_their_ticks(run: Run, here: Path) -> None:
    path = write(here / "data", "parquet")
    (here / "q.jsonl").write_text('{"x": 1}\n\n{"x": null, "y": [1, "a"]}\n')
    pyarrow.parquet.write_table(
        pa.table({"at": [datetime(2023, 12, 31, 23, tzinfo=UTC)], "_1": [1], "_2": ["x"]}),
        "p.parquet",
    )
    program = "rows -> map(lambda r: r.v) -> v\npairs -> p\nq -> map(lambda r: r.x) -> x"
    inputs = (f"rows={path}:day", "pairs=p.parquet:at", "q=q.jsonl")
    words = [word for each in inputs for word in ("--input", each)]
    assert same(run, program, *words)[0]["ticks"][0] == {"v": 0, "p": 1, "x": 2}


def test_no_rows_at_all(run: Run, here: Path) -> None:
    pyarrow.parquet.write_table(TABLE.slice(0, 0), "none.parquet")
    assert same(run, DECLARED + PROGRAM, "--input", "rows=none.parquet:day")[0] == {"ticks": []}
    (here / "none.jsonl").write_text("")
    same(run, DECLARED + PROGRAM, "--input", "rows=none.jsonl:day")


BROKEN = b"PAR1 this is no Parquet file PAR1"


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ({}, "rows=nope.parquet", "nothing to read"),
        ({"a.csv": "k,v\na,1\n"}, "rows=a.csv:day", "tick column `day` is missing"),
        ({"a.csv": "k\na\n"}, "rows=a.csv", "column `v` is missing"),
        ({"a.csv": "k,v\na,x\n"}, "rows=a.csv", "line 2, column `v`: 'x' is not of type long"),
        (
            {"a.csv": "k,v\na,1,2\n"},
            "rows=a.csv",
            "line 2 has 3 fields, and the file",
        ),
        ({"a.csv": ""}, "rows=a.csv", "cannot be read"),
        ({"a.csv": "k,v,t\na,1,0\na,2,\n"}, "rows=a.csv:t", "it is null"),
        ({"a.csv": "k,v,t\na,1,0\na,2,-3\n"}, "rows=a.csv:t", "row 1 is of tick -3"),
        ({"a.csv": "k,v,t\na,1,0\na,2,0.5\n"}, "rows=a.csv:t", "`t` is double, which tells"),
        ({"a.csv": "k,v,t\na,1,yes\n"}, "rows=a.csv:t", "tick column `t`"),
        ({"a.jsonl": '{"k": "a"}\n'}, "rows=a.jsonl", "column `v` is missing"),
        ({"a.jsonl": '{"k": "a", "v": "x"}\n'}, "rows=a.jsonl", "in tick 0, .*row 0, column `v`"),
        ({"a.jsonl": '{"k": "a"}\n{\n', "b.jsonl": "[]"}, "rows=.", "a.jsonl`, line 2 is not JSON"),
        ({"a.jsonl": "{}\n[1]\n"}, "rows=a.jsonl", "line 2 is no JSON object"),
        ({"a.jsonl": '{"k": 1, "v": 1, "t": true}\n'}, "rows=a.jsonl:t", "neither a number"),
        ({"a.jsonl": '{"k": "", "v": 9223372036854775808}\n'}, "rows=a.jsonl", "64 bits"),
        (
            {
                "a.jsonl": '{"k": "a", "v": 1, "t": 4}\n{"k": "a", "v": 1.5, "t": 3}\n',
                "b.jsonl": '{"k": 2, "v": "x", "t": 2}\n',
            },
            "rows=*.jsonl:t",
            "in tick 2, `b.jsonl`: .*row 0, column `k`",
        ),
        ({"a.jsonl": "{}", "b.csv": "k,v\n"}, "rows=.", "several kinds"),
        ({"a.parquet": BROKEN}, "rows=a.parquet", "cannot be read"),
        ({"a.txt": "x"}, "rows=a.txt", "no known kind"),
    ],
)
def test_errors(run: Run, here: Path, content: dict[str, Any], words: str, message: str) -> None:
    (here / "data").mkdir()
    for name, text in content.items():
        (here / "data" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    name, _, path = words.partition("=")
    found = same(run, DECLARED + PROGRAM, "--input", f"{name}=data/{path}")
    assert found["error"]["code"] == "input"
    assert re.search(message, found["error"]["message"])


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "delta"])
def test_a_null_where_none_may_be(run: Run, here: Path, form: str) -> None:
    path = write(here / "data", form)
    program = 'rows = source("k string, v long not null")\nrows -> out'
    error = same(run, program, "--input", f"rows={path}:day")["error"]
    assert error["code"] == "input"
    assert re.search(
        r"null, where the schema says `not null` \(row \d+, column `v`\)", error["message"]
    )
    kept = 'rows = source("number int not null, day date not null")\nrows -> out'
    assert "error" not in same(run, kept, "--input", f"rows={path}:day")


@pytest.mark.parametrize(
    ("form", "words", "message"),
    [
        ("parquet", ("day", "--start", "2024-02-01"), "row 0 is of 2024-01-30"),
        ("parquet", ("number", "--start", "2024-02-01"), "holds numbers"),
        ("parquet", ("at", "--start", "2024-01-31"), "row 0 is of 2024-01-30T23:59:59"),
        ("parquet", ("v",), "it is null"),
        ("delta", ("v",), "it is null"),
        ("delta", ("nope",), "tick column `nope` is missing"),
        ("jsonl", ("day", "--start", "2024-01-31"), "row 0 is of"),
    ],
)
def test_wrong_ticks(run: Run, here: Path, form: str, words: tuple[str, ...], message: str) -> None:
    path = write(here / "data", form)
    found = same(run, DECLARED + PROGRAM, "--input", f"rows={path}:{words[0]}", *words[1:])
    assert re.search(message, found["error"]["message"])


def test_a_column_of_the_wrong_type(run: Run, here: Path) -> None:
    path = write(here / "data", "delta")
    program = 'rows = source("k long")\nrows -> out'
    assert "column `k`" in same(run, program, "--input", f"rows={path}")["error"]["message"]


def test_a_delta_table_in_parts(run: Run, here: Path) -> None:
    table = TABLE.select(["day", "text"]).append_column("v", [[1, 2, 3, None]])
    table = table.append_column("k", [["x y", "ä", "x y", "="]])
    deltalake.write_deltalake(str(here / "a b"), table, partition_by=["day", "k"])
    words = ("--input", "rows=a b:day", "--every", "1mo")
    same(run, DECLARED + "rows -> out", *words)
    same(run, 'rows = source("k string, v double, text date")\nrows -> out', *words)


def test_a_corrupt_delta_table(run: Run, here: Path) -> None:
    path = write(here / "data", "delta")
    for log in (here / "data" / "_delta_log").iterdir():
        log.write_text("{")
    assert same(run, PROGRAM, "--input", f"rows={path}")["error"]["code"] == "input"


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_a_file_that_breaks_off(run: Run, here: Path, form: str) -> None:
    path = Path(write(here / "data", form))
    file = path if form == "parquet" else next(path.glob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[4:200] = b"\xff" * 196
    file.write_bytes(content)
    found = [
        run(engine, DECLARED + PROGRAM, "--input", f"rows={path}")
        for engine in ("reference", "spark")
    ]
    assert {f["error"]["code"] for f in found} == {"input"}
    assert all("cannot be read" in f["error"]["message"] for f in found)


def test_a_function_that_fails_leaves_nothing(run: Run, here: Path) -> None:
    path = write(here / "data", "parquet")
    program = "rows -> map(lambda r: 6 // (r.v - 2) if r.v else 0) -> out"
    for engine in ("reference", "spark"):
        found = run(engine, program, "--input", f"rows={path}:day", "--every", "1mo")["error"]
        assert (found["code"], found["line"], found["operator"]) == ("runtime", 1, "map")
        assert "ZeroDivisionError" in found["message"]
        assert "tick 2" in found["message"]
        assert '"v": 2' in found["message"]


def test_outputs_replace_those_of_either_engine(run: Run, here: Path) -> None:
    path = write(here / "data", "parquet")
    words = ("--input", f"rows={path}")
    first = run("reference", "rows -> out", *words)
    (here / "out" / "spark").symlink_to(here / "out" / "reference")
    assert shape(run("spark", "rows -> out", *words)) == shape(first)
    assert shape(run("reference", "rows -> out", *words)) == shape(first)
