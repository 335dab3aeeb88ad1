"""`hydrotick test`: what a flow's tests say is compared with what its ticks give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydrotick.flow_tests import compare
from tests.unit.projects.declared import declare_py, declare_yaml

PROGRAM = """
payments = source("user string, day date, amount long, rate double, paid decimal(8,2)")
payments -> persist() -> map(lambda p: (p.user, p.amount)) -> totals
payments -> sort_by_key(lambda p: p.amount) -> ranked
payments -> map(lambda p: 10 / p.amount) -> shares
"""
SOUND = """
they add up:
  ticks:
  - in: {payments: [{user: ann, day: 2026-01-01, amount: 1, rate: 1, paid: "2.5"}]}
    out: {totals: [[ann, 1]], shares: [10.0]}
  - in: {payments: [{user: cat, amount: 9}, {user: bob, amount: 2}]}
    out:
      totals: [[bob, 2], [ann, 1], [cat, 9]]
      ranked: [{user: bob, amount: 2}, {user: cat, amount: 9}]
  - {}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a flow, within which we are."""
    made = declare_yaml(tmp_path, "totals")
    (made / "totals.hydro").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(made)
    return made


def outcome(folder: Path, text: str, *words: str) -> int:
    (folder / "tests.yaml").write_text(text, encoding="utf-8")
    return main(["test", *words])


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_rows_are_read_by_their_types_and_bags_have_no_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(folder, SOUND) == 0, capsys.readouterr().out
    assert "1 passed" in capsys.readouterr().out


PAID = """
digits:
  ticks:
  - in: {payments: [{user: ann, paid: 12345678901234567.89}, {user: bob, paid: 0x10}]}
    out: {paid: [{user: ann, paid: 12345678901234567.89}]}
"""


def test_numbers_are_read_by_the_declared_type(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through a double it was 12345678901234568.00, on both sides."""
    program = 'payments = source("user string, paid decimal(38,2)")\npayments -> {} -> paid\n'
    (folder / "totals.hydro").write_text(program.format('filter(lambda p: p.user == "ann")'))
    assert outcome(folder, PAID) == 0, capsys.readouterr().out
    assert outcome(folder, PAID.replace("ann, paid: 12345678901234567.89}]", "x}]")) == 1
    assert "12345678901234567.89" in capsys.readouterr().out


@pytest.mark.spark
def test_on_spark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(folder, SOUND, "--engine", "spark") == 0, capsys.readouterr().out
    wrong = SOUND.replace("[cat, 9]", "[cat, 8]")
    assert outcome(folder, wrong, "--engine", "spark", "--format", "json") == 1
    capsys.readouterr()


def test_a_difference_is_a_table_that_can_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = SOUND.replace("[cat, 9]", "[cat, 8], [dan, 1]").replace(
        "ranked: [{user: bob, amount: 2}, {user: cat, amount: 9}]",
        "ranked: [{user: cat, amount: 9}, {user: bob, amount: 2}]",
    )
    assert outcome(folder, wrong) == 1
    said = capsys.readouterr().out
    place = (folder / "tests.yaml").relative_to(Path.cwd())
    assert said.startswith(f"FAILED totals: they add up ({place}:2)\n")
    assert "  tick 1, `totals` (line 8): `-` is expected and missing, `+` is not expected\n" in said
    assert "\n0 passed, 1 failed in " in said
    table = (
        '       item\n       ["ann", 1]\n       ["bob", 2]\n'
        '    -  ["cat", 8]\n    +  ["cat", 9]\n    -  ["dan", 1]\n'
    )
    assert table in said
    assert "       user  day   amount  rate  paid\n" in said


def test_an_ordered_output_is_compared_in_its_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "{payments: [{user: b, amount: 2}, {user: a, amount: 1}]}"
    ranked = "{{ranked: [{{user: {}, amount: {}}}, {{user: {}, amount: {}}}]}}"
    text = "t:\n  ticks: [{{in: {}, out: {}}}]\n"
    assert outcome(folder, text.format(rows, ranked.format("a", 1, "b", 2))) == 0
    assert outcome(folder, text.format(rows, ranked.format("b", 2, "a", 1))) == 1
    capsys.readouterr()


def test_it_is_told_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(folder, SOUND.replace("[cat, 9]", "[cat, 8]"), "--format", "json") == 1
    found = told(capsys)
    assert (found["passed"], found["failed"], found["errors"]) == (0, 1, [])
    (test,) = found["tests"]
    assert (test["flow"], test["test"], test["line"]) == ("totals", "they add up", 2)
    assert test["differences"] == [
        {
            "tick": 1,
            "output": "totals",
            "line": 8,
            "missing": [["cat", 8]],
            "unexpected": [["cat", 9]],
            "same": 2,
        }
    ]


def test_rows_count_as_often_as_they_come() -> None:
    assert list(compare([1, 1], [1], ordered=False)) == [("-", 1), (" ", 1)]
    assert list(compare([], [[2, None]], ordered=False)) == [("+", [2, None])]
    assert list(compare([{"a": None}], [{"a": None}], ordered=True)) == [(" ", {"a": None})]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("t: {ticks: [{in: {payment: []}}]}", 1, "the program has no input `payment`"),
        ("t:\n  ticks:\n  - out: {total: []}", 3, "the program has no output `total`"),
        ("t:\n  ticks:\n  - in:\n      payments:\n      - {usr: a}", 5, "no column 'usr'"),
        ("t:\n  ticks:\n  - out:\n      totals:\n      - [1, 2]", 5, "this does not fit (string"),
    ],
)
def test_what_does_not_fit_the_program_is_a_failure_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, says: str
) -> None:
    assert outcome(folder, f"{text}\n{SOUND}", "--format", "json") == 1
    found = told(capsys)
    assert (found["passed"], found["failed"]) == (1, 1)
    error = found["tests"][0]["error"]
    assert says in error["message"]
    assert (error["file"], error["line"]) == (str(folder / "tests.yaml"), line)


def test_a_tick_that_fails_is_a_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(folder, "t: {ticks: [{in: {payments: [{amount: 0}]}}]}") == 1
    assert "division by zero" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("t: {}", 1, "the test `t` has no ticks"),
        ("t: {ticks: []}", 1, "the test `t` has no ticks"),
        ("t: {tick: []}", 1, "the test `t` has no `tick`"),
        ("t: {ticks: [{inn: {}}]}", 1, "a tick has no `inn`"),
        ("t: {flow: total, ticks: [{}]}", 1, "this folder has no flow `total`"),
        ("t: {ticks: [{in: {payments: 3}}]}", 1, "`payments` is a list, and this is 3"),
        ("t: {ticks: [{in: 3}]}", 1, "`in` has names with values, and this is 3"),
        ("- 3", 1, "a file of tests has names with values"),
        ("t: {ticks: [{}]}\nt: {ticks: [{}]}", 2, "`t` is said twice"),
        ("t: [", 1, "this is no YAML"),
    ],
)
def test_a_file_that_is_wrong_is_told_beside_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, says: str
) -> None:
    (folder / "test_more.yaml").write_text(SOUND, encoding="utf-8")
    assert outcome(folder, text, "--format", "json") == 1
    found = told(capsys)
    assert (found["passed"], found["failed"]) == (1, 1)
    (wrong,) = found["errors"]
    assert wrong["name"] == "tests.yaml"
    assert says in wrong["error"]["message"]
    assert wrong["error"]["line"] in (line, line + 1)


def test_a_flow_that_is_wrong_is_told_beside_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder.parents[1]
    wrong = declare_yaml(root, "wrong", ticks="{}")
    broken = declare_yaml(root, "broken")
    (broken / "totals.hydro").write_text("x -> y\n", encoding="utf-8")
    for made in (wrong, broken):
        (made / "tests.yaml").write_text(SOUND, encoding="utf-8")
    assert outcome(folder, SOUND, "--format", "json") == 1
    found = told(capsys)
    assert found["passed"] == 1
    assert {error["name"] for error in found["errors"]} == {"wrong", "broken"}
    assert outcome(folder, SOUND, "totals") == 0
    assert outcome(folder, SOUND, "wrong") == 1
    assert "`ticks` has no `start`" in capsys.readouterr().err


def test_of_several_flows_in_a_folder_a_test_says_which(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = declare_py(folder.parents[1], "two", "first")
    with (made / "asset.py").open("a", encoding="utf-8") as file:
        file.write('from dataclasses import replace\nZ = replace(X, name="second")\n')
    text = "t: {flow: second, ticks: [{in: {payments: [{user: a}]}, out: {totals: [{user: a}]}}]}\n"
    assert outcome(made, text, "--format", "json") == 0
    assert [test["flow"] for test in told(capsys)["tests"]] == ["second"]
    assert outcome(made, text, "first", "--format", "json") == 0
    assert told(capsys)["tests"] == []
    assert outcome(made, text.replace("flow: second, ", "")) == 1
    assert "which flow is this about?" in capsys.readouterr().out


def test_where_there_are_none_it_is_said_where_they_would_be(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    assert main(["test"]) == 0
    said = capsys.readouterr().out
    assert "0 passed" in said
    assert "`tests.yaml` or `test_*.yaml`" in said


def test_it_loads_neither_dagster_nor_an_engine(folder: Path) -> None:
    (folder / "tests.yaml").write_text(SOUND, encoding="utf-8")
    heavy = ("dagster", "pyspark", "great_expectations", "egglog", "deltalake", "pandas")
    program = (
        "import sys; from hydro_core.cli.main import main; main(['test']); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    words = [sys.executable, "-P", "-c", program]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    assert "1 passed" in done.stdout
    assert done.stdout.endswith("[]\n")
