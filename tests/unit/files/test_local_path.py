"""What the `path` of a landing may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.errors import ProgramError
from hydro_core.files.inputs import InputFile
from hydro_core.storage.remote import local_path
from tests.support.refused import Refused

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("payments", "payments"),
        ("payments/*.csv", "payments/*.csv"),
        ("/in/payments", "/in/payments"),
        ("a:b", "a:b"),
        ("file:///in/payments", "/in/payments"),
        ("file:/in/payments", "/in/payments"),
        ("file://localhost/in/payments", "/in/payments"),
        ("FILE:///in/payments", "/in/payments"),
        ("file:///in/all%20of%3F/*.csv", "/in/all of?/*.csv"),
    ],
)
def test_paths_and_urls(text: str, path: str) -> None:
    assert local_path(text) == Path(path)


@pytest.mark.parametrize("url", ["s3a://bucket/a.parquet", "abfss://c@a.b/x", "hdfs://h/x"])
def test_a_store_of_objects_is_told_with_what_helps(url: str, refused: Refused) -> None:
    with refused(ProgramError, "config"):
        local_path(url)


def test_a_place_in_a_store_is_an_input(refused: Refused) -> None:
    found = InputFile.parse("orders=s3a://bucket/orders:day")
    assert (found.path, found.column, str(found.place)) == (
        *("s3a://bucket/orders", "day"),
        "s3a://bucket/orders",
    )
    with refused(ProgramError, "config"):
        InputFile.parse("orders=hdfs://h/x:day")


def test_an_input_may_be_the_url_of_a_path() -> None:
    assert InputFile.parse("a=file:///data/a.csv:day") == InputFile("a", "/data/a.csv", "day")


@pytest.mark.parametrize("words", [("run", "no.hydro", "--input", "a=x", "--out"), ("init",)])
def test_a_command_writes_to_no_url(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "hdfs://h/out"]) == 1
    assert "`hdfs:` is neither read nor written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
