"""`hydrotick check` without a program: all flows of the project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydrotick.cli.init import put_project


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "shop"
    put_project(made, "totals")
    monkeypatch.delenv("HYDROTICK_PROJECT", raising=False)
    monkeypatch.chdir(made / "assets")
    return made


def _another(shop: Path, name: str, program: str, more: str = "") -> None:
    folder = shop / "assets" / name
    folder.mkdir()
    (folder / "p.hydro").write_text(program)
    (folder / "asset.yaml").write_text(
        "program: p.hydro\nticks: {start: 2026-01-01}\n"
        f"inputs: {{a: {{path: a, column: day}}}}\n{more}"
    )


def test_each_flow_has_a_line(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _another(shop, "others", 'a = source("k string")\na -> unique() -> out\n')
    assert main(["check"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "others: ok: a -> out\ntotals: ok: payments -> totals\n"
    assert not shown.err


def test_what_is_wrong_is_told_with_its_place_beside_the_others(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _another(shop, "misspelt", 'a = source("k string")\na -> uniqe() -> out\n')
    _another(shop, "undeclared", 'a = source("k string")\na -> out\n', "expects: {}\n")
    _another(shop, "unmet", 'a = source("k string")\na -> out\n', "expect: {out: [{column: j}]}\n")
    assert main(["check"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "misspelt: wrong",
        "totals: ok: payments -> totals",
        "undeclared: wrong",
        "unmet: wrong",
    ]
    for place in ("misspelt/p.hydro:2:6", "undeclared/asset.yaml:4:1", "unmet/asset.yaml:4:"):
        assert place in shown.err
    assert main(["check", "--format", "json"]) == 1
    flows = {one["flow"]: one for one in json.loads(capsys.readouterr().out)["flows"]}
    assert flows["misspelt"]["error"]["code"] == "unknown-operator"
    assert flows["undeclared"]["error"]["line"] == 4
    assert flows["totals"] == {"flow": "totals", "inputs": ["payments"], "outputs": ["totals"]}


def test_without_a_project_a_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HYDROTICK_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["check"])
    assert ended.value.code == 2
    assert "name a FILE, or go to a project" in capsys.readouterr().err


def test_a_project_without_flows_says_so(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(shop / "assets" / "totals")
    monkeypatch.chdir(shop)
    for words in (["check"], ["status"]):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert "there is no flow in assets" in said
        assert "`asset.yaml`" in said
    assert main(["check", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"flows": []}


def test_an_input_that_is_read_until_the_program_is_deployed_may_stay(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    asset = shop / "assets" / "totals" / "asset.yaml"
    text = asset.read_text()
    former = text.replace("inputs:\n", "inputs:\n  former: {path: former, column: day}\n")
    asset.write_text(former)
    assert main(["check"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "totals: ok: payments -> totals\n"
    assert shown.err.startswith("warning[config]: flow `totals`, `inputs.former`: the program ")
    assert "assets/totals/asset.yaml:" in shown.err
    assert main(["test"]) == 0
    assert main(["simulate", "totals", "--engine", "reference", "--runs", "1"]) == 0
    capsys.readouterr()
    # Nothing is deployed that reads it.
    assert main(["plan", "totals"]) == 1
    assert "the program has no input `former`" in capsys.readouterr().err
    asset.write_text(former.replace("  payments:", "  payment:"))
    assert main(["check"]) == 1
    assert "`payments`, which the program reads, is missing" in capsys.readouterr().err


def test_a_schema_is_of_a_program(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--schema", "a=k string"])
    assert ended.value.code == 2
    assert "--schema is about a FILE" in capsys.readouterr().err


def test_the_environment_names_a_project_from_elsewhere(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYDROTICK_PROJECT", str(shop))
    monkeypatch.chdir(shop.parent)
    assert main(["check"]) == 0
    monkeypatch.setenv("HYDROTICK_PROJECT", str(shop / "data"))
    assert main(["check"]) == 1
    assert "which is no project" in capsys.readouterr().err


def test_what_a_flow_reads_of_another_one_is_looked_for(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reads(name: str, schema: str, output: str = "totals") -> None:
        _another(shop, name, f'a = source("{schema}")\na -> out\n')
        yaml = shop / "assets" / name / "asset.yaml"
        said = yaml.read_text().replace("path: a, column: day", f"flow: totals, output: {output}")
        yaml.write_text(said)

    reads("right", "user string, total long, tick long, copies long")
    reads("columns", "user string, amount long, totals long")
    reads("output", "user string", "total")
    assert main(["check"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "columns: wrong",
        "output: wrong",
        "right: ok: a -> out",
        "totals: ok: payments -> totals",
    ]
    for place in ("columns/asset.yaml:3:14", "output/asset.yaml:3:14"):
        assert place in shown.err
    assert shown.err.count("has no column") == 2
    assert "the output `totals` of `totals` has no column `amount`" in shown.err
    assert "it has `user`, `total`, `largest`" in shown.err


def test_an_output_that_shrinks_is_not_appended_to(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first tick had said so."""
    program = 'a = source("k string")\na -> persist() -> {} out\n'
    append = "outputs: {out: {as: append}}\n"
    _another(shop, "grows", program.format(""), append)
    _another(shop, "shrinks", program.format('aggregate(by="k", n=count()) ->'), append)
    assert main(["check"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[:2] == ["grows: ok: a -> out", "shrinks: wrong"]
    assert "`out` does not only grow" in shown.err
    assert "shrinks/asset.yaml:4:" in shown.err


def test_names_are_shown_so_that_no_terminal_obeys_them(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\\x1b[2J\\nb\\u2028\\x9bc"
    _another(shop, "raw", f'a = source("k string")\na -> sink("{name}")\n')
    assert main(["check"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "raw: ok: a -> a\\u001b[2J\\u000ab\\u2028\\u009bc"
    assert main(["check", "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert not set(text) & set("\x1b\x9b\u2028")
    flows = {one["flow"]: one for one in json.loads(text)["flows"]}
    assert flows["raw"]["outputs"] == ["a\x1b[2J\nb\u2028\x9bc"]
    for words in (["check", "raw/p.hydro"], ["graph", "raw/p.hydro", "--format", "text"]):
        assert main(words) == 0
        assert not set(capsys.readouterr().out) & set("\x1b\x9b\u2028")
    (shop / "assets" / "raw" / "asset.yaml").write_text("program: p.hydro\n\u202e: 1\n")
    assert main(["check"]) == 1
    assert "\u202e" not in "".join(capsys.readouterr())
