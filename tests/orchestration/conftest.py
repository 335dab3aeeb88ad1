"""The small flow, served."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.spec import FlowAsset
from orchestration import backfill, deploy, maintenance, show
from orchestration.runner import TickRunner
from orchestration.ticking import run_ticks
from tests.orchestration.small import opened


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    """The flow, three ticks of which are committed, as that of the commands."""
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None, together=3))
    for module in (backfill, deploy, maintenance, show):
        monkeypatch.setattr(module, "ALL_ASSETS", [flow])
        monkeypatch.setattr(module, "project_settings", lambda: runner.project)
    return flow, runner
