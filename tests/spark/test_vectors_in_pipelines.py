"""The shared vectors as stored pipelines: what the tables hold, tick by tick, is what they expect.

In plans of few rows and of many, with settings that change between ticks, and over rows with forty
columns that nobody reads. Some of them, by which every operator and every class is judged, in one
way each; all of them in all ways where there is time.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.analysis.infer import Typed
from hydro_core.compile import CompiledProgram
from hydro_core.errors import HydroError
from hydro_core.running import read_ticks
from hydro_core.types.json import to_json
from tests.golden.vectors import Vector, calendar_of, key, vectors
from tests.spark.coverage import compiled, errors_of, of_every_operator
from tests.support.stored import MODES, as_named, storable, stored_outputs
from tests.support.widened import narrow, widened, wider

VECTORS = vectors("dfir", "fuzz", "ordered")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not VECTORS, reason="the shared vectors are not here"),
]


def program_of(vector: Vector) -> CompiledProgram | None:
    """The program; None where it means nothing, which is judged elsewhere."""
    try:
        return compiled(vector, optimize=False)
    except HydroError as problem:
        if problem.code not in errors_of(vector):
            raise
        return None


def judge(
    vector: Vector, mode: str, directory: Path, spark: SparkSession, *, wide: bool, optimize: bool
) -> None:
    program, ticks = program_of(vector), vector.get("ticks", [{}])
    if program is not None and wide:
        program, ticks = widened(program), wider(ticks)
    if program is None:
        return

    program = storable(program)

    def run(of: CompiledProgram) -> list[dict[str, list[Any]]]:
        given = list(read_ticks(of.typed, ticks, calendar_of(vector)))
        found = stored_outputs(directory, of, given, mode, spark, optimize=optimize)
        return [as_json(of.typed, tick) for tick in found]

    if "error" in vector:
        with pytest.raises(HydroError) as caught:
            run(program)
        assert caught.value.code in errors_of(vector)
        return
    for got, wanted in zip(run(program), vector["expect"], strict=True):
        assert got.keys() == wanted.keys()
        for name, items in wanted.items():
            is_ordered = name in vector.get("ordered", [])
            have, want = list(map(key, got[name])), list(map(key, items))
            assert have == want if is_ordered else sorted(have, key=repr) == sorted(want, key=repr)


def as_json(typed: Typed, tick: Any) -> dict[str, list[Any]]:
    outputs = typed.outputs
    return {
        name: [narrow(as_named(to_json(x, outputs[name].item))) for x in items]
        for name, items in tick.items()
    }


def mode_of(vector: Vector) -> str:
    """One of the modes, for each vector the same."""
    return sorted(MODES)[_digest(vector["name"]) % len(MODES)]


def _digest(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest())


@pytest.mark.parametrize("vector", of_every_operator(VECTORS, _digest), ids=lambda v: v["name"])
def test_every_operator(vector: Vector, tmp_path: Path, spark: SparkSession) -> None:
    mode = mode_of(vector)
    program = program_of(vector)
    wide = program is not None and widened(program) is not None
    judge(vector, mode, tmp_path / "pipeline", spark, wide=wide, optimize=True)


WIDE = [v for v in VECTORS if (p := program_of(v)) is not None and widened(p) is not None]


@pytest.mark.slow
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "written"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_all(
    vector: Vector, mode: str, optimize: bool, tmp_path: Path, spark: SparkSession
) -> None:
    judge(vector, mode, tmp_path / "pipeline", spark, wide=False, optimize=optimize)


@pytest.mark.slow
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "written"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vector", WIDE, ids=lambda v: v["name"])
def test_all_over_wide_rows(
    vector: Vector, mode: str, optimize: bool, tmp_path: Path, spark: SparkSession
) -> None:
    judge(vector, mode, tmp_path / "pipeline", spark, wide=True, optimize=optimize)
