"""`hydrotick simulate` of a file and of a flow: what it says, and what it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydrotick.cli.init import put_project

Capture = pytest.CaptureFixture[str]

WRONG = (
    "payments -> map(lambda p: p.amount) -> filter(lambda x: x is not None)"
    " -> fold(0, lambda acc, x: acc * 3 + x, commutative=True) -> out\n"
)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    file = tmp_path / "wrong.hydro"
    file.write_text(WRONG)
    return str(file)


SCHEMA = ["--schema", "payments=user string, amount long"]


def test_a_flow_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    put_project(tmp_path / "shop", "totals")
    monkeypatch.chdir(tmp_path / "shop")
    assert main(["simulate", "totals", "--engine", "reference", "--runs", "30"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("totals: 30 runs of ")
    assert "all is the same (seed 0)" in said
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", "totals", *SCHEMA])
    assert "a flow's schemas stand in its asset" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", "total"])
    assert "did you mean `totals`" in capsys.readouterr().err


def test_what_differs_is_shown(wrong: str, tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / "ticks.json"
    words = ["simulate", wrong, *SCHEMA, "--engine", "reference", "--out", str(saved)]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "it gives something else when the rows of a tick come in another order" in said
    assert "nothing of it can be left out" in said
    assert "tick 0, `out`: `-` the program gives, `+` is given instead" in said
    assert main(["run", wrong, "--ticks", str(saved)]) == 0
    (given,) = json.loads(capsys.readouterr().out)["ticks"][0]["out"]
    assert f"  - {given}\n" in said


def test_as_json(wrong: str, capsys: Capture) -> None:
    words = ["simulate", wrong, *SCHEMA, "--engine", "reference", "--format", "json"]
    assert main([*words, "--seed", "5"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["program"], found["seed"], found["same"]) == ("wrong", 5, False)
    difference = found["difference"]
    assert (difference["way"], difference["output"], difference["least"]) == ("order", "out", True)
    assert difference["missing"] != difference["unexpected"]
    assert len(difference["ticks"][0]["payments"]) == 2
    assert difference["reordered"][0]["payments"] == difference["ticks"][0]["payments"][::-1]


def test_inputs_without_types_are_told(wrong: str, capsys: Capture) -> None:
    assert main(["simulate", wrong, "--engine", "reference"]) == 1
    assert "payments" in capsys.readouterr().err
