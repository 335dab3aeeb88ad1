"""Files that cannot be read are input errors that name file and line, and say what helps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.places import find
from hydro_core.files.scan import cut, read_all, scans_of, tick_inputs
from hydro_core.ticks.every import TickLength
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from tests.support.refused import Refused

ROWS = '{"name": "ann", "n": 1}\n{"name": "bé", "n": 2}\n'
TABLE = "name,n\nann,1\nbé,2\n"
UTF8 = "save it as UTF-8"
AGAIN = "write it again"


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"name": ["ann"] * 1000, "n": list(range(1000))}), sink)
    return sink.getvalue().to_pybytes()


def _packed(text: str) -> bytes:
    return gzip.compress((text * 500).encode())


BAD = {
    "latin.jsonl": (ROWS.encode("latin-1"), "line 2 is not UTF-8", UTF8),
    "sixteen.jsonl": (ROWS.encode("utf-16"), "line 1 is not UTF-8", UTF8),
    "latin.jsonl.gz": (gzip.compress(ROWS.encode("latin-1")), "line 2 is not UTF-8", UTF8),
    "cut.jsonl.gz": (_packed(ROWS)[:-20], "cannot be read: ", AGAIN),
    "torn.jsonl.gz": (_packed(ROWS)[:40] + b"\0\1\2" * 30, "cannot be read: ", AGAIN),
    "none.jsonl.gz": (ROWS.encode(), "cannot be read: Not a gzipped file", AGAIN),
    "latin.csv": (TABLE.encode("latin-1"), "line 3 is not UTF-8", UTF8),
    "late.csv": (
        ("name,n\n" + "ann,1\n" * 300_000 + "bé,2\n").encode("latin-1"),
        "line 300002 is not UTF-8",
        UTF8,
    ),
    "sixteen.csv": (TABLE.encode("utf-16"), "line 1 is not UTF-8", "iconv -f UTF-16"),
    "header.csv": (b"n\xe9,name,n\nx,ann,1\n", "line 1 is not UTF-8", UTF8),
    "latin.csv.gz": (gzip.compress(TABLE.encode("latin-1")), "line 3 is not UTF-8", UTF8),
    "cut.csv.gz": (_packed(TABLE)[:-20], "cannot be read: ", AGAIN),
    "none.csv.gz": (TABLE.encode(), "cannot be read: ", AGAIN),
    "ragged.csv": (
        b"name,n\nann,1\nbob\n",
        "line 3 has 1 fields, and the file's first line 2",
        "mend",
    ),
    "empty.csv": (b"", "cannot be read: Empty CSV file", AGAIN),
    "cut.parquet": (_parquet()[:-20], "cannot be read: ", AGAIN),
    "torn.parquet": (b"PAR1" + b"\0" * 200 + b"PAR1", "cannot be read: ", AGAIN),
    "packed.jsonl": (_packed(ROWS), "packed by gzip, which its name does not say", "`.gz`"),
    "packed.csv": (_packed(TABLE), "packed by gzip, which its name does not say", "`.gz`"),
    "packed.parquet": (gzip.compress(_parquet()), "packed by gzip, which its name", "unpack it"),
    "zstd.csv": (pa.compress(TABLE.encode(), "zstd", asbytes=True), "packed by zstd", "unpack it"),
    "parquet.csv": (_parquet(), "is Parquet, which its name does not say", "`.parquet`"),
    "parquet.jsonl": (_parquet(), "is Parquet, which its name does not say", "`.parquet`"),
    "half.jsonl": (
        ROWS.encode() + b'{"name": "b',
        "3 is not JSON: Unterminated string starting at (column 10)",
        "one JSON object",
    ),
    "bracket.jsonl": (b'{"name": "a", "n": 1\n', "line 1 is not JSON: ", "one JSON object"),
    "half_letter.jsonl": (ROWS.encode()[:-12], "line 2 is not UTF-8", UTF8),
    "text.parquet": (ROWS.encode(), "cannot be read: ", AGAIN),
}


@pytest.mark.parametrize("declared", ["name string, n long", ""], ids=["declared", "open"])
@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_file(tmp_path: Path, name: str, declared: str) -> None:
    content, message, cure = BAD[name]
    file = tmp_path / name
    file.write_bytes(content)
    item = parse_ddl(declared) if declared else None
    with pytest.raises(DataError) as caught:
        _read(file, item)
    (told,) = caught.value.diagnostics
    assert told.code == "input"
    assert str(file) in told.message
    assert message in told.message
    assert cure in told.help
    assert "\n" not in told.message


@pytest.mark.parametrize("features", [["deletionVectors"], ["columnMapping", "deletionVectors"]])
def test_a_delta_table_with_a_feature_that_is_not_read_is_told_by_its_name(
    tmp_path: Path, features: list[str]
) -> None:
    path = str(tmp_path)
    write_deltalake(path, pa.table({"n": [1, 2]}))
    _demand(tmp_path / "_delta_log" / f"{0:020}.json", features)
    readings = (
        lambda: scans_of([InputFile("rows", path)], {}),
        lambda: find(InputFile("rows", path), {}),
        lambda: find(InputFile("rows", path), {}, version=0),
    )
    for reading in readings:
        with pytest.raises(DataError) as caught:
            reading()
        (told,) = caught.value.diagnostics
        assert (told.code, path in told.message) == ("input", True)
        for feature in features:
            assert f"`{feature}`" in told.message
            assert f"DROP FEATURE {feature}" in told.help


def _demand(entry: Path, features: list[str]) -> None:
    """Makes the log say that who reads the table must know some features."""
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    demands = {"readerFeatures": features, "writerFeatures": features}
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **demands}
    entry.write_text("\n".join(map(json.dumps, actions)))


def _read(file: Path, item: ItemType | None = None) -> list[Any]:
    """The rows of a file, all of tick 0."""
    scan = scans_of([InputFile("rows", str(file))], {"rows": item} if item else {})
    inputs = [read_all(one) for one in scan]
    (tick,) = tick_inputs(inputs, cut(inputs, TickLength.parse("1d"), None))
    return list(tick.batches["rows"])


@pytest.mark.parametrize("name", ["mark.jsonl", "mark.csv"])
def test_a_mark_at_the_start_is_no_part_of_the_text(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes((ROWS if name.endswith("jsonl") else TABLE).encode("utf-8-sig"))
    assert list(_read(file)[0]) == ["name", "n"]


def test_half_a_surrogate_pair_is_no_text_and_no_byte_that_is_not_utf8(
    tmp_path: Path, refused: Refused
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"name": "a"}\n{"name": "\U0010ffff\\udc80"}\n', encoding="utf-8")
    with refused(DataError, "input"):
        _read(file)


@pytest.mark.parametrize("at", ["", "*.jsonl", "day=1"])
def test_a_link_to_what_is_not_there_is_refused(tmp_path: Path, at: str, refused: Refused) -> None:
    """Its rows would be missing, and nobody would know."""
    (tmp_path / "day=1").mkdir()
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "_passed_over.jsonl").symlink_to("nowhere")
    link = tmp_path / ("day=1" if at == "day=1" else "") / "more.jsonl"
    link.symlink_to("nowhere.jsonl")
    with refused(DataError, "input"):
        find(InputFile("rows", str(tmp_path / at)), {})
    link.unlink()
    link.symlink_to(tmp_path / "rows.jsonl")
    assert find(InputFile("rows", str(link)), {}).names


def test_a_link_to_a_folder_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "landed").mkdir()
    (tmp_path / "landed" / "rows.jsonl").write_text(ROWS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "more.jsonl").write_text(ROWS)
    (tmp_path / "landed" / "2026").symlink_to(elsewhere)
    with refused(DataError, "input"):
        find(InputFile("rows", str(tmp_path / "landed")), {})
    # as the place itself it is one
    (tmp_path / "linked").symlink_to(elsewhere)
    assert find(InputFile("rows", str(tmp_path / "linked")), {}).names
