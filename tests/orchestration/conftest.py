"""The small flow, served, and an instance of Dagster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.backfill import run_ticks
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import STATED
from tests.orchestration.small import opened, serve
from tests.support import postgres
from tests.support.deployments import judge_differences


@pytest.fixture(autouse=True)
def _every_output_has_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_differences(monkeypatch, STATED)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    """The flow, three ticks of which are committed, as that of the commands."""
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 2, lambda _: None, together=3))
    serve(monkeypatch, [flow], runner.project)
    return flow, runner


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster that is gone after the test."""
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A PostgreSQL, where this machine has one."""
    pytest.importorskip("dagster_postgres")
    place = postgres.programs()
    if place is None:
        pytest.skip("there is no PostgreSQL on this machine")
    with postgres.served(place) as found:
        yield found
