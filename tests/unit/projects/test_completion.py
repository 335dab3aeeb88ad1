"""Shells complete commands, options, their values, flows and outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydrotick.completion import Words, candidates, words_of
from hydrotick.init import put_project

HELP = """\
usage: hydrotick show [-h] [--tick KEY] [--limit N] [--yes]
                      [--format {text,json}] --from KEY
                      FLOW OUTPUT

Shows --rows of OTHER things.
"""
SHOW = Words(
    {
        "--tick": [],
        "--limit": [],
        "--yes": None,
        "--format": ["text", "json"],
        "--from": [],
        "--help": None,
    },
    ["FLOW", "OUTPUT"],
)
TABLE = {"show": SHOW, "status": Words({"--help": None}, ["FLOW"]), "run": Words({}, ["FILE"])}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_project(tmp_path / "shop", "totals")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def test_the_words_of_a_command_are_those_of_its_help() -> None:
    assert words_of(HELP) == SHOW


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("s", ["show", "status"]),
        ("show ", ["totals"]),
        ("show x", []),
        ("show totals ", ["totals"]),
        ("show --tick 2026-01-01 totals t", ["totals"]),
        ("show --yes to", ["totals"]),
        ("show --f", ["--format", "--from"]),
        ("show totals --format ", ["text", "json"]),
        ("show totals --format j", ["json"]),
        ("show --tick ", []),
        ("show totals totals ", []),
        ("show nothing ", []),
        ("run ", []),
        ("frob ", []),
        ("", ["show", "status", "run"]),
    ],
)
def test_what_may_come_next(shop: Path, words: str, found: list[str]) -> None:
    assert candidates(TABLE, words.split(" ")) == found


def test_outside_of_a_project_there_are_no_flows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert candidates(TABLE, ["show", ""]) == []


def test_nothing_heavy_is_imported_at_a_press_of_the_key(shop: Path) -> None:
    table = {name: {"options": w.options, "places": w.places} for name, w in TABLE.items()}
    script = (
        "import sys; from hydro_core.cli.main import main;"
        f"main(['completion', 'at', {json.dumps(table)!r}, 'show', 'totals', '']);"
        "print(sorted({'dagster', 'pyspark', 'pandas', 'egglog', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["totals", "[]"]


def test_bash_completes(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = (
        "COMP_WORDS=(hydrotick backfill t); COMP_CWORD=2; _hydrotick; echo ${COMPREPLY[@]};"
        "COMP_WORDS=(hydrotick simulate totals --eng); COMP_CWORD=3; _hydrotick;"
        "echo ${COMPREPLY[@]}"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["totals", "--engine"]


@pytest.mark.parametrize(
    ("shell", "says"), [("zsh", "compdef _hydrotick"), ("fish", "complete -c")]
)
def test_other_shells_have_scripts(
    shell: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert says in script
    assert '"backfill"' in script
