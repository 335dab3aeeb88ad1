"""Every command says what it takes, and those that need no Spark do what they are for, where
nothing but the wheel is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import commands
from tests.wheel.environment import Environment

pytestmark = pytest.mark.wheel

PROGRAM = "assets/totals/totals.hydro"
WITHOUT_SPARK = (
    "check",
    f"check {PROGRAM}",
    f"optimize {PROGRAM} --explain",
    f"optimize {PROGRAM} --format svg",
    f"partition {PROGRAM}",
    f"lineage {PROGRAM}",
    f"rules {PROGRAM}",
    f"graph {PROGRAM} --out drawing.svg",
    "simulate totals --engine reference --runs 5",
    "test",
    "status",
    "docs",
    "completion bash",
    "completion zsh",
    "completion fish",
)


def test_every_command_says_what_it_takes(environment: Environment, tmp_path: Path) -> None:
    listed = environment.run(["hydrotick", "--help"], tmp_path).stdout
    for name in commands():
        assert f"\n    {name}" in listed
        done = environment.run(["hydrotick", name, "--help"], tmp_path)
        assert done.stdout.startswith(f"usage: hydrotick {name} "), done.stdout
        assert done.returncode == 0


def test_what_needs_no_spark(environment: Environment, tmp_path: Path) -> None:
    assert environment.run(["hydrotick", "init", "shop"], tmp_path).returncode == 0
    for line in WITHOUT_SPARK:
        done = environment.run(["hydrotick", *line.split()], tmp_path / "shop")
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        assert done.stdout.strip() or "--out" in line, line
        assert "Traceback" not in done.stdout
        assert "Warning" not in done.stdout, f"{line}\n{done.stdout}"
