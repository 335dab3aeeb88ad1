"""What people are told of the forms of a plan: what is stored, and what comes and goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.compile import best_plan, compile_text, planned
from hydro_core.plan.streams import stream_forms, written_whole

ROWS = 'a = source("k long, v long"); b = source("k long, w long")\n'
SUMS = 'sums = a -> persist() -> aggregate(by="k", s=sum("v"))\n'
PASSING = "a row comes with its tick, and goes when the window has passed it"
ANEW = "m = a -> window(3) -> prev()\nm -> out"


def _told(text: str) -> list[str]:
    program = compile_text(ROWS + text)
    return list(map(str, stream_forms(planned(program, best_plan(program)))))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SUMS + "sums -> out", ["`out` in changes: a key's new result replaces its old one"]),
        (
            "a -> persist() -> out",
            [
                "`out` as a history: what comes is added, nothing goes",
                "`a` as a history: stored for `persist_1`, from the first tick on",
            ],
        ),
        (
            "a -> filter(lambda r: r.v > 0) -> out",
            ["`out` in values: a tick's rows are there in this tick alone"],
        ),
        (
            "x = a -> window(3); x -> out",
            [
                f"`out` in changes: {PASSING}",
                "`a` as a history: stored for `x`, as far as the last 3 ticks go back",
            ],
        ),
        (
            SUMS + "sums -> delta() -> out",
            [
                "`out` in values: a tick's rows are there in this tick alone",
                "`sums` in changes: stored as a log, a key's new result replaces its old one",
            ],
        ),
    ],
)
def test_every_output_and_all_that_is_stored_is_told(text: str, told: list[str]) -> None:
    assert _told(text) == told


def test_rows_without_a_match_and_what_only_hands_on_are_told() -> None:
    x = 'x = a -> persist() -> join(right=c, on="k", how="left"); c = b -> persist()\n'
    first, *_ = _told(x + "x -> out")
    assert first == "`out` in changes: a row without a match goes when its first match comes"
    first, *_ = _told(SUMS + "kept = sums -> filter(lambda r: r.s > 1); kept -> out")
    assert first == "`out` in changes: what comes and goes in `sums` does so here"


def test_what_is_stored_anew_in_each_tick_is_said_with_a_cure() -> None:
    def said(text: str) -> list[str]:
        program = compile_text(ROWS + text)
        return list(written_whole(planned(program, best_plan(program))))

    (line,) = said(ANEW)
    assert "`out` is stored anew in each tick" in line
    assert "changes()" in line
    assert said(ANEW.replace("m -> out", "m -> changes() -> out")) == []
    assert said(SUMS + "sums -> out") == []


def test_the_commands_print_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sums.hydro"
    file.write_text(ROWS + SUMS + "sums -> out", encoding="utf-8")
    assert main(["optimize", str(file), "--explain"]) == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last == "`out` in changes: a key's new result replaces its old one"
    assert main(["optimize", str(file), "--explain", "--format", "json"]) == 0
    (form,) = json.loads(capsys.readouterr().out)["forms"]
    assert form["stream"] == "out"
    assert form["form"] == "changes"
    file.write_text(ROWS + ANEW, encoding="utf-8")
    assert main(["check", str(file)]) == 0
    assert "`out` is stored anew in each tick" in capsys.readouterr().out
