"""Two flows of which one reads what the other gives, as a project in a home of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.records import recorded_tables
from hydrotick.instance.opening import open_instance
from hydrotick.project.project import Project
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import contents, land, serve, small_flow

PEAKS = """
totals = source("user string, total long")
totals -> persist() -> aggregate(by="user", most=max("total")) -> delta() -> peaks
"""


def land_small(landing: Path) -> None:
    """Lands the small flow's data; what a flow brings with it is copied with it."""
    land(ProjectSettings(home=landing.parent))


class Shop:
    """The project, whose flows `small` and `peaks` run in this process, recorded by Dagster."""

    def __init__(self, home: Path) -> None:
        self.settings = ProjectSettings(home=home, spark_master="local[2]")
        if not self.settings.landing.exists():
            land(self.settings)
        small = replace(small_flow(home / "program"), land=land_small)
        program = home / "program" / "peaks.hydro"
        program.write_text(PEAKS, encoding="utf-8")
        inputs = {"totals": FlowOutput("small", "totals", late="correct")}
        peaks = replace(small, name="peaks", program=program, inputs=inputs, expect={}, land=None)
        self.small, self.peaks = small, peaks
        # What is fed stands first: the order of copying is not that of declaring.
        self.flows: Sequence[FlowAsset] = (small, peaks)
        self.runner = TickRunner(self.settings)

    @property
    def project(self) -> Project:
        """The same as commands have it."""
        return Project(self.settings, self.flows)

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> Shop:
        """Makes it what commands are about."""
        serve(monkeypatch, self.flows, self.settings)
        return self

    def run(self, last: int, *flows: FlowAsset) -> Shop:
        """Runs all ticks up to one, of some flows."""
        for flow in flows or self.flows:
            list(run_ticks(flow, self.runner, last, lambda _: None))
        return self

    def contents(self) -> Mapping[str, Mapping[str, list[str]]]:
        """All that is committed, by the flows' names."""
        return {flow.name: contents(flow, self.runner) for flow in self.flows}

    def done(self) -> list[int]:
        """How many ticks are committed, of each flow."""
        return [self.runner.next_tick(flow) for flow in self.flows]

    def recorded(self) -> list[int]:
        """How many ticks Dagster has of each flow; all its assets have the same."""
        found = []
        with open_instance(self.settings.dagster_home) as instance:
            for flow in self.flows:
                counts = {
                    len(instance.get_materialized_partitions(key))
                    for key in recorded_tables(instance, flow)
                }
                (count,) = counts or {0}
                found.append(count)
        return found


def files_of(directory: Path) -> dict[str, tuple[int, int]]:
    """The files below a directory, with their sizes and times; locks are no matter."""
    return {
        str(file.relative_to(directory)): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(directory.rglob("*"))
        if file.is_file() and not file.name.endswith("lock")
    }
