"""Shells complete commands, options, their values, flows and outputs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.cli.command import FORMAT, Command, Word
from hydro_core.cli.main import main
from hydrotick.cli.completion import candidates
from hydrotick.cli.init import put_project


def entry(name: str, *arguments: Word) -> Command:
    does, run = f"Is {name}.", f"of:{name}"
    shown = (name,)
    return Command(
        name,
        does,
        run,
        about="A project",
        needs="a project",
        writes=False,
        arguments=arguments,
        examples=shown,
    )


FLOW = Word("FLOW", "a flow")
SHOW = entry(
    "show",
    FLOW,
    Word("OUTPUT", "an output"),
    Word("--tick", "a tick", "KEY"),
    Word("--limit", "how many", "N"),
    Word("--yes", "do not ask"),
    FORMAT,
    Word("--from", "the first tick", "KEY"),
)
TABLE = {
    "show": SHOW,
    "status": entry("status", FLOW),
    "run": entry("run", Word("FILE", "a program")),
    "restore": entry("restore", Word("DIR", "where"), replace(FLOW, repeated=True)),
    "shells": entry("shells", Word("SHELL", "which", choices=("bash", "fish"))),
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_project(tmp_path / "shop", "totals")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("s", ["show", "status", "shells"]),
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
        ("restore ", []),
        ("restore there t", ["totals"]),
        ("restore there totals t", ["totals"]),
        ("shells f", ["fish"]),
        ("show --he", ["--help"]),
        ("frob ", []),
        ("", list(TABLE)),
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
    script = (
        "import sys; from hydro_core.cli.main import main;"
        "main(['complete', 'show', 'totals', '']);"
        "print(sorted({'dagster', 'pyspark', 'pandas', 'egglog', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["totals", "[]"]


ASKED = {
    "hydrotick backfill t": "totals",
    "hydrotick simulate totals --eng": "--engine",
    "hydrotick sho": "show",
    "hydrotick status --format j": "json",
    "hydrotick run asse": "assets/",
}
"""What is on the line when the key is pressed, and what becomes of its last word."""


def test_bash_completes(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        f"COMP_WORDS=({line}); COMP_CWORD={line.count(' ')}; _hydrotick; echo ${{COMPREPLY[@]}}"
        for line in ASKED
    ]
    said = in_shell(capsys, "bash", ["-c"], "\n".join(asked))
    # Where nothing is found, bash itself completes files.
    assert said.splitlines() == [word if word != "assets/" else "" for word in ASKED.values()]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "\n".join(f"complete -C {json.dumps(line)}" for line in ASKED)
    assert in_shell(capsys, "fish", ["--no-config", "-c"], asked).split() == list(ASKED.values())


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize("loaded", ["source", "autoload"])
def test_zsh_completes(shop: Path, capsys: pytest.CaptureFixture[str], loaded: str) -> None:
    """On a line editor of its own: sourced, and as a file of `fpath`."""
    assert main(["completion", "zsh"]) == 0
    (shop / "of_zsh").mkdir()
    (shop / "of_zsh" / "_hydrotick").write_text(capsys.readouterr().out, encoding="utf-8")
    begin = {
        "source": "autoload -Uz compinit; compinit -u -D; source of_zsh/_hydrotick",
        "autoload": "fpath+=($PWD/of_zsh); autoload -Uz compinit; compinit -u -D",
    }[loaded]
    lines = "\n".join(f"zpty -w -n z {json.dumps(line)}$'\\t\\x18'; wait_for" for line in ASKED)
    script = ZSH.replace("BEGIN", begin).replace("LINES", lines)
    done = subprocess.run(
        ["zsh", "-f", "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    said = re.findall(r"<<(.*?)>>", done.stdout)
    assert [line.split()[-1] for line in said] == list(ASKED.values())


ZSH = """
zmodload zsh/zpty
wait_for() { zpty -r z out '*>>*' && print -r -- "$out" }
zpty -b z "zsh -f -i"
zpty -w z "stty -echo; BEGIN"
zpty -w z 'tell() { print -r -- "<""<$BUFFER>"">"; BUFFER= }; zle -N tell; bindkey "^X" tell'
LINES
"""


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TERM": "xterm"}


def in_shell(
    capsys: pytest.CaptureFixture[str], shell: str, options: Sequence[str], asked: str
) -> str:
    """What a shell prints that has the script and is asked for completions."""
    assert main(["completion", shell]) == 0
    script = f"{capsys.readouterr().out}\n{asked}"
    done = subprocess.run(
        [shell, *options, script], env=environment(), capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "says"), [("zsh", "compdef _hydrotick"), ("fish", "complete -c")]
)
def test_other_shells_have_scripts(
    shell: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert says in script
    assert "hydrotick complete " in script
