"""Ticks that somebody asks for, as one piece of work: what is to be corrected, run and reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..openlineage.events import Parent
from .logged import logged
from .ranges import Log
from .report import TickReport
from .runner import TickRunner


@dataclass(frozen=True, slots=True)
class AskedTicks:
    """The ticks that are `asked` for, and those that are to be reported `also`.

    `corrected`: of those that are asked for, the committed ones are computed again. `parent` is
    what has started them.
    """

    asked: frozenset[TickWindow]
    also: frozenset[TickWindow] = frozenset()
    corrected: bool = False
    parent: Parent | None = None

    @property
    def first(self) -> TickWindow:
        """The first tick that is asked for."""
        return min(self.asked, key=lambda window: window.tick)

    def reports(self, runner: TickRunner, flow: FlowAsset, log: Log) -> Iterator[TickReport]:
        """Runs the ticks of a flow and reports each; after one that fails none is run."""
        run = None if self.parent is None else self.parent.run
        yield from logged(self._reports(runner, flow, log), flow.name, run)

    def _reports(self, runner: TickRunner, flow: FlowAsset, log: Log) -> Iterator[TickReport]:
        done = set[TickWindow]()
        if self.corrected and self.first.tick < runner.next_tick(flow):
            for report in runner.correct(flow, self.first, log, parent=self.parent):
                done.add(report.window)
                yield report
        left = (self.asked | self.also) - done
        if left:
            yield from runner.run(flow, list(left), log, self.parent)
