"""CSV: its records do not depend on blocks, and each row that is none says where it is, and why."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.cli.main import main
from hydro_core.errors import DataError
from hydro_core.files import csv_files
from hydro_core.files import csv_files as csv_records
from hydro_core.files.csv_files import records_of
from hydro_core.files.inputs import InputFile
from hydro_core.files.places import find
from hydro_core.files.scan import Scan, read
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import PLACE, REASON, ItemType, declared_columns, widened
from tests.support.csv_cases import CASES, REFUSED, CsvCase

ITEM = parse_ddl("k long, v string")


def rows_of(path: Path, item: ItemType = ITEM) -> list[dict[str, Any]]:
    file = InputFile("in", str(path))
    fileset = find(file, declared_columns(item) or {})
    found = read(Scan(file, fileset, item), fileset.files)
    return [dict(row) for row in from_arrow(found.items, item)]


def written(folder: Path, case: CsvCase) -> Path:
    (folder / case.name).write_bytes(case.content)
    return folder / case.name


@pytest.mark.parametrize("name", CASES)
def test_rows_and_rejects(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    found = rows_of(written(tmp_path, case), widened(ITEM))
    assert [(row["k"], row["v"]) for row in found if row[REASON] is None] == case.rows
    assert [(row[PLACE], row[REASON]) for row in found if row[REASON]] == [
        (f"{case.name}, line {line}", reason) for line, reason in case.rejects
    ]


@pytest.mark.parametrize("name", CASES)
def test_who_reads_strictly_refuses_the_first_reject(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = written(tmp_path, case)
    if not case.rejects:
        assert [(row["k"], row["v"]) for row in rows_of(path)] == case.rows
        return
    line, reason = case.rejects[0]
    with pytest.raises(DataError) as caught:
        rows_of(path)
    message = caught.value.diagnostics[0].message
    assert f"`{path}`, line {line}" in message
    assert reason.removeprefix("it ") in message


@pytest.mark.parametrize("item", [ITEM, widened(ITEM)], ids=["strict", "tolerant"])
@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_none(tmp_path: Path, name: str, item: ItemType) -> None:
    content, message = REFUSED[name]
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError) as caught:
        rows_of(tmp_path / "a.csv", item)
    assert message in caught.value.diagnostics[0].message


@pytest.mark.parametrize("seed", range(40))
def test_what_python_writes_is_read_back(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random tables with random quoting and line ends, at random sizes of blocks."""
    random = Random(seed)
    monkeypatch.setattr(csv_records, "BLOCK", random.choice([1, 2, 3, 7, 64, 1000]))
    pieces = ["a", '"', '""', ",", "\r", "\n", "\r\n", " ", "é", "\u2028", "x" * 9]
    table = [
        (n, "".join(random.choices(pieces, k=random.randrange(6))))
        for n in range(random.randrange(40))
    ]
    text = io.StringIO()
    quoting = random.choice([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    out = csv.writer(text, quoting=quoting, lineterminator=random.choice(["\n", "\r\n", "\r"]))
    out.writerows([("k", "v"), *table])
    (tmp_path / "a.csv").write_bytes(text.getvalue().encode())
    assert [(row["k"], row["v"]) for row in rows_of(tmp_path / "a.csv")] == table


@pytest.mark.parametrize("seed", range(40))
def test_records_do_not_depend_on_blocks(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any text at all, well formed or not, is cut into the same records, which say the same."""
    random = Random(seed)
    pieces = [b"a", b'"', b'"', b",", b"\r", b"\n", b'"\r\n', b"\xff"]
    content = b"k,v\n" + b"".join(random.choices(pieces, k=random.randrange(80)))
    (tmp_path / "a.csv").write_bytes(content)
    found = set()
    for block in (1, 2, 3, 5, 16, 1 << 20):
        monkeypatch.setattr(csv_records, "BLOCK", block)
        whole = [
            (one[n], one.wrong.get(n))
            for _, one in records_of(tmp_path / "a.csv")
            for n in range(len(one))
        ]
        found.add(tuple(whole))
    assert len(found) == 1


def test_a_row_that_takes_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "BLOCK", 10)
    monkeypatch.setattr(csv_records, "LONGEST", 100)
    (tmp_path / "a.csv").write_bytes(b'k,v\n1,a\n2,"' + b"3,c\n" * 100 + b'"\n')
    for item in (ITEM, widened(ITEM)):
        with pytest.raises(DataError, match="line 3 begins a row of more than"):
            rows_of(tmp_path / "a.csv", item)


@pytest.mark.parametrize(
    ("fields", "type_"),
    [
        (["1", "", "-2"], "long"),
        (["1", "2.5"], "double"),
        (["1", "true"], "boolean"),
        (["5", "true"], "string"),
        (["2026-01-01", ""], "date"),
        (["2026-01-01", "2026-01-01 10:00:00"], "timestamp_ntz"),
        (["2026-01-01", "2026-01-01 10:00:00.123456789"], "timestamp_ntz"),
        (["9999-01-01", "2026-01-01 10:00:00.123456789"], "string"),
        (["2026-01-01", "x"], "string"),
        (["007"], "long"),
        (['""', ""], "string"),
        (["", ""], "unknown"),
    ],
)
@pytest.mark.parametrize("far", [0, 1200])
def test_the_type_of_a_column_is_one_that_all_fields_are_of(
    tmp_path: Path, fields: list[str], type_: str, far: int
) -> None:
    """Also where they are in different blocks, in any order."""
    for order in (fields, fields[::-1]):
        text = (
            f"v,w\n{order[0]},1\n"
            + f"{order[-1]},{'9' * 1000}\n" * far
            + "".join(f"{f},1\n" for f in order)
        )
        (tmp_path / "a.csv").write_text(text)
        found = find(InputFile("in", str(tmp_path / "a.csv")), {}).types or {}
        assert str(found["v"]) == type_


def test_files_whose_types_differ_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\n1,2026-01-01\n")
    (tmp_path / "b.csv").write_text("k,v\n2,2026-01-02\n")
    (tmp_path / "c.csv").write_text("k,v\n3,soon\n")
    with pytest.raises(DataError) as caught:
        find(InputFile("in", str(tmp_path)), {})
    message = caught.value.diagnostics[0].message
    assert "a.csv" in message
    assert "c.csv" in message
    assert "`v`" in message


FIELDS = {
    "long": [
        *("1", "-5", "+7", " 9 ", "0x1F", "0X1f", "-0x1", "1_000", "1e3", "1.0", "x", "", "-", "٣"),
        *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "9" * 5000),
    ],
    "tinyint": ["127", "-128", "128", "-129", "0x7f", "0xff", "007"],
    "double": [
        "1",
        "1e400",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1_0.0",
        "0x1p3",
        " 1.5 ",
        ".",
        "1,5",
    ],
    "boolean": ["true", "True", "TRUE", "0", "1", "2", "yes", " true ", "t", ""],
}


@pytest.mark.parametrize("of", FIELDS)
def test_fields_are_judged_together_as_they_are_one_by_one(of: str) -> None:
    arrow = arrow_type(parse_ddl(of))
    fields = pa.array([*FIELDS[of], None])
    alone = []
    for place in range(len(fields)):
        values, wrong = csv_files._asked(fields.slice(place, 1), arrow)
        alone.append(None if wrong else str(values[0]))
    values, wrong = csv_files._typed(fields, arrow)
    assert [None if n in wrong else str(v) for n, v in enumerate(values)] == alone
    assert None in alone


def test_many_wrong_fields_are_not_asked_for_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, whole = [0], csv_files.parsed

    def counted(*arguments: Any) -> pa.Table:
        asked[0] += 1
        return whole(*arguments)

    monkeypatch.setattr(csv_files, "parsed", counted)
    (tmp_path / "a.csv").write_text("k,v\n" + "".join(f"x{n},a\n" for n in range(5000)))
    assert len(rows_of(tmp_path / "a.csv", widened(ITEM))) == 5000
    assert asked[0] < 10


PROGRAM = 'a = source("k long, v string")\na -> out\n'


def by_command(folder: Path, engine: str) -> list[tuple[int | None, str | None]]:
    """What `run --input` writes of the files of a folder."""
    (folder.parent / "p.hydro").write_text(PROGRAM)
    words = ["--input", f"a={folder}", "--out", str(folder.parent / "out"), "--engine", engine]
    assert main(["run", str(folder.parent / "p.hydro"), *words]) == 0
    rows = pq.read_table(folder.parent / "out" / "out").to_pylist()
    return [(row["k"], row["v"]) for row in rows]


def right_files(folder: Path) -> list[tuple[int | None, str | None]]:
    """Writes all cases without rejects into one folder, and one with its columns in another order;
    gives their rows.
    """
    folder.mkdir()
    rows: list[tuple[int | None, str | None]] = [(5, "x"), (6, "y\nz")]
    (folder / "other order.csv").write_text('v,k\nx,5\n"y\nz",6')
    for number, case in enumerate(case for case in CASES.values() if not case.rejects):
        (folder / f"{number:02}{case.name}").write_bytes(case.content)
        rows += case.rows
    return rows


def key(row: tuple[int | None, str | None]) -> str:
    return repr(row)


def test_a_run_reads_all_of_them(tmp_path: Path) -> None:
    expected = right_files(tmp_path / "in")
    assert sorted(by_command(tmp_path / "in", "reference"), key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rejects])
def test_a_run_says_the_file_and_the_line_of_a_reject(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    right_files(tmp_path / "in")
    written(tmp_path / "in", case)
    (tmp_path / "p.hydro").write_text(PROGRAM)
    assert main(["run", str(tmp_path / "p.hydro"), "--input", f"a={tmp_path / 'in'}"]) == 1
    said = capsys.readouterr().err
    line, reason = case.rejects[0]
    assert f"{tmp_path / 'in' / case.name}`, line {line}" in said
    assert reason.removeprefix("it ") in said


@pytest.mark.parametrize(
    ("values", "types"),
    [
        (("1", "2.5", "true"), ("double in `{b}`", "bool in `{c}`")),
        (("1", "", "true"), ("int64 in `{a}`", "bool in `{c}`")),
        (("2026-01-01", "2026-01-02", "soon"), ("date32[day] in `{a}`", "string in `{c}`")),
    ],
)
def test_columns_of_files_whose_types_differ_are_said_with_both_files(
    tmp_path: Path,
    values: tuple[str, ...],
    types: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {name: tmp_path / "in" / f"{name}.csv" for name in "abc"}
    (tmp_path / "in").mkdir()
    for file, value in zip(files.values(), values, strict=True):
        file.write_text(f"k,v\n{value},x\n")
    (tmp_path / "p.hydro").write_text("a -> out\n")
    assert main(["run", str(tmp_path / "p.hydro"), "--input", f"a={tmp_path / 'in'}"]) == 1
    said = " and ".join(types).format(**files)
    assert f"the column `k` is {said}" in capsys.readouterr().err
