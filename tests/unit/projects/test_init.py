"""`hydrotick init`: a new project is whole, judged well, and its tests pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.project.discover import found_in, project_above
from hydrotick.deploy.deployments import plan_as_written
from hydrotick.project.settings import ProjectSettings, project_settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDROTICK_HOME", raising=False)
    monkeypatch.delenv("HYDROTICK_PROJECT", raising=False)


@pytest.mark.parametrize("words", [["shop"], ["shop", "--flow", "spending"], ["a/b/shop"]])
def test_a_new_project_is_whole(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["init", *words]) == 0
    root, name = tmp_path / words[0], words[-1] if len(words) > 1 else "totals"
    said = capsys.readouterr().out
    assert f"  cd {words[0]}\n  hydrotick test\n  hydrotick backfill {name}\n" in said
    assert project_above(root) == root
    found = found_in(root)
    assert (found.flows[0].name, len(found.flows), found.broken) == (name, 1, ())
    (flow,) = found.flows
    assert list(plan_as_written(flow).graph.sinks) == ["totals"]
    text = "".join(f.read_text() for f in root.rglob("*") if f.is_file())
    assert "FLOW" not in text
    assert len((root / "README.md").read_text().splitlines()) == 10
    monkeypatch.chdir(root)
    assert project_settings() == ProjectSettings(home=root / "data", root=root, sensors_run=True)
    assert main(["test", name]) == 0
    assert "2 passed" in capsys.readouterr().out


def test_its_data_has_landed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the ticks read is there: CSV as the reference reads it, with the program beside."""
    assert main(["init", "shop"]) == 0
    capsys.readouterr()
    flow = found_in(tmp_path / "shop").flows[0]
    landing = flow.inputs["payments"]
    file = f"payments={tmp_path}/shop/data/landing/{landing.path}:{landing.column}"
    program = tmp_path / "shop" / "assets" / "totals" / "totals.hydro"
    assert main(["run", str(program), "--input", file, "--format", "json"]) == 0
    rows = [tick["totals"] for tick in json.loads(capsys.readouterr().out)["ticks"]]
    assert rows == [2, 1, 2, 0, 2, 1, 1, 1]


def test_the_folder_at_hand_may_be_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "."]) == 0
    assert "cd " not in capsys.readouterr().out
    assert project_above(tmp_path) == tmp_path


def test_a_folder_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / ".git").mkdir()
    (tmp_path / "file").touch()
    told = {
        "shop": "shop is not empty: `.git` is in it",
        "file": "file is a file",
        "file/shop": "file is a file",
    }
    for name, says in told.items():
        before = sorted(tmp_path.rglob("*"))
        assert main(["init", name]) == 1
        assert says in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_is_none_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["init", "shop", "--flow", "to-tals"])
    assert ended.value.code == 2
    assert not (tmp_path / "shop").exists()


def test_what_leads_elsewhere_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYDROTICK_HOME", "/somewhere")
    assert main(["init", "shop"]) == 0
    assert "HYDROTICK_HOME is set" in capsys.readouterr().out


def test_it_is_told_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "shop", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["project"], told["flow"]) == (str(tmp_path / "shop"), "totals")
    there = {str(f.relative_to(tmp_path / "shop")) for f in Path("shop").absolute().rglob("*")}
    assert set(told["files"]) <= there
    assert main(["init", "shop", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "config"
