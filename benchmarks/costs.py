"""What the terms of the optimizer's cost model take: a row that is read, made, stored, searched.

Each program spends its tick on one term and is run at several sizes, in turns; a line through its
processor times gives what a row takes. All are told over a row that is read, as the model has them,
beside its constants. What a tick costs beside its rows is measured by `fixed_part`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.measure import Meter, Ratio, parser_of, report, session
from hydro_core.compile import best_plan, compile_text, planned
from hydro_core.optimize.cost import MADE, SEARCHED
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline

SCHEMA = 'a = source("k long, v long, w double")\nb = source("k long, z long")\n'
SUMMED = 'aggregate(n=count(), s=sum("v")) -> out'
WARM = 2


@dataclass(frozen=True, slots=True)
class Term:
    """A program that spends a tick on one term: the more, the larger the size is.

    `loads` says of a size the rows that the tick before the measured ones brings, `brings` those of
    each of these, by input.
    """

    text: str
    loads: Callable[[int], Mapping[str, int]]
    brings: Callable[[int], Mapping[str, int]]
    optimize: bool = True

    @property
    def plan(self) -> TickPlan:
        """What runs: as it is written, where the optimizer would not spend the tick so."""
        program = compile_text(SCHEMA + self.text)
        return planned(program, best_plan(program) if self.optimize else None)


FEW = 100
ROWS_OF_KEY = 10
MODEL = {"read": 1.0, "arrived": 1.0, "made": MADE, "stored": 1.0, "searched": SEARCHED}
"""What the cost model says of each."""
TERMS = {
    "read": Term(
        f"a -> persist() -> {SUMMED}\nb -> null()",
        lambda size: {"a": size},
        lambda _: {"a": FEW},
        optimize=False,
    ),
    "arrived": Term(f"a -> {SUMMED}\nb -> null()", lambda _: {}, lambda size: {"a": size}),
    "made": Term(
        f'a -> join(right=b, on="k") -> {SUMMED}',
        lambda _: {},
        lambda size: {"a": size, "b": keys_of(size)},
    ),
    "stored": Term(
        f'a -> {SUMMED}\nb -> join(right=h, on="k") -> others\nh = a -> persist()',
        lambda _: {},
        lambda size: {"a": size},
    ),
    "searched": Term(
        'h = a -> persist()\nb -> join(right=h, on="k") -> out',
        lambda size: {"a": size},
        lambda _: {"b": FEW},
    ),
}


def batches(rows: Mapping[str, int], keys: int, rng: np.random.Generator) -> dict[str, pa.Table]:
    """Rows of both inputs; `b` has each of its keys once, of those that `a` has."""
    found = {}
    if rows.get("a"):
        count = rows["a"]
        found["a"] = pa.table(
            {"k": rng.integers(0, keys, count), "v": np.arange(count), "w": rng.random(count)}
        )
    if rows.get("b"):
        chosen = rng.choice(keys, rows["b"], replace=False)
        found["b"] = pa.table({"k": chosen, "z": np.ones(rows["b"], dtype=np.int64)})
    return found


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """What a row more takes, in seconds."""
    return float(np.polyfit(np.array(sizes, dtype=float), np.array(seconds), 1)[0])


def measured(
    name: str, asked: argparse.Namespace, meter: Meter, on: tuple[SparkSession, Settings]
) -> float:
    """What a row more of a term takes, in seconds of processor time."""
    term, rng = TERMS[name], np.random.default_rng(1)
    spark, settings = on
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        pipelines = {}
        for size in asked.sizes:
            pipelines[size] = Pipeline(Path(scratch, str(size)), term.plan, settings, spark)
            pipelines[size].run_tick(0, batches(term.loads(size), keys_of(size), rng))

        def tick(size: int, number: int) -> object:
            rows = batches(term.brings(size), keys_of(size), rng)
            return pipelines[size].run_tick(number, rows)

        runs = meter.alternate(
            {str(size): lambda number, size=size: tick(size, number) for size in asked.sizes},
            range(1, WARM + asked.ticks + 1),
            WARM,
        )
    return slope(asked.sizes, [runs[str(size)].cpu for size in asked.sizes])


def keys_of(size: int) -> int:
    """How many keys so many rows have."""
    return max(size // ROWS_OF_KEY, FEW)


def main() -> int:
    """Measures all terms, and says what a row of each takes over one that is read."""
    parser = parser_of("costs", __doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[500_000, 2_000_000])
    parser.add_argument("--ticks", type=int, default=5, help="measured ticks")
    asked = parser.parse_args()
    on = session(asked.memory)
    meter = Meter(on[0], asked.seconds)
    row = {name: measured(name, asked, meter, on) for name in TERMS}
    row["made"] -= (1 + 1 / ROWS_OF_KEY) * row["arrived"]
    row["stored"] -= row["arrived"]
    rows = [
        {"term": n, "ns a row": 1e9 * s, "over read": s / row["read"], "model": MODEL[n]}
        for n, s in row.items()
    ]
    ratios = [Ratio(f"{r['term']} over a row that is read", float(r["over read"])) for r in rows]
    report("what the terms of the cost model take, medians", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
