"""What a tick reads after 10, 100 and 1,000 ticks: programs as written beside their plans.

Both run on the reference interpreter, which follows the definitions, so the rows that operators
read are those of the plan and of nothing else. The history comes as one large tick (windows: with
the last ticks apart), then a few ticks of equal batches are measured.

Rows are counted by operator: what goes item by item reads its input, and so do sums, `unique` and
`delta`. What finds rows by key (joins, `difference`, running results) reads its smaller side, or
the one whose rows it keeps, and the rows that it finds; what only hands streams on reads nothing.
What a plan tells by its changes (running results, windows, padded joins) is read by them, where
nobody wants more.
Times are the interpreter's, which builds its indexes anew in each tick: they show what is not
computed again, not what a store costs. `--spark` adds the times of Spark.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.measure import Ratio, note, parser_of, report
from hydro_core.catalog.classes import (
    ExternalItems,
    History,
    KeyMatch,
    Output,
    PreviousTick,
    Product,
    RunningResult,
    Sum,
    TickDifference,
    Window,
    passes_on,
)
from hydro_core.compile import CompiledProgram, compile_text, optimized, planned
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.streams import changes_suffice
from hydro_core.plan.tick_plan import Kind
from hydro_core.reference.bag import EMPTY, Bag
from hydro_core.reference.interpreter import Hooks, run_ticks
from hydro_core.running import read_ticks
from hydro_core.ticks.tick import TickInput

HISTORIES = (10, 100, 1000)
MEASURED = 3
GOAL = 1.5
"""A tick after 1,000 ticks may read so many times what it reads after 10."""
HANDS_ON = ExternalItems | Output | History | PreviousTick | Window | Sum
"""Operators that only hand streams on."""

Tick = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and the batch of a tick; the last `apart` ticks of a history, which is at least
    so long, come one by one.
    """

    program: str
    batch: Callable[[int, Random], Tick]
    apart: int = 0


def _chat(tick: int, rng: Random) -> Tick:
    members = [f"member {i}" for i in range(10)] if tick == 0 else []
    return {"members": members, "messages": [f"message {tick} {i}" for i in range(10)]}


def _join(tick: int, rng: Random) -> Tick:
    customers = [{"customer": 5 * tick + i, "city": f"city {i}"} for i in range(5)]
    orders = [{"customer": rng.randrange(5 * tick + 5), "amount": i} for i in range(20)]
    return {"orders": orders, "customers": customers}


def _paid(tick: int, rng: Random) -> Tick:
    return {"paid": [{"user": rng.randrange(50), "amount": rng.randrange(100)} for _ in range(20)]}


def _visits(tick: int, rng: Random) -> Tick:
    seen = [[rng.randrange(20 * tick + 20), 0] for _ in range(10)]
    return {"visits": [*seen, *([20 * tick + i, 0] for i in range(10))]}


def _changes(tick: int, rng: Random) -> Tick:
    return {
        "rows": [
            {"id": rng.randrange(100), "at": 10 * tick + i, "gone": rng.random() < 0.2}
            for i in range(10)
        ]
    }


def _edges(tick: int, rng: Random) -> Tick:
    """A path of five nodes that nothing else is joined with, and some of its shortcuts."""
    path = [[10 * tick + i, 10 * tick + i + 1] for i in range(5)]
    return {"edges": [*path, [10 * tick, 10 * tick + rng.randrange(2, 5)]]}


CASES: Mapping[str, Case] = {
    "chat": Case(
        'members = source("string"); messages = source("string")\n'
        "members -> persist() -> [0] notify; messages -> persist() -> [1] notify\n"
        "notify = cross() -> delta() -> out",
        _chat,
    ),
    "join": Case(
        'orders = source("customer long, amount long"); customers = source("customer long, '
        'city string")\nknown = customers -> persist()\n'
        'orders -> persist() -> join(right=known, on="customer") -> delta() -> out',
        _join,
    ),
    "left join": Case(
        'orders = source("customer long, amount long"); customers = source("customer long, '
        'city string")\nknown = customers -> persist()\n'
        'orders -> persist() -> join(right=known, on="customer", how="left") -> changes() -> out',
        _join,
    ),
    "aggregate": Case(
        'paid = source("user long, amount long")\npaid -> persist()\n'
        '  -> aggregate(by="user", n=count(), s=sum("amount"), mean=avg("amount"))'
        " -> delta() -> out",
        _paid,
    ),
    "count distinct": Case(
        'visits = source("(long, long)")\nvisits -> persist()\n'
        '  -> map(lambda x, y: {"user": x, "day": y}) -> aggregate(users=count_distinct("user"))'
        " -> out",
        _visits,
    ),
    "distinct": Case(
        'visits = source("(long, long)")\nvisits -> persist() -> unique() -> delta() -> out',
        _visits,
    ),
    "latest": Case(
        'rows = source("id long, at long, gone boolean")\n'
        'rows -> persist() -> latest(by="id", order="at") -> filter(lambda r: not r.gone)'
        " -> delta() -> out",
        _changes,
    ),
    "window": Case(
        'paid = source("user long, amount long")\n'
        'paid -> window(100) -> aggregate(by="user", n=count(), mean=avg("amount")) -> delta()'
        " -> out",
        _paid,
        apart=100,
    ),
    "reachability": Case(
        'edges = source("(long, long)"); known = edges -> persist(); known -> reach\n'
        "reach -> map(lambda a, b: (b, a)) -> join(right=known) -> map(lambda k, p: p) -> reach\n"
        "reach = union() -> unique(); reach -> delta() -> out",
        _edges,
    ),
}


class Reader:
    """Counts what the operators of a program read."""

    def __init__(self, program: CompiledProgram, *, told: bool) -> None:
        """`told`: streams that tell their changes are read by them, where nobody wants more."""
        self.rows: dict[str, int] = {}
        made = planned(program)
        grows = {n for n, kind in made.kinds.items() if kind is Kind.H}
        self._told = {*made.in_changes, *grows} if told else set()
        self._in_changes = changes_suffice(made.graph, self._told, made.kinds) if told else set()
        self._before: dict[NodeId, Bag] = {}
        self._changed: dict[NodeId, int] = {}

    def __call__(self, node: Node, inputs: Sequence[Bag], given: Mapping[Endpoint, Bag]) -> None:
        """An operator was evaluated."""
        out = sum(map(len, given.values()))
        if node.id in self._told:
            [now] = given.values()
            before = self._before.get(node.id, EMPTY)
            self._changed[node.id] = len(now.monus(before)) + len(before.monus(now))
            self._before[node.id] = now
        into = list(map(len, inputs))
        if node.id in self._in_changes or node.cls.reads_changes:
            into = [self._changed.get(e.node, n) for e, n in zip(node.inputs, into, strict=True)]
        read = self._read(node, into, out)
        self.rows[node.op.name] = self.rows.get(node.op.name, 0) + read

    def _read(self, node: Node, into: list[int], out: int) -> int:
        cls = node.cls
        if isinstance(cls, HANDS_ON) or passes_on(cls) or not into:
            return 0
        if isinstance(cls, Product | KeyMatch):
            if node.id in self._in_changes:
                return sum(into) + self._changed[node.id]
            return _found_by_key(cls, into, out)
        if isinstance(cls, RunningResult):
            # the row of each key that the batch names, too
            return sum(into) + min(out, sum(into))
        if isinstance(cls, TickDifference):
            return sum(into) if node.inputs[0].node in self._told else 2 * into[0]
        return sum(into)


def _found_by_key(cls: Product | KeyMatch, into: list[int], out: int) -> int:
    left, right = into
    match cls:
        case KeyMatch(wanted=False):
            return left
        case Product(keeps=keeps) if len(keeps) == 1:
            return into[next(iter(keeps))] + out
        case Product(keeps=keeps) if keeps:
            return left + right
        case _:
            return min(left, right) + out


def ticks_of(case: Case, history: int) -> list[Tick]:
    """The history, its last ticks apart, and the ticks that are measured."""
    rng = Random(7)
    each = [case.batch(tick, rng) for tick in range(history + MEASURED)]
    apart = min(case.apart, history)
    first = each[: history - apart]
    whole = {name: [x for tick in first for x in tick[name]] for name in each[0]}
    return [whole, *each[history - apart :]]


def measure(name: str, history: int, *, plan: bool) -> Mapping[str, Any]:
    """The rows that a tick reads after so many ticks, and how long it takes."""
    case = CASES[name]
    program = compile_text(case.program)
    if plan:
        program = optimized(program)
    ticks: list[TickInput] = list(read_ticks(program.typed, ticks_of(case, history)))
    reader = Reader(program, told=plan)
    seconds, rows = [], []
    started = time.perf_counter()
    for _ in run_ticks(program.typed, program.strata, ticks, hooks=Hooks(watch=reader)):
        now = time.perf_counter()
        seconds.append(now - started)
        rows.append(sum(reader.rows.values()))
        reader.rows.clear()
        started = time.perf_counter()
    return {
        "rows": round(statistics.mean(rows[-MEASURED:])),
        "ms": round(1000 * statistics.median(seconds[-MEASURED:]), 2),
    }


def measure_on_spark(name: str, history: int, *, plan: bool) -> float:
    """How long a tick takes on Spark with its state in memory, in seconds."""
    from benchmarks.measure import session
    from hydro_core.spark.executor.memory import run_in_memory

    case = CASES[name]
    program = compile_text(case.program)
    if plan:
        program = optimized(program)
    spark, settings = session()
    ticks = list(read_ticks(program.typed, ticks_of(case, history)))
    seconds = []
    started = time.perf_counter()
    for _ in run_in_memory(planned(program), ticks, settings, spark=spark):
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
    return round(statistics.median(seconds[-MEASURED:]), 3)


def main() -> int:
    """Prints the table; 1 if a plan reads more the longer its history is."""
    parser = parser_of("incremental", __doc__ or "")
    parser.add_argument("cases", nargs="*", default=[], help=f"of {', '.join(CASES)}")
    parser.add_argument("--histories", type=int, nargs="+", default=list(HISTORIES))
    parser.add_argument("--spark", action="store_true", help="times of Spark, too")
    given = parser.parse_args()
    rows, ratios = [], []
    for name in given.cases or CASES:
        first = None
        least = CASES[name].apart
        for history in dict.fromkeys(max(h, least) for h in given.histories):
            naive = measure(name, history, plan=False)
            plan = measure(name, history, plan=True)
            first = first or plan["rows"]
            row = {
                "case": name,
                "ticks before": history,
                "naive rows": naive["rows"],
                "plan rows": plan["rows"],
                "naive ms": naive["ms"],
                "plan ms": plan["ms"],
                "rows against the first": round(plan["rows"] / first, 2),
            }
            if given.spark:
                row["naive Spark s"] = measure_on_spark(name, history, plan=False)
                row["plan Spark s"] = measure_on_spark(name, history, plan=True)
            rows.append(row)
            note(f"{name} after {history}: {naive['rows']} rows, the plan {plan['rows']}")
        growth = rows[-1]["rows against the first"]
        ratios.append(Ratio(f"{name}: rows of a late tick over an early one", growth, GOAL))
    report("Rows read and time of a tick, by the ticks before it", rows, ratios, given)
    return int(any(ratio.value > GOAL for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
