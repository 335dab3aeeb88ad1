"""What the README shows runs as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w*)[^\n]*\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(README) if kind == language]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The files that the README tells to save."""
    (program,), (ticks,) = blocks("hydrotick"), blocks("json")
    folder = tmp_path / "assets" / "totals"
    folder.mkdir(parents=True)
    (folder / "totals.hydro").write_text(program, encoding="utf-8")
    (tmp_path / "ticks.json").write_text(ticks, encoding="utf-8")
    return tmp_path


def test_the_text_form_prints_what_it_says(directory: Path) -> None:
    (console,) = blocks("console")
    command, _, wanted = console.partition("\n")
    _, name, *arguments = shlex.split(command)
    assert name == "hydrotick"
    assert run(directory, "-m", "hydro_core.cli.main", *arguments) == wanted


def test_the_python_form_gives_the_same(directory: Path) -> None:
    program = blocks("python")[0]
    assert run(directory, "-c", program).splitlines() == [
        "[{'user': 'ann', 'total': 5, 'largest': 5}, {'user': 'bob', 'total': 2, 'largest': 2}]",
        "[{'user': 'ann', 'total': 6, 'largest': 5}]",
    ]


def test_the_forms_have_fifteen_lines_at_most() -> None:
    for text in (*blocks("hydrotick"), *blocks("python")):
        assert len([line for line in text.splitlines() if line.strip()]) <= 15


@pytest.mark.dagster
def test_the_asset_is_one(directory: Path) -> None:
    from hydro_core.project.discover import found_in
    from hydrotick.code_location.factory import project_definitions
    from hydrotick.project.settings import ProjectSettings
    from hydrotick.runner.runner import TickRunner

    folder = directory / "assets" / "totals"
    (folder / "asset.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    flows = found_in(directory).flows
    assert [flow.name for flow in flows] == ["totals"]
    defs = project_definitions(flows, TickRunner(ProjectSettings(home=directory)))
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert {"totals/landing/payments", "totals/state/payments_state", "totals/totals"} <= keys


def run(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
        text=True,
    )
    return done.stdout
