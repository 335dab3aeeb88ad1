"""A deployment is read back as it was written, and does the same."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.analysis.identity import functions_in
from hydro_core.artifact.codecs import read_value, write_value
from hydro_core.artifact.deployment import (
    Deployment,
    Validation,
    deployment_name,
    deployment_numbers,
    name_at,
    read_deployment,
    write_deployment,
)
from hydro_core.artifact.functions import ReferenceCall
from hydro_core.artifact.make import DeploymentMetadata, deployment_of
from hydro_core.catalog.registry import CATALOG
from hydro_core.compile import CompiledProgram, compile_text, stratified
from hydro_core.errors import DataError, ProgramError
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.optimize.optimizer import optimize
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem, Struct
from hydro_core.validation.random_ticks import validate_randomly
from tests.support.refused import Refused

JOINED = """
a = source("k long, v long, w long"); b = source("k long, v long")
j = a -> join(right=b, on="k", suffix="_r") -> filter(lambda r: r.v_r is not None and r.v_r > 1)
j -> persist() -> aggregate(by="k", n=count(), m=avg("v"), d=count_distinct("w")) -> out
sums = a -> persist() -> fold_keyed(0, lambda s, r: s + (r.v or 0), by="k", commutative=True)
sums -> filter(lambda r: r.k == 1 and r.value > 3) -> other
"""
VALUES = """
a = source("k long, at date")
a -> filter(lambda r: r.at is not None and r.at > date(2024, 1, 2)) -> later
a -> map(lambda r: (Decimal("1.50"), 2**60, -0.0, b"x", [1, 3], timedelta(days=1).days)) -> made
a -> fold({"n": 0, "d": Decimal("0.00")}, lambda s, r: s, commutative=True) -> folded
a -> map(lambda r: {i: i for i in [1, 2]}[1], returns="long") -> displayed
"""


NO_TABLES = None


@dataclass(frozen=True)
class Shown:
    name: str
    program: str
    schemas: dict[str, str]


def _programs() -> list[Shown]:
    found = [
        Shown(f"{op.name} {op.example.program}", op.example.program, dict(op.example.schemas))
        for op in CATALOG.values()
    ]
    return [*found, Shown("joined", JOINED, {}), Shown("values", VALUES, {})]


def _deployed(program: CompiledProgram, directory: Path) -> tuple[Deployment, Deployment]:
    plan = optimize(program.typed)
    made = deployment_of("flow", program.typed, plan)
    return made, read_deployment(directory, write_deployment(directory, made))


@pytest.mark.parametrize("shown", _programs(), ids=lambda shown: shown.name)
def test_what_is_read_is_what_was_written(shown: Shown, tmp_path: Path) -> None:
    schemas = {name: parse_ddl(text) for name, text in shown.schemas.items()}
    program = compile_text(shown.program, schemas)
    made, found = _deployed(program, tmp_path)
    assert found == made
    assert deployment_name(found) == deployment_name(made)
    for one, other in zip(found.plan.graph, made.plan.graph, strict=True):
        assert one.span == other.span
        mine, its = (
            [(fn.tree, fn.params, fn.span) for fn, _ in functions_in(n, made.plan.typed)]
            for n in (one, other)
        )
        assert mine == its
    plan = stratified(found.plan.typed)
    assert validate_randomly(plan, program, 3) is None


def test_values_of_every_kind_come_back_as_they_are(tmp_path: Path) -> None:
    values: list[Any] = [
        *(None, True, 1, 1.0, -0.0, math.inf, 2**62, -(2**70), "é\ud800", b"\xff"),
        *(Decimal("1.50"), date(2024, 1, 2), timedelta(days=-1, seconds=3)),
        *((), (1, (2,)), [1, [2]], {"a": 1}, {1: "b"}, RowItem(a=1), Struct((1, 2))),
    ]
    text = json.dumps([write_value(NO_TABLES, v) for v in values])
    found = [read_value(NO_TABLES, v) for v in json.loads(text)]
    assert list(map(repr, found)) == list(map(repr, values))
    assert list(map(type, found)) == list(map(type, values))
    assert math.isnan(read_value(NO_TABLES, write_value(NO_TABLES, math.nan)))


def test_all_that_is_said_is_kept(tmp_path: Path) -> None:
    program = compile_text(JOINED, file="joined.hydro")
    known = Statistics(inputs={"a": InputStatistics(rows=700, history=70_001)})
    plan = optimize(program.typed, known, explain=True)
    given = DeploymentMetadata({"joined.hydro": JOINED}, Validation(20, 7))
    made = deployment_of("joined", program.typed, plan, given)
    found = read_deployment(tmp_path, write_deployment(tmp_path, made))
    assert found == made
    assert found.program.texts == {"joined.hydro": JOINED}
    assert "filter-join-right" in found.explanation["out"]
    assert found.validated == Validation(20, 7)
    assert found.costs.after < found.costs.before
    assert Statistics.of(found.costs.statistics) == known
    assert {"hydrotick", "pyspark", "delta-spark"} <= found.versions.keys()
    assert found.statement("out").startswith("joined.hydro:4:")
    roles = {(t.name, t.role) for t in found.tables}
    assert {("out", "output"), ("other", "output")} <= roles
    assert "state" in {role for _, role in roles}


def test_deployments_are_numbered_and_never_written_twice(tmp_path: Path) -> None:
    made, _ = _deployed(compile_text(JOINED), tmp_path)
    assert write_deployment(tmp_path, made) == 2
    assert deployment_numbers(tmp_path) == (1, 2)
    assert sorted(p.name for p in (tmp_path / "deployments").iterdir()) == ["1", "2"]


def test_the_name_says_what_is_in_it(tmp_path: Path) -> None:
    made, _ = _deployed(compile_text(JOINED), tmp_path)
    again, _ = _deployed(compile_text(JOINED), tmp_path)
    other, _ = _deployed(compile_text(JOINED.replace("> 1", "> 2")), tmp_path)
    assert deployment_name(made) == deployment_name(again)
    assert (
        len(
            {
                deployment_name(made),
                deployment_name(other),
                deployment_name(replace(made, flow="f")),
            }
        )
        == 3
    )


@pytest.mark.parametrize(
    ("number", "version", "says"),
    [(99, "9.1", "which is newer"), (1, "0.0", "whose deployments this version does not read")],
)
def test_another_format_is_refused(
    number: int, version: str, says: str, tmp_path: Path, refused: Refused
) -> None:
    _deployed(compile_text(JOINED), tmp_path)
    file = tmp_path / "deployments" / "1" / "deployment.json"
    about = json.loads(file.read_text())
    about |= {"format": number, "versions": {"hydrotick": version}}
    file.write_text(json.dumps(about))
    with refused(DataError, "state"):
        read_deployment(tmp_path, 1)


@pytest.mark.parametrize(
    "text", ["[]", "{}", "null", '"a"', '{"format": "7"}', '{"format": 7, "in": []}', "[" * 9]
)
def test_what_is_no_deployment_is_refused(text: str, tmp_path: Path) -> None:
    _deployed(compile_text(JOINED), tmp_path)
    (tmp_path / "deployments" / "1" / "deployment.json").write_text(text)
    with pytest.raises(DataError, match=r"deployment 1 in .* cannot be read"):
        read_deployment(tmp_path, 1)
    assert name_at(tmp_path, 1) is None


def test_a_changed_file_is_refused(tmp_path: Path, refused: Refused) -> None:
    _deployed(compile_text(JOINED), tmp_path)
    file = tmp_path / "deployments" / "1" / "plan.json"
    file.write_text(file.read_text().replace('"k"', '"q"', 1))
    with refused(DataError, "state"):
        read_deployment(tmp_path, 1)


def test_a_deployment_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    _deployed(compile_text(JOINED), tmp_path)
    with refused(DataError, "state"):
        read_deployment(tmp_path, 7)


def test_a_directory_that_cannot_be_written(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "deployments").write_text("a file")
    program = compile_text(JOINED)
    made = deployment_of("flow", program.typed, optimize(program.typed))
    with refused(DataError, "state"):
        write_deployment(tmp_path, made)


MODULE = """
def scored(r):
    total = 0
    for part in (r["k"], r["v"]):
        total += part or 0
    return total > 2
"""


def _python_flow(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    (folder / "scores.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("scores", None)
    return __import__("scores")


def _of_flow(function: Any) -> CompiledProgram:
    from hydro_core.compile import compile_graph

    flow = Flow()
    flow.source("a", "k long, v long").filter(function).sink("out")
    return compile_graph(flow.graph())


def test_a_function_that_says_too_little_is_called_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = _of_flow(_python_flow(monkeypatch, tmp_path).scored)
    _, found = _deployed(program, tmp_path)
    assert any("`scores:scored` is not stored" in note for note in found.notes)
    calls = [fn.call for n in found.plan.graph for fn, _ in functions_in(n, found.plan.typed)]
    assert any(isinstance(call, ReferenceCall) for call in calls)
    plan = stratified(found.plan.typed)
    assert validate_randomly(plan, program, 5) is None


def test_a_function_that_was_changed_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Refused
) -> None:
    call = ReferenceCall("scores", "scored", "def scored(r): return False")
    _python_flow(monkeypatch, tmp_path)
    with refused(DataError, "state"):
        call({"k": 1, "v": 2})
    with refused(DataError, "state"):
        ReferenceCall("scores", "gone")(1)


def test_a_function_without_a_name_is_refused(tmp_path: Path) -> None:
    def local(r: Any) -> bool:
        total = 0
        for part in r.values():
            total += part or 0
        return total > 2

    program = _of_flow(local)
    with pytest.raises(ProgramError, match="`local` cannot be stored with a deployment"):
        deployment_of("flow", program.typed, optimize(program.typed))


LOADED = """
import sys, time
from pathlib import Path
from hydro_core.artifact.deployment import read_deployment
found = read_deployment(Path(sys.argv[1]), 1)
for heavy in ("egglog", "pyspark", "pyarrow", "hydro_core.optimize", "hydro_core.spark"):
    assert heavy not in sys.modules, heavy
start = time.process_time()
for _ in range(20):
    read_deployment(Path(sys.argv[1]), 1)
print(time.process_time() - start)
"""


def test_loading_needs_neither_optimizer_nor_spark_and_is_fast(tmp_path: Path) -> None:
    _deployed(compile_text(JOINED), tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.5
