"""Ticks that come one by one, and all of them as one job, run by the same plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hydro_core import engines
from hydro_core.compile import CompiledProgram, best_plan, compile_text
from hydro_core.engines import Engine, Options
from hydro_core.ir.graph import Graph
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.running import read_ticks, run_items

PAIRS = (
    'a = source("(long, long)"); b = source("(long, long)")\n'
    "pa = a -> persist(); pb = b -> persist()\n"
    "pa -> join(right=pb) -> delta() -> out"
)


@pytest.mark.parametrize("engine", ["reference", "spark"])
@pytest.mark.parametrize("as_range", [False, True], ids=["ticks", "range"])
@pytest.mark.parametrize("shards", [None, 2], ids=["whole", "shards"])
def test_a_run_follows_the_plan_that_is_printed(
    engine: Engine, as_range: bool, shards: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_text(PAIRS)
    ran: list[Graph] = []

    def note(plan: CompiledProgram | TickPlan, *_: Any, **__: Any) -> Iterator[Any]:
        ran.append(plan.graph)
        return iter(())

    monkeypatch.setattr("hydro_core.spark.executor.memory.run_in_memory", note)
    monkeypatch.setattr(
        engines, "run_ticks", lambda typed, strata, *_: note(CompiledProgram(typed, strata))
    )
    ticks = read_ticks(program.typed, [{"a": [[1, 2]]}])
    cut = None if shards is None else engines.ShardingOptions(shards)
    list(run_items(program, ticks, Options(engine=engine, as_range=as_range, cut=cut)))
    (graph,) = ran
    printed = best_plan(program).graph
    assert len(graph.named("old")) == len(printed.named("old")) * (shards or 1)
    assert printed.named("old")
