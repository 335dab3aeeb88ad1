"""The small flow, served."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.project.flow_asset import FlowAsset
from hydrotick.runner import TickRunner
from hydrotick.ticking import run_ticks
from tests.orchestration.small import opened, serve


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    """The flow, three ticks of which are committed, as that of the commands."""
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None, together=3))
    serve(monkeypatch, [flow], runner.project)
    return flow, runner
