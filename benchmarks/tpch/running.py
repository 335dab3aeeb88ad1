"""Ticks of TPC-H through a pipeline, and what its output says."""

from __future__ import annotations

from benchmarks.tpch.data import Ticks
from benchmarks.tpch.judge import Row
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline


def as_range(pipeline: Pipeline, ticks: Ticks, first: int, last: int) -> None:
    """Runs some ticks as one range."""
    batches: dict[str, Batch] = {}
    for name in pipeline.plan.graph.sources:
        rows = ticks.rows(name, first, last)
        of = rows["tick"].combine_chunks()
        item = pipeline.plan.typed.inputs[name].item
        batches[name] = batch_of(name, rows.drop_columns(["tick"]), item, of)
    pipeline.run_range(first, last, batches)


def answer(pipeline: Pipeline, tick: int) -> list[Row]:
    """The rows of a pipeline's one output as of a tick."""
    [(name, spec)] = pipeline.output_tables.items()
    found = pipeline.output(name, tick).select([column for column, _ in spec.items])
    return [tuple(row.values()) for row in found.to_pylist()]
