"""Every option that takes a path says what is wrong with one, in words and with a cure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydrotick.cli.init import put_project

PROGRAM = "assets/totals/totals.hydro"
RULES = "rules.dl"
WRITES = {
    "run": f"run {PROGRAM} --input payments=data/landing/payments:day --out",
    "graph": f"graph {PROGRAM} --out",
    "docs": "docs --out",
    "simulate": "simulate totals --engine reference --runs 1 --out",
    "schedules": f"simulate {RULES} --ticks rules.json --schedules 1 --out",
    "init": "init",
    "copy of a flow": "copy totals",
}
READS = {
    "ticks": f"run {PROGRAM} --ticks",
    "batch": "run --batch",
    "input": f"run {PROGRAM} --input payments=",
    "stats": f"optimize {PROGRAM} --stats",
    "program": "check",
    "restore": "restore",
}
FOLDERS = {"run", "docs", "init", "copy of a flow"}
"""They make the folders above what they write, and take one that is empty."""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYDROTICK_PROJECT", raising=False)
    put_project(tmp_path, "totals")
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("text")
    Path("folder").mkdir()
    Path("folder", "other").write_text("text")
    Path("ticks.json").write_text(json.dumps([{"payments": [{"user": "ann", "amount": 5}]}]))
    Path("rules.json").write_text("[{}]")
    Path(RULES).write_text(".input a(int8)\n.output b\nb(x) :- a(x).\n.never b(1)\n")


def _said(words: str, path: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(f"{words}{'' if words.endswith('=') else ' '}{path}".split()) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error[")
    assert "help: " in shown
    assert "Errno" not in shown
    # A copy is laid beside its place first; `init` names the file that is above.
    assert path in shown or "/sys/." in shown or "file is a file" in shown
    return shown


@pytest.mark.parametrize("words", WRITES)
def test_what_cannot_be_written_is_said_before_anything_is_computed(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    below = _said(WRITES[words], "file/deep/x", capsys)
    assert "file` is a file" in below or "file is a file" in below
    denied = _said(WRITES[words], "/sys/hydrotick.json", capsys)
    assert "has not the right" in denied or "read-only" in denied
    if words in FOLDERS:
        assert "file" in _said(WRITES[words], "file", capsys)
        return
    assert "there is no folder `none`" in _said(WRITES[words], "none/deep/x", capsys)
    assert "it is a folder" in _said(WRITES[words], "folder", capsys)


@pytest.mark.parametrize("words", READS)
@pytest.mark.parametrize("path", ["file/deep/x", "none/x", "none.json", "folder"])
def test_what_cannot_be_read_is_said(
    words: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _said(READS[words], path, capsys)
