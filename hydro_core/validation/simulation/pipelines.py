"""A simulated case as a pipeline in a directory: in ranges, and with a crash in the middle."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from hydro_core.compile import CompiledProgram, best_plan, planned
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.batches import Batch
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rows import output_items
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.ticks.tick import Outputs
from hydro_core.types.arrow import arrow_type, to_arrow
from hydro_core.types.item import ItemType
from hydro_core.validation.simulation.simulate import Case, Windows


class _CrashError(BaseException):
    """The process ends here, as far as the pipeline can tell."""


def on_pipelines(
    program: CompiledProgram, windows: Windows, settings: Settings
) -> Callable[[Case], Sequence[Outputs]]:
    """Runs cases of a program by its optimized plan, each as a pipeline of its own."""
    made = planned(program, best_plan(program))
    items = {name: stream.item for name, stream in program.typed.inputs.items()}

    def run(case: Case) -> Sequence[Outputs]:
        with tempfile.TemporaryDirectory(prefix="hydrotick-simulate-") as directory:
            return _Run(made, items, windows, settings, Path(directory) / "pipeline").outputs(case)

    return run


class _Run:
    def __init__(
        self,
        made: TickPlan,
        items: Mapping[str, ItemType],
        windows: Windows,
        settings: Settings,
        directory: Path,
    ) -> None:
        self._plan, self._items, self._windows = made, items, windows
        self._settings, self._directory = settings, directory

    def outputs(self, case: Case) -> Sequence[Outputs]:
        """Outputs as of each tick, when all ticks are committed."""
        pipeline, first = self._opened(), 0
        for number, length in enumerate(case.ranges):
            last = first + length - 1
            if case.crash is not None and case.crash.range == number:
                self._crash(pipeline, case, (first, last), case.crash.step)
                # Another process takes over; the range may be committed by now.
                pipeline = self._opened()
                first = pipeline.next_tick
            if first <= last:
                self._run(pipeline, case, first, last)
            first = last + 1
        typed = self._plan.typed.outputs
        return [
            {
                name: output_items(pipeline.output(name, tick), pipeline.output_tables[name])
                for name in typed
            }
            for tick in range(len(case.ticks))
        ]

    def _opened(self) -> Pipeline:
        return Pipeline(self._directory, self._plan, self._settings)

    def _run(self, pipeline: Pipeline, case: Case, first: int, last: int) -> None:
        times = {
            tick: (window.start, window.end)
            for tick in range(first, last + 1)
            for window in (self._windows(tick),)
        }
        batches = {name: self._batch(name, case, first, last) for name in self._items}
        pipeline.run_range(first, last, batches, times=times)

    def _crash(self, pipeline: Pipeline, case: Case, ticks: tuple[int, int], step: int) -> None:
        left = step

        def stop(_: str) -> None:
            nonlocal left
            if not left:
                raise _CrashError
            left -= 1

        pipeline.step = stop
        with suppress(_CrashError):
            self._run(pipeline, case, *ticks)

    def _batch(self, name: str, case: Case, first: int, last: int) -> Batch:
        pairs = [
            (tick, ranked.item)
            for tick in range(first, last + 1)
            for ranked in case.ticks[tick].get(name, ())
        ]
        of = self._items[name]
        values: Any = to_arrow([item for _, item in pairs], of)
        columns = {ITEM: values.cast(arrow_type(of)), TICK: [tick for tick, _ in pairs]}
        schema = pa.schema([(ITEM, arrow_type(of)), (TICK, pa.int64())])
        return Batch(pa.table(columns, schema=schema), of, InputRead(name, len(pairs)))
