"""What is measured in a process of its own, from its start on: how definitions load, and `plan`.

    python -m benchmarks.fresh definitions HOME FLOWS
    python -m benchmarks.fresh plan HOME LANDED PROGRAM

prints a JSON object. Dagster is loaded before the clock starts, and nothing else: neither pyspark
nor the optimizer may be loaded here, unless what is measured loads it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hydro_core.project.flow_asset import FlowAsset

HEAVY = ("pyspark", "egglog", "great_expectations", "pandas")


@contextmanager
def _clock(into: dict[str, float], what: str) -> Iterator[None]:
    cpu, began = _cpu(), time.perf_counter()
    yield
    into[f"{what}_seconds"] = time.perf_counter() - began
    into[f"{what}_cpu"] = _cpu() - cpu


def _cpu() -> float:
    """Of this process and of those that it has started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def flights_in(home: Path, landed: Path, name: str = "flights") -> FlowAsset:
    """The flights as a flow of a home: its program can be edited, its data lie in `landed`."""
    from assets.flights.asset import FLIGHTS
    from hydro_core.project.flow_asset import Landing

    inputs = {n: Landing(str((landed / n).absolute()), "day") for n in FLIGHTS.inputs}
    return replace(FLIGHTS, name=name, program=program_at(home, name), inputs=inputs, land=None)


def program_at(home: Path, name: str = "flights") -> Path:
    """The file that a flow of a home is written in."""
    return home / "programs" / f"{name}.hydro"


def definitions(home: Path, flows: int) -> dict[str, float]:
    """How long the definitions of so many flows take to load."""
    found: dict[str, float] = {}
    with _clock(found, "imports"):
        from hydrotick.code_location.factory import project_definitions
        from hydrotick.project.settings import ProjectSettings
        from hydrotick.runner.runner import TickRunner
    known = [flights_in(home, home / "landing", f"flights_{i}") for i in range(flows)]
    with _clock(found, "flows"):
        runner = TickRunner(ProjectSettings(home=home))
        made = project_definitions(known, runner).get_repository_def()
    undeployed = [flow.name for flow in known if runner.deployments.active(flow) is None]
    if undeployed or len(made.get_all_jobs()) < flows:
        sys.exit(f"these are not deployed flows: {undeployed}, {len(made.get_all_jobs())} jobs")
    return found


def plan(home: Path, landed: Path, program: Path) -> dict[str, float | str]:
    """How long `hydrotick plan` takes for the flights where another program takes over."""
    from hydrotick.project.settings import ProjectSettings
    from hydrotick.runner.runner import TickRunner

    program_at(home).write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    found: dict[str, float] = {}
    with _clock(found, "plan"):
        from hydrotick.deploy.planning import DeployOptions, plan_deployment
        from hydrotick.deploy.report import report_of_plan

        runner = TickRunner(ProjectSettings(home=home))
        change = plan_deployment(flights_in(home, landed), runner, DeployOptions())
        text = "nothing changes" if change is None else str(report_of_plan(change, runner))
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - Spark tells no other way
        sys.exit("`plan` has started Spark")
    return {**found, "text": text}


def main() -> None:
    """Measures what the arguments say."""
    import dagster  # noqa: F401 - it is loaded before the clock starts

    match sys.argv[1:]:
        case ["definitions", home, flows]:
            found: dict[str, float | str | list[str]] = {**definitions(Path(home), int(flows))}
            found["loaded"] = [name for name in HEAVY if name in sys.modules]
        case ["plan", home, landed, program]:
            found = {**plan(Path(home), Path(landed), Path(program))}
        case _:
            sys.exit(__doc__)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
