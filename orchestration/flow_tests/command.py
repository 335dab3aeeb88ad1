"""`hydrotick test [FLOW]`: runs the tests of the project's flows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.compile import CompiledProgram
from hydro_core.engines import Options
from hydro_core.errors import HydroError, shown_file
from hydro_core.printing.tables import table_lines
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import program_of
from hydro_core.running import run_items

from ..project import project
from ..project.console import flow_named
from ..project.project import Project
from .judge import (
    MISSING,
    SAME,
    UNEXPECTED,
    JudgedTest,
    UnexpectedRows,
    files_of_tests,
    judge,
    tests_in,
)

_HINT = "tests of a flow are in its folder, in `tests.yaml` or `test_*.yaml`"


def test(options: Asked) -> Result:
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
    passed = all(one.passed for one in judged) and not wrong
    return Result(as_json(judged, wrong), (*lines, *hint), 0 if passed else 1)


def _judged(
    wanted: Sequence[FlowAsset], found: Project, options: Options, wrong: dict[str, HydroError]
) -> Iterator[JudgedTest]:
    """The tests of flows that were run; what cannot be run is noted as wrong."""
    names = {flow.name for flow in wanted}
    for folder in dict.fromkeys(flow.folder for flow in wanted):
        there = [flow for flow in found.flows if flow.folder == folder]
        programs: dict[str, CompiledProgram] = {}
        for file in files_of_tests(there[0]):
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
                    yield judge(one, program.typed, partial(run_items, program, options=options))


def _program(
    flow: FlowAsset, known: dict[str, CompiledProgram], wrong: dict[str, HydroError]
) -> CompiledProgram | None:
    if flow.name not in known:
        try:
            known[flow.name] = program_of(flow, served=flow.inputs)
        except HydroError as error:
            wrong[flow.name] = error
            return None
    return known[flow.name]


_MOST_ROWS = 30
"""So many rows of a difference are shown; where there are more, first those that differ."""


def as_text(
    judged: Sequence[JudgedTest], wrong: Mapping[str, HydroError], seconds: float
) -> Iterator[str]:
    """The lines that tell of tests, and of files and flows that are wrong themselves."""
    for one in judged:
        if not one.passed:
            yield from _failed(one)
            yield ""
    for name, error in wrong.items():
        yield f"{name}: its tests cannot be run"
        yield from (f"  {line}".rstrip() for line in str(error).splitlines())
        yield ""
    passed = sum(one.passed for one in judged)
    counts = [f"{passed} passed"]
    counts += [f"{len(judged) - passed} failed"] if passed < len(judged) else []
    counts += [f"{len(wrong)} wrong"] if wrong else []
    yield f"{', '.join(counts)} in {seconds:.2f} s"


def as_json(judged: Sequence[JudgedTest], wrong: Mapping[str, HydroError]) -> dict[str, Any]:
    return {
        "passed": sum(one.passed for one in judged),
        "failed": sum(not one.passed for one in judged) + len(wrong),
        "tests": [_test(one) for one in judged],
        "errors": [{"name": name, "error": error.as_json()} for name, error in wrong.items()],
    }


def _test(one: JudgedTest) -> dict[str, Any]:
    found: dict[str, Any] = {
        "flow": one.test.flow.name,
        "test": one.test.name,
        "file": one.test.span.file,
        "line": one.test.span.line,
        "passed": one.passed,
        "differences": [
            {
                "tick": difference.tick,
                "output": difference.output,
                "line": difference.span.line,
                "missing": difference.only(MISSING),
                "unexpected": difference.only(UNEXPECTED),
                "same": len(difference.only(SAME)),
            }
            for difference in one.differences
        ],
    }
    return found if one.error is None else {**found, "error": one.error.as_json()}


def _failed(one: JudgedTest) -> Iterator[str]:
    place = f"{shown_file(one.test.span.file)}:{one.test.span.line}"
    yield f"FAILED {one.test.flow.name}: {one.test.name} ({place})"
    if one.error is not None:
        yield from (f"  {line}".rstrip() for line in str(one.error).splitlines())
    for difference in one.differences:
        where = f"tick {difference.tick}, `{difference.output}` (line {difference.span.line})"
        yield f"  {where}: `-` is expected and missing, `+` is not expected"
        yield from (f"    {line}".rstrip() for line in _table(difference))


def _table(difference: UnexpectedRows) -> Iterator[str]:
    shown = list(difference.rows)
    if len(shown) > _MOST_ROWS:
        shown = [row for row in shown if row[0] != SAME][:_MOST_ROWS]
    # What is no object stands in a column `item`.
    rows = [(sign, row if isinstance(row, dict) else {"item": row}) for sign, row in shown]
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    cells = [[sign, *(row.get(name) for name in columns)] for sign, row in rows]
    yield from table_lines([" ", *columns], cells)
    if len(shown) < len(difference.rows):
        same = len(difference.only(SAME))
        more = len(difference.rows) - same - len(shown)
        yield f"… {same:,} row(s) as expected" + (
            f", {more:,} more that differ" if more > 0 else ""
        )
