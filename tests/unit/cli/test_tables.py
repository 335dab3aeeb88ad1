"""Tables of text, and rows of any number: printed as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hydro_core.cli.output import print_json, print_lines
from hydro_core.printing.tables import table_lines

ROWS = [("ann", 5, None), ("bob\n", -12, {"k": [1]})]


def test_columns_of_numbers_stand_at_the_right() -> None:
    assert list(table_lines(["user", "n", "more"], ROWS)) == [
        "user     n  more",
        "ann      5  null",
        'bob\\n  -12  {"k": [1]}',
    ]


def test_a_long_cell_is_cut() -> None:
    assert list(table_lines(["text"], [["abcdefgh"]], widest=4)) == ["text", "abc…"]


def test_without_rows_there_is_the_header() -> None:
    assert list(table_lines(["user", "n"], [])) == ["user  n"]


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 2500])
def test_rows_are_one_object_however_many_they_are(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ({"n": n, "x": float("inf")} for n in range(count))
    print_json({"tick": "t", "rows": rows})
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    made = [{"n": n, "x": "Infinity"} for n in range(count)]
    assert said == json.dumps({"tick": "t", "rows": made}) + "\n"


def test_lines_are_printed_before_the_last_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    def lines() -> Iterator[str]:
        yield from map(str, range(2000))
        assert capsys.readouterr().out.startswith("0\n1\n")
        yield "end"

    print_lines(lines())
    assert capsys.readouterr().out == "end\n"
