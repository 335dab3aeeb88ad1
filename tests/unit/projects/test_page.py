"""What docs/projects.md shows is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.project.discover import found_in
from hydro_core.project.flow_asset import Expect, FlowAsset, Landing, Ticks
from hydrotick.deploy.deployments import plan_as_written
from hydrotick.project.settings import project_settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "projects.md").read_text(encoding="utf-8")
PROGRAM = (ROOT / "orchestration" / "template" / "program.hydro").read_text(encoding="utf-8")
NAMING = PROGRAM.replace("amount long", "amount long, at timestamp").replace(
    "payments\n", "payments\n  -> filter(lambda p: p.amount >= threshold)\n", 1
)
"""It names the parameter that the page's asset gives, and the event's time."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "assets" / "totals"
    made.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return made


def declared(folder: Path, name: str, text: str) -> FlowAsset:
    (folder / name).write_text(text, encoding="utf-8")
    program = NAMING if "params:" in text else PROGRAM
    (folder / "totals.hydro").write_text(program, encoding="utf-8")
    found = found_in(folder.parents[1])
    assert found.broken == ()
    (flow,) = found.flows
    return flow


def test_the_yaml_says_all_that_can_be_said(folder: Path) -> None:
    flow = declared(folder, "asset.yaml", blocks("yaml")[0])
    assert set(plan_as_written(flow).graph.sinks) == {"totals", "quarantine"}
    for part in (flow, flow.ticks, flow.inputs["payments"]):
        for field in fields(part):
            if field.name not in ("name", "land", "places", "fed_by"):
                default = field.default_factory() if callable(field.default_factory) else None
                assert getattr(part, field.name) not in (None, "", (), default), field.name
    for field in fields(Expect):
        assert any(getattr(e, field.name) != field.default for e in flow.expect["totals"])
    assert {f.name for f in fields(Landing)} | {f.name for f in fields(Ticks)} <= set(
        re.findall(r"\w+", PAGE)
    )


def test_the_python_form_is_a_flow(folder: Path) -> None:
    flow = declared(folder, "asset.py", blocks("python")[0])
    assert list(plan_as_written(flow).graph.sinks) == ["totals"]


def test_the_tests_end_as_it_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared(folder, "asset.yaml", blocks("yaml")[0])
    tests = folder / "tests.yaml"
    tests.write_text(blocks("yaml")[1], encoding="utf-8")
    assert main(["test"]) == 0
    capsys.readouterr()
    tests.write_text(blocks("yaml")[1].replace("total: 6", "total: 7"), encoding="utf-8")
    assert main(["test"]) == 1
    said = capsys.readouterr().out.replace(f"{folder.parents[1]}/", "")
    shown = blocks("text")[1]
    assert re.sub(r"[0-9.]+ s\n", "", said) == re.sub(r"[0-9.]+ s\n", "", shown)


def test_the_settings_are_some(folder: Path) -> None:
    root = folder.parents[1]
    (root / "hydrotick.toml").write_text(blocks("toml")[0], encoding="utf-8")
    found = project_settings({"HYDROTICK_PROJECT": str(root)})
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[4]", "4g", 100)
