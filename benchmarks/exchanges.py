"""A keyed join and an aggregate behind it: routed once, or by each operator for itself.

What a join has brought together lies by its key, so the aggregate takes it where it is. Beside it
runs the same plan in which nothing is known of how rows lie: each operator routes what it gets. A
tick joins its orders with five million stored users; a range of ten ticks begins with nothing and
joins five million orders with its users. Nothing is broadcast, as where both sides are large. Both
variants have to give the same rows; what differs is Spark's exchanges, and the time.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from hydro_core.ir.graph import Node
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.executor.executor import Job, Run, run_range
from hydro_core.spark.executor.fixpoint import NoPast, PastState
from hydro_core.spark.frames.materialize import checkpointed, released
from hydro_core.spark.frames.relation import ITEM, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.registry import Step

PROGRAM = """
orders = source("user long, amount long")
users = source("user long, city string")
known = users -> persist()
orders -> {kept}join(right=known, on="user") -> aggregate(
    by="user", n=count(), spent=sum("amount"), city=max("city")
) -> {new}totals
"""
TICKS = 10
ONCE, EACH = "routed once", "by each operator"
_EXCHANGE = re.compile(r"(?<!Reused)(?<!Broadcast)Exchange ")


@dataclass(frozen=True, slots=True)
class Case:
    """A plan, and the ticks that it runs over rows that are there."""

    plan: TickPlan
    first: int
    last: int
    sources: Mapping[str, DataFrame]
    past: PastState

    def run(self, spark: SparkSession) -> tuple[int, Row]:
        """Computes the output: the exchanges of all jobs, and what tells of its rows."""
        placed = 0

        def materialize(frame: DataFrame) -> tuple[DataFrame, int]:
            nonlocal placed
            placed += exchanges(frame)
            return checkpointed(frame)

        with released(spark):
            job = Job(
                self.plan,
                self.first,
                self.last,
                spark,
                self.sources,
                self.past,
                materialize=materialize,
            )
            found = run_range(job)
            rows = found.outputs["totals"].frame
            told = rows.agg(F.count(F.lit(1)), F.bit_xor(F.xxhash64(ITEM, TICK))).head()
            return placed + exchanges(rows), told


@dataclass(frozen=True, slots=True)
class Stored:
    """A table, of which a slot has the columns that it wants."""

    table: DataFrame

    def rows(self, slot: StateSlot) -> DataFrame:
        """The rows of a slot."""
        names = spark_type(slot.item).fieldNames()  # type: ignore[attr-defined]
        return self.table.select(F.struct(*(F.col(f"{ITEM}.{n}") for n in names)).alias(ITEM), TICK)


def exchanges(frame: DataFrame) -> int:
    """The exchanges of its plan."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001 - Spark offers Python no other way
    return len(_EXCHANGE.findall(execution.executedPlan().toString()))


@contextmanager
def nothing_known() -> Iterator[None]:
    """Within it no operator knows how the rows lie that it gets."""
    known = Run._step  # noqa: SLF001 - there is no switch for it

    def step(run: Run, node: Node, inputs: Iterable[Relation]) -> Step:
        forgotten = [relation.with_(partitioned_by=None, distinct=None) for relation in inputs]
        return known(run, node, forgotten)

    with patch.object(Run, "_step", step):
        yield


def cases(spark: SparkSession, folder: Path, history: int, new: int) -> dict[str, Case]:
    """A tick upon the history, and a range that makes one."""

    def table(name: str, rows: int, users: int, ticks: Column, **others: Column) -> DataFrame:
        user = F.col("id") if rows <= users else F.pmod(F.xxhash64("id"), F.lit(users))
        item = F.struct(user.alias("user"), *(c.alias(n) for n, c in others.items())).alias(ITEM)
        path = str(folder / name)
        spark.range(rows).select(item, ticks.cast("long").alias(TICK)).write.parquet(path)
        return spark.read.parquet(path)

    city = F.concat(F.lit("city "), F.col("id") % 997)
    amount, now = F.col("id") % 1009, F.lit(TICKS)
    any_tick = F.col("id") % TICKS
    users = table("known", history, history, any_tick, city=city)
    some = {
        "orders": table("new orders", new, history, now, amount=amount),
        "users": table("new users", new // 100, history, now, city=city),
    }
    every = {
        "orders": table("orders", history, history // 10, any_tick, amount=amount),
        "users": table("users", history // 10, history // 10, F.lit(0), city=city),
    }
    tick = plan_of(PROGRAM.format(kept="", new=""))
    of_range = plan_of(PROGRAM.format(kept="persist() -> ", new="delta() -> "))
    return {
        f"a tick of {new:,} orders": Case(tick, TICKS, TICKS, some, Stored(users)),
        f"{TICKS} ticks of {history:,} orders": Case(of_range, 0, TICKS - 1, every, NoPast()),
    }


def main() -> int:
    """Measures both, and says how each is to the plan that knows nothing."""
    parser = parser_of("exchanges", __doc__)
    parser.add_argument("--history", type=int, default=5_000_000)
    parser.add_argument("--new", type=int, default=1_000_000, help="orders of the tick")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1)
    parser.set_defaults(memory="2g")
    asked = parser.parse_args()
    spark, _ = session(asked.memory, (("spark.sql.autoBroadcastJoinThreshold", "-1"),))
    rows: list[dict[str, object]] = []
    ratios = []
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        for name, case in cases(spark, Path(scratch), asked.history, asked.new).items():
            found: dict[str, tuple[int, Row]] = {}

            def once(_: int, case: Case = case, found: dict[str, tuple[int, Row]] = found) -> None:
                found[ONCE] = case.run(spark)

            def each(_: int, case: Case = case, found: dict[str, tuple[int, Row]] = found) -> None:
                with nothing_known():
                    found[EACH] = case.run(spark)

            note(name)
            runs = Meter(spark, asked.seconds).alternate(
                {ONCE: once, EACH: each}, range(asked.warm + asked.rounds), asked.warm
            )
            if found[ONCE][1] != found[EACH][1]:
                sys.exit(f"{name}: they give different rows")
            for how, (placed, _) in found.items():
                rows.append(
                    {
                        "of": name,
                        "rows": how,
                        "exchanges": placed,
                        "s": runs[how].seconds,
                        "cpu, s": runs[how].cpu,
                        "cpu / by each": runs[how].cpu / runs[EACH].cpu,
                    }
                )
            ratios.append(
                Ratio(f"{name}, routed once: cpu over by each", runs[ONCE].cpu / runs[EACH].cpu)
            )
    report("a keyed join and an aggregate behind it", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
