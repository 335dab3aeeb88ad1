"""The cases and the vectors, deployed: the plan that is read back is the plan that was written,
and gives what the program gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydro_core.artifact.deployment import read_deployment, write_deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_graph, stratified
from hydro_core.lang.resolve import parse
from hydro_core.optimize.optimizer import optimize
from hydro_core.running import given_types, read_ticks
from hydro_core.ticks.calendar import Calendar
from hydro_core.validation.random_ticks import validate
from tests.golden.cases import Case, all_cases
from tests.golden.vectors import Vector, calendar_of, vectors

CASES = [case for case in all_cases() if case.error is None]
VECTORS = [v for v in vectors("dfir", "fuzz", "ordered") if "error" not in v]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    _deployed(case.program, case.schemas, case.ticks, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vector(vector: Vector, tmp_path: Path) -> None:
    schemas, ticks = vector.get("schemas", {}), vector.get("ticks", [{}])
    _deployed(vector["program"], schemas, ticks, tmp_path, calendar_of(vector))


def _deployed(
    text: str,
    schemas: dict[str, str],
    ticks: Any,
    directory: Path,
    calendar: Calendar | None = None,
) -> None:
    graph = parse(text)
    program = compile_graph(graph, given_types(graph, schemas, ticks))
    made = deployment_of("flow", program.typed, optimize(program.typed))
    found = read_deployment(directory, write_deployment(directory, made))
    assert found == made
    plan = stratified(found.plan.typed)
    assert validate(plan, program, list(read_ticks(program.typed, ticks, calendar))) is None
