"""`hydrotick optimize` in all its formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main

CHAT = """
add_member = source("string"); messages = source("string")
add_member -> persist() -> [0] broadcast
messages -> persist() -> [1] broadcast
broadcast = cross() -> delta() -> notify
"""
SORTED = 'a = source("long")\na -> persist() -> sort() -> out\n'
PLAN = "(chain (cross (old add_member) messages) (cross add_member (persist messages)))"


@pytest.fixture
def chat(tmp_path: Path) -> str:
    file = tmp_path / "chat.hydro"
    file.write_text(CHAT, encoding="utf-8")
    return str(file)


def test_text(chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", chat, "--validate", "5"]) == 0
    printed = capsys.readouterr()
    assert PLAN in printed.out
    assert "times as much" in printed.out
    assert "agree on 5 random runs" in printed.err


def test_sexpr(chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", chat, "--format", "sexpr"]) == 0
    assert capsys.readouterr().out == f"; notify\n{PLAN}\n"


def test_sinks_of_one_name_are_one_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "twice.hydro"
    file.write_text('a = source("long")\na -> sink("o"); a -> sink("o")\n', encoding="utf-8")
    assert main(["optimize", str(file), "--format", "sexpr"]) == 0
    assert capsys.readouterr().out == "; o\n(union a a)\n"
    assert main(["optimize", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"] == {"o": "(union a a)"}
    assert found["cost_after"] == found["cost_before"]
    assert main(["optimize", str(file), "--explain"]) == 0


def test_json_with_an_explanation(chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", chat, "--format", "json", "--explain"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"] == {"notify": PLAN}
    assert found["cost_after"] < found["cost_before"]
    (derivation,) = found["explanation"]
    (splitting,) = (r for r in derivation["rules"] if r["rule"] == "persist-split")
    assert splitting["before"] == "(persist ?a)"
    assert splitting["after"] == "(chain (old ?a) ?a)"


def test_an_explanation_for_people(chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", chat, "--explain"]) == 0
    printed = capsys.readouterr().out
    assert "  induction: by induction over ticks" in printed
    assert "    (persist ?a) => (chain (old ?a) ?a)\n" in printed


@pytest.mark.parametrize("style", ["mermaid", "svg"])
def test_drawings(chat: str, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", chat, "--format", style]) == 0
    assert "old" in capsys.readouterr().out


def test_statistics_change_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, stats = tmp_path / "p.hydro", tmp_path / "s.json"
    file.write_text(
        'a = source("(long, long)"); b = source("(long, long)")\n'
        "a -> persist() -> fold_keyed(0, lambda s, v: s + v, commutative=True) -> out; b -> more",
        encoding="utf-8",
    )
    plans = []
    for rows, history in ((1000, 1e6), (1000, 1000)):
        stats.write_text(json.dumps({"inputs": {"a": {"rows": rows, "history": history}}}), "utf-8")
        assert main(["optimize", str(file), "--format", "json", "--stats", str(stats)]) == 0
        plans.append(json.loads(capsys.readouterr().out))
    assert plans[0]["cost_before"] > plans[1]["cost_before"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"rows": 3}', "no entry is called rows"),
        ("[]", "statistics: not a JSON object"),
        ('{"inputs": []}', "`inputs`: not a JSON object"),
        ('{"inputs": {"messages": 3}}', "`inputs.messages`: not a JSON object"),
        ('{"inputs": {"messages": {"row": 3}}}', "`inputs.messages`: no entry is called row"),
        ('{"streams": null}', "`streams`: not a JSON object"),
        ('{"selectivity": {"f": 2}}', "`selectivity.f`: not a number from 0 to 1"),
        ('{"ticks": null}', "`ticks`: not a number from 1 to"),
        ('{"ticks": 0}', "`ticks`: not a number from 1 to"),
        ('{"ticks": true}', "`ticks`: not a number from 1 to"),
        ('{"inputs": {"messages": {"rows": "x"}}}', "`inputs.messages.rows`: not a number"),
        ('{"inputs": {"messages": {"rows": -1}}}', "`inputs.messages.rows`: not a number"),
        ('{"inputs": {"messages": {"rows": NaN}}}', "`inputs.messages.rows`: not a number"),
        ('{"inputs": {"messages": {"keys": 0}}}', "`inputs.messages.keys`: not a number from 1"),
        ('{"inputs": {"messages": {"history": Infinity}}}', "`inputs.messages.history`: not"),
        ('{"inputs": {"messages": {"rows": 1%s}}}' % ("0" * 400), "`inputs.messages.rows`: not"),
        ('{"inputs": {"message": {"rows": 3}}}', "did you mean `messages`?"),
        ('{"inputs": {"broadcast": {"rows": 3}}}', "`inputs.broadcast`: the program has nothing"),
        ('{"streams": {"broadcasts": {"rows": 3}}}', "did you mean `broadcast`?"),
    ],
)
def test_statistics_that_make_no_sense(
    chat: str, tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = tmp_path / "s.json"
    stats.write_text(text, encoding="utf-8")
    assert main(["optimize", chat, "--stats", str(stats)]) == 1
    printed = capsys.readouterr().err
    assert "error[config]" in printed
    assert words in printed


def test_the_least_of_all_statistics(chat: str, tmp_path: Path) -> None:
    stats = tmp_path / "s.json"
    known = {"rows": 0, "history": None, "keys": 1}
    known_streams = {"broadcast": {"rows": 0.5, "history": 0}}
    stats.write_text(
        json.dumps({"ticks": 1, "inputs": {"messages": known}, "streams": known_streams}), "utf-8"
    )
    assert main(["optimize", chat, "--stats", str(stats)]) == 0


def test_strict(tmp_path: Path, chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sorted.hydro"
    file.write_text(SORTED, encoding="utf-8")
    assert main(["optimize", str(file)]) == 0
    assert "reads all of history" in capsys.readouterr().out
    assert main(["optimize", str(file), "--strict"]) == 1
    assert "sort" in capsys.readouterr().err
    assert main(["optimize", chat, "--strict"]) == 0


WINDOWS = """
rows = source("k long, v long, d double")
last = rows -> window(30)
last -> aggregate(by="k", s=sum("v")) -> moves
last -> aggregate(by="k", low=min("v")) -> low
last -> aggregate(by="k", mean=avg("d")) -> mean
rows -> persist() -> aggregate(spread=stddev("v")) -> spread
"""


def test_what_is_not_incremental_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "windows.hydro"
    file.write_text(WINDOWS, encoding="utf-8")
    assert main(["optimize", str(file), "--format", "json", "--validate", "10"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [(n["reads"], n["reason"].partition(":")[0]) for n in notes] == [
        ("all of its window", "`min` has no inverse"),
        (
            "all of its window",
            "`avg` of these numbers is rounded, so what leaves cannot be taken out again",
        ),
        ("all of history", "`stddev` squares differences from a mean that every tick moves"),
    ]


@pytest.mark.parametrize("flow", ["flights", "chat"])
def test_the_flows_of_the_project_are_incremental(flow: str) -> None:
    file = Path(__file__).parents[3] / "assets" / flow / f"{flow}.hydro"
    assert main(["optimize", str(file), "--strict", "--format", "sexpr"]) == 0


def test_misuse(chat: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["optimize", chat, "--explain", "--format", "svg"])
    assert stop.value.code == 2
