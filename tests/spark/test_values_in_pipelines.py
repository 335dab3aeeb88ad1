"""Values at the ends of their types, through tables that are written by either way and switched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import compile_text
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from tests.support.stored import MODES, stored_outputs

pytestmark = pytest.mark.spark

ENDS: dict[str, tuple[str, list[Any]]] = {
    "b": ("byte", [-128, 127, None]),
    "s": ("short", [-(2**15), 2**15 - 1, 0]),
    "i": ("int", [-(2**31), 2**31 - 1, None]),
    "l": ("long", [-(2**63), 2**63 - 1, 0]),
    "f": ("float", [float("-Infinity"), 3.4028234663852886e38, 1.401298464324817e-45]),
    "d": ("double", [float("NaN"), 1.7976931348623157e308, 5e-324]),
    "e": ("double", [float("Infinity"), float("-Infinity"), None]),
    "p": ("decimal(38,0)", ["-" + "9" * 38, "9" * 38, "0"]),
    "q": ("decimal(38,38)", ["-0." + "9" * 38, "0." + "9" * 38, None]),
    "t": ("string", ["", "\x00\U0010ffff", "a" * 70_000]),
    "x": ("binary", ["", "AP8=", None]),
    "o": ("boolean", [True, False, None]),
    "day": ("date", ["0001-01-01", "9999-12-31", "1582-10-10"]),
    "at": (
        "timestamp",
        ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1677-09-21T00:12:43Z"],
    ),
    "a": ("array<long>", [[], [None, -(2**63)], None]),
}
SCHEMA = ", ".join(f"{name} {of}" for name, (of, _) in ENDS.items())
SCALARS = [name for name in ENDS if name not in ("a", "x", "o")]
PROGRAM = f"""
rows = source("k long, {SCHEMA}")
rows -> everything
rows -> persist() -> history
rows -> prev() -> before
rows -> persist() -> unique() -> distinct
rows -> persist() -> aggregate(by="k", {", ".join(f'{n}=max("{n}")' for n in SCALARS)}) -> most
rows -> persist() -> aggregate({", ".join(f'{n}=min("{n}")' for n in SCALARS)}) -> least
rows -> persist() -> latest(by="k", order="day") -> last
"""
TICKS = [
    {
        "rows": [
            {"k": i, **{name: values[(i + t) % 3] for name, (_, values) in ENDS.items()}}
            for i in range(3)
        ]
    }
    for t in range(5)
]


SLOW = pytest.mark.slow
WAYS = [pytest.param(mode, marks=() if mode == "switched" else SLOW) for mode in MODES]


@pytest.mark.parametrize("mode", WAYS)
def test_they_come_back_as_they_were(mode: str, tmp_path: Path, spark: SparkSession) -> None:
    program = compile_text(PROGRAM)
    given = list(read_ticks(program.typed, TICKS))
    wanted = list(run_ticks(program.typed, program.strata, given))
    found = stored_outputs(tmp_path / "pipeline", program, given, mode, spark)
    for tick, (got, expected) in enumerate(zip(found, wanted, strict=True)):
        for name, items in expected.items():
            assert sorted(map(repr, got[name])) == sorted(map(repr, items)), (tick, name)
