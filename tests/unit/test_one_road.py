"""The steps of a program's way are put together in `hydro_core/compile.py`, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = {
    ("hydro_core.analysis.infer", "infer"),
    ("hydro_core.analysis.strata", "stratify"),
    ("hydro_core.optimize.optimizer", "optimize"),
    ("hydro_core.plan.planner", "plan"),
    ("hydro_core.plan.planner", "plan_of"),
}
BELOW = tuple(
    f"hydro_core/{name}/" for name in ("analysis", "optimize", "plan", "artifact", "program_change")
)
"""Layers that make a program of a program: each checks the types of what it has made."""
TAKES_A_STEP = {"hydro_core/compile.py", "hydro_core/printing/programs.py"}


def steps_in(source: str) -> Iterator[tuple[str, str]]:
    """The steps that a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, name.name) for name in node.names)


@pytest.mark.parametrize("folder", ["hydro_core", "orchestration", "benchmarks", "tools", "assets"])
def test_everybody_takes_the_road(folder: str) -> None:
    own = {
        name: found
        for path in (ROOT / folder).rglob("*.py")
        if not (name := path.relative_to(ROOT).as_posix()).startswith(BELOW)
        and (found := STEPS & set(steps_in(path.read_text(encoding="utf-8"))))
    }
    assert own.keys() <= TAKES_A_STEP, own


def test_the_road_has_all_steps() -> None:
    road = set(steps_in((ROOT / "hydro_core/compile.py").read_text(encoding="utf-8")))
    assert road >= STEPS
    assert ("hydro_core.lang.resolve", "parse") in road
