"""The plan for all ticks as one job: what is free there stays, and `run --range` uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hydro_core import engines
from hydro_core.catalog.internal import INTERNAL
from hydro_core.compile import Compiled, compile_text
from hydro_core.engines import Engine, Options
from hydro_core.optimize.optimizer import optimize
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.running import read_ticks, run_items

PAIRS = (
    'a = source("(long, long)"); b = source("(long, long)"); c = source("(long, long)")\n'
    "pa = a -> persist(); pb = b -> persist(); pc = c -> persist()\n"
)
ROWS = 'a = source("k long, v long")\n'
NAIVE = {
    "two-way": PAIRS + "pa -> cross(right=pb) -> delta() -> out",
    "join": PAIRS + "pa -> join(right=pb) -> delta() -> out",
    "three-way": PAIRS
    + "j = pb -> join(right=pc) -> map(lambda k, p: (k, p[1]))\n"
    + "pa -> join(right=j) -> delta() -> out",
    "distinct": PAIRS + "pa -> unique() -> delta() -> out",
    "outer": PAIRS + 'pa -> join(right=pb, how="outer") -> delta() -> out',
    "running": ROWS
    + 'a -> persist() -> aggregate(by="k", n=count(), m=avg("v")) -> delta() -> out',
    "latest": ROWS + 'a -> persist() -> latest(by="k", order="v") -> delta() -> out',
    "window": ROWS + 'a -> window(50) -> aggregate(by="k", s=sum("v")) -> out',
}


@pytest.mark.parametrize("text", NAIVE.values(), ids=NAIVE)
def test_in_a_range_history_is_free(text: str) -> None:
    program = compile_text(text)
    plans = {goal: optimize(program.typed, goal=goal).typed for goal in ("tick", "range")}
    dear = {"old", "prev", *INTERNAL}
    goes_on = {n.op.name for n in plans["tick"].graph} & dear or plan(plans["tick"]).in_changes
    assert goes_on, "a tick goes on from the one before"
    assert not {n.op.name for n in plans["range"].graph} & dear


def test_filters_go_early_in_a_range_too() -> None:
    program = compile_text(
        PAIRS + "pa -> join(right=pb) -> filter(lambda k, p: p[0] == 1) -> delta() -> out"
    )
    graph = optimize(program.typed, goal="range").graph
    (kept,) = graph.named("filter")
    assert kept.inputs[0].node in {"a", "pa"}


@pytest.mark.parametrize("engine", ["reference", "spark"])
@pytest.mark.parametrize("as_range", [False, True], ids=["ticks", "range"])
def test_a_run_uses_the_plan_for_what_it_does(
    engine: Engine, as_range: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_text(NAIVE["join"])
    ran: list[Compiled | TickPlan] = []

    def note(plan: Compiled | TickPlan, *_: Any, **__: Any) -> Iterator[Any]:
        ran.append(plan)
        return iter(())

    monkeypatch.setattr("hydro_core.spark.executor.memory.run_in_memory", note)
    monkeypatch.setattr(
        engines, "run_ticks", lambda typed, strata, *_: note(Compiled(typed, strata))
    )
    ticks = read_ticks(program.typed, [{"a": [[1, 2]]}])
    list(run_items(program, ticks, Options(engine=engine, as_range=as_range)))
    (plan,) = ran
    assert bool(plan.graph.named("old")) is not as_range
