"""What is edited while a code location goes on: its sensor sees it, or says that it does not."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.init import put_project
from hydrotick.code_location.factory import flow_definitions
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner

pytestmark = pytest.mark.dagster


class Watched:
    """The sensor of a flow that was loaded once, and the flow's files."""

    def __init__(self, directory: Path) -> None:
        put_project(directory / "shop", "totals")
        found = project_at(directory / "shop")
        self.flow: FlowAsset
        (self.flow,) = found.flows
        self.runner = TickRunner(found.settings)
        (self.sensor,) = flow_definitions(self.flow, self.runner).sensors
        self.asset = directory / "shop" / "assets" / "totals" / "asset.yaml"
        self.program = self.asset.with_name("totals.hydro")

    def says(self) -> str:
        """What the sensor's page shows after it has looked."""
        with dg.DagsterInstance.ephemeral() as instance:
            context = dg.build_sensor_context(instance=instance)
            self.sensor(context)
            return str(context.cursor)

    def edit(self, was: str, now: str) -> None:
        """Changes what the asset says."""
        text = self.asset.read_text()
        assert was in text
        self.asset.write_text(text.replace(was, now))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_when_ticks_may_run_counts_as_it_is_written(watched: Watched) -> None:
    assert "2026-01-01" in watched.says()
    assert "reload" not in watched.says()
    watched.edit("every: 1d", "every: 1d, delay: 30000d")
    assert watched.says().startswith("up to date; tick 2026-01-01 is next")
    assert "has changed, and counts; reload the code location" in watched.says()
    watched.edit(", delay: 30000d", "")
    assert "may run" in watched.says()


def test_ticks_that_are_others_wait_for_a_reload(watched: Watched) -> None:
    watched.edit("every: 1d", "every: 12h")
    says = "its ticks are others since the location was loaded: reload the code location"
    assert watched.says() == says


def test_a_declaration_that_is_wrong_by_now_is_told(watched: Watched) -> None:
    watched.edit("every: 1d", "every: often")
    assert watched.says().startswith("what it declares is wrong by now:\nerror[config]")
    watched.asset.unlink()
    assert watched.says() == "the flow is not declared any more: reload the code location"


def test_a_program_that_is_changed_is_told(watched: Watched) -> None:
    watched.runner.deployments.prepare(watched.flow)
    before = watched.says()
    watched.program.write_text(watched.program.read_text() + "\n# A remark.\n")
    assert watched.says() == before
    (watched.program.parent / "functions.py").write_text("RATE = 2\n")
    assert "`functions.py` changed, which this process has loaded before" in watched.says()
