"""The shared vectors on the reference interpreter, in this process and through the command line."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.golden.vectors import Vector, calendar_of, key, shared, vectors
from tests.support.selection import mostly_slow

VECTORS = vectors("dfir", "fuzz", "ordered")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not VECTORS, reason="the shared vectors are not here")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vector(vector: Vector) -> None:
    program, schemas, calendar = vector["program"], vector.get("schemas", {}), calendar_of(vector)
    ticks = vector.get("ticks", [{}])
    if "error" in vector:
        with pytest.raises(HydroError) as caught:
            run_json(parse(program), schemas, ticks, Options(optimized=False), calendar)
        assert caught.value.code in [vector["error"], *vector.get("error_alternatives", [])]
        return
    found = run_json(parse(program), schemas, ticks, Options(optimized=False), calendar)
    ordered = vector.get("ordered", [])
    for got, wanted in zip(found, vector["expect"], strict=True):
        assert got.keys() == wanted.keys()
        for name, items in wanted.items():
            collect = list if name in ordered else Counter
            assert collect(map(key, got[name])) == collect(map(key, items))


@pytest.mark.parametrize("names", mostly_slow([("ordered",), ("dfir", "fuzz", "ordered")], 1))
def test_the_command_line_passes_the_judge(names: tuple[str, ...]) -> None:
    judge, folder = shared("tools"), shared("vectors")
    assert judge is not None
    assert folder is not None
    command = f"{sys.executable} -m hydro_core.cli.main run --batch {{jobs}} --engine reference"
    done = subprocess.run(
        [
            sys.executable,
            judge / "judge_vectors.py",
            "--command",
            command,
            *(folder / name for name in names),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    told = f"{len(vectors(*names))} passed, 0 failed"
    assert done.stdout.splitlines()[-1] == told, done.stdout
