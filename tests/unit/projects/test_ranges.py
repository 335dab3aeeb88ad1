"""A range of ticks in which Spark's JVM ends is not tried as a whole a second time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hydro_core.errors import Diagnostic, EngineEndedError
from hydro_core.project.flow_asset import FlowAsset, Ticks
from hydro_core.settings import Settings
from hydro_core.ticks.calendar import TickWindow
from hydrotick.runner import correction as ranges
from hydrotick.runner.correction import Ranges

FLOW = FlowAsset("flow", "none:none", Ticks(datetime(2026, 1, 1, tzinfo=UTC)), {})


def _ran(most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[bool]]:
    """How many ticks each try had of eight, where a process bears so many; and what came of it."""
    tried: list[int] = []

    def together(_: Ranges, windows: Sequence[TickWindow]) -> Sequence[Any]:
        tried.append(len(windows))
        if len(windows) > most:
            raise EngineEndedError(Diagnostic("runtime", "it ended", help="run it again"))
        return [SimpleNamespace(committed=True) for _ in windows]

    monkeypatch.setattr(Ranges, "_together", together)
    monkeypatch.setattr(ranges, "longest_range", lambda *_: None)
    pipeline: Any = SimpleNamespace(plan=None, settings=Settings())
    windows = [FLOW.ticks.calendar.window(tick) for tick in range(8)]
    made = Ranges(FLOW, pipeline, lambda _: {}, lambda _: None).run(windows)
    return tried, [report.committed for report in made]


def test_it_is_halved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ran(4, monkeypatch) == ([8, 4, 2, 1, 1], [True] * 8)
    assert _ran(8, monkeypatch) == ([8], [True] * 8)


def test_a_single_tick_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ran(0, monkeypatch) == ([8, 4, 2, 1, 1], [False])
