"""`hydrotick test [FLOW]`: runs the tests of the project's flows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hydro_core.cli.command import Asked
from hydro_core.compile import Compiled
from hydro_core.engines import Options
from hydro_core.errors import HydroError, shown_file
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import program_of
from hydro_core.running import run_items

from ..project import project
from ..project.arguments import flow_named
from ..project.console import Console
from ..project.project import Project
from .judge import JudgedTest, judge
from .shown import as_json, as_text
from .written import files_beside, tests_in

_HINT = "tests of a flow are in its folder, in `tests.yaml` or `test_*.yaml`"


def test(options: Asked) -> int:
    found = project.current()
    wanted = list(found.flows)
    wrong: dict[str, HydroError] = {}
    if options.flow is None:
        wrong = {flow.name: flow.error for flow in found.broken}
    else:
        wanted = [flow_named(options.flow, found)]
    began = time.monotonic()
    # What a program gives is what is written, whatever the optimizer makes of it; Spark runs what
    # it made.
    on_spark = options.engine == "spark"
    run = Options(options.engine, optimized=on_spark, settings=found.settings.core)
    judged = list(_judged(wanted, found, run, wrong))
    lines = list(as_text(judged, wrong, time.monotonic() - began))
    hint = [] if judged or wrong else [_HINT]
    Console(options).give(as_json(judged, wrong), "\n".join((*lines, *hint)))
    return 0 if all(one.passed for one in judged) and not wrong else 1


def _judged(
    wanted: Sequence[FlowAsset], found: Project, options: Options, wrong: dict[str, HydroError]
) -> Iterator[JudgedTest]:
    """The tests of flows that were run; what cannot be run is noted as wrong."""
    names = {flow.name for flow in wanted}
    for folder in dict.fromkeys(flow.folder for flow in wanted):
        there = [flow for flow in found.flows if flow.folder == folder]
        programs: dict[str, Compiled] = {}
        for file in files_beside(there[0]):
            try:
                tests = tests_in(file, there)
            except HydroError as error:
                wrong[shown_file(file)] = error
                continue
            for one in tests:
                if one.flow.name not in names or one.flow.name in wrong:
                    continue
                program = _program(one.flow, programs, wrong)
                if program is not None:
                    yield judge(one, program.typed, partial(_run, program, options))


def _program(
    flow: FlowAsset, known: dict[str, Compiled], wrong: dict[str, HydroError]
) -> Compiled | None:
    if flow.name not in known:
        try:
            known[flow.name] = program_of(flow)
        except HydroError as error:
            wrong[flow.name] = error
            return None
    return known[flow.name]


def _run(program: Compiled, options: Options, ticks: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    return run_items(program, ticks, options)
