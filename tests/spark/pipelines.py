"""Pipelines for the tests of the store: a small program with all kinds of state, its batches."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hydro_core.analysis.infer import infer
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.storage.remote import DataPlace

SETTINGS = Settings().with_(master="local[2]", memory="1g")

PROGRAM = """
members  = source("user string")
messages = source("user string, text string")
members  -> persist() -> [0] broadcast
messages -> persist() -> [1] broadcast
broadcast = cross() -> delta() -> notify
messages -> persist() -> everything
messages -> persist() -> aggregate(by="user", n=count()) -> counts
messages -> prev() -> before
messages -> sort() -> in_order
"""
OUTPUTS = ("notify", "everything", "counts", "before", "in_order")

Batch = dict[str, pa.Table]


def planned(program: str = PROGRAM) -> TickPlan:
    typed = infer(parse(program))
    return plan(typed)


def opened(directory: DataPlace, program: str = PROGRAM, settings: Settings = SETTINGS) -> Pipeline:
    return Pipeline(directory, planned(program), settings)


def batch(tick: int, messages: int = 2) -> Batch:
    texts = [f"{tick}.{i}" for i in range(messages)]
    return {
        "members": pa.table({"user": [f"m{tick}"]}),
        "messages": pa.table({"user": [f"u{i % 3}" for i in range(messages)], "text": texts}),
    }


def contents(pipeline: Pipeline) -> dict[str, list[str]]:
    """All that is committed, independent of the order of rows."""
    found = {
        name: sorted(map(repr, pipeline.output(name, every=True).to_pylist())) for name in OUTPUTS
    }
    last = pipeline.last_committed or 0
    for slot, spec in pipeline.state_tables.items():
        found[slot] = sorted(map(repr, pipeline.store.arrow(spec.name, 0, last).to_pylist()))
    return found


class Crash(BaseException):
    """The process ends here, as far as the pipeline can tell."""


def crash_at(step: str) -> Callable[[str], None]:
    def stop(name: str) -> None:
        if name == step:
            raise Crash(name)

    return stop
