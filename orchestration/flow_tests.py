"""`hydrotick test`: reads and runs the tests of the project's flows, and compares their rows.

Tests of a flow are in its folder, in `tests.yaml` or `test_*.yaml`:

```yaml
what the test is about:
  flow: totals          # where the folder has more than one
  ticks:
    - in:
        payments:
          - {user: ann, amount: 5}
      out:
        totals:
          - {user: ann, total: 5}
```

A tick without `in` has no data; of what `out` leaves out nothing is expected.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.compile import CompiledProgram
from hydro_core.engines import Options
from hydro_core.errors import Diagnostic, HydroError, ProgramError, Span, shown_file
from hydro_core.lang.source import did_you_mean
from hydro_core.printing.tables import table_lines
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import program_of
from hydro_core.project.yaml_text import Document, YamlValue
from hydro_core.running import run_items
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import ItemType, Order
from hydro_core.types.json import from_json, to_json
from hydro_core.types.values import ValueProblem

from .project import project
from .project.console import flow_named
from .project.project import Project

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
        "tests": [_test_json(one) for one in judged],
        "errors": [{"name": name, "error": error.as_json()} for name, error in wrong.items()],
    }


def _test_json(one: JudgedTest) -> dict[str, Any]:
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


YamlRows = Mapping[str, Sequence[YamlValue]]


@dataclass(frozen=True, slots=True)
class WrittenTick:
    """What comes in with a tick, and what is to come out of it."""

    inputs: YamlRows
    outputs: YamlRows
    names: Mapping[str, Span]
    """Where inputs and outputs are named: "in.payments", "out.totals"."""


@dataclass(frozen=True, slots=True)
class WrittenTest:
    name: str
    flow: FlowAsset
    span: Span
    ticks: tuple[WrittenTick, ...]


def files_of_tests(flow: FlowAsset) -> list[Path]:
    """The files with the tests of the flows in a flow's folder."""
    if flow.folder is None:
        return []
    return sorted({*flow.folder.glob("tests.yaml"), *flow.folder.glob("test_*.yaml")})


def tests_in(file: Path, flows: Sequence[FlowAsset]) -> list[WrittenTest]:
    """The tests of a file, which are about these flows, those of its folder.

    Raises:
        ProgramError: everything that is wrong with how they are written (code `config`).
    """
    document = Document(file)
    top = document.mapping(document.read(), "a file of tests")
    tests = [_test(document, name, value, flows) for name, value in top.items()]
    document.done()
    return [test for test in tests if test is not None]


def _test(
    document: Document, name: str, value: YamlValue, flows: Sequence[FlowAsset]
) -> WrittenTest | None:
    what = f"the test `{name}`"
    found = document.mapping(value, what)
    document.known(found, ("ticks", "flow"), what)
    if "ticks" not in found or not found["ticks"].of:
        cure = "write `ticks: [{in: {input: [row]}, out: {output: [row]}}]`"
        document.wrong(value, f"{what} has no ticks", cure)
        return None
    ticks = tuple(_tick(document, tick) for tick in document.items(found["ticks"], "`ticks`"))
    flow = _flow(document, found.get("flow"), value, flows)
    return None if flow is None else WrittenTest(name, flow, value.span, ticks)


def _flow(
    document: Document, said: YamlValue | None, test: YamlValue, flows: Sequence[FlowAsset]
) -> FlowAsset | None:
    names = [flow.name for flow in flows]
    there = ", ".join(f"`{name}`" for name in names)
    if said is None:
        if len(flows) > 1:
            document.wrong(test, "which flow is this about?", f"say `flow: …`, one of {there}")
            return None
        return flows[0]
    if said.of not in names:
        near = did_you_mean(str(said.of), names)
        document.wrong(said, f"this folder has no flow `{said.of}`", near or f"there are {there}")
        return None
    return flows[names.index(said.of)]


def _tick(document: Document, value: YamlValue) -> WrittenTick:
    found = document.mapping(value, "a tick")
    document.known(found, ("in", "out"), "a tick")
    sides: dict[str, dict[str, Sequence[YamlValue]]] = {"in": {}, "out": {}}
    names: dict[str, Span] = {}
    for side, rows in sides.items():
        named = document.mapping(found.get(side, value), f"`{side}`") if side in found else {}
        for name, items in named.items():
            rows[name] = document.items(items, f"`{name}`")
            names[f"{side}.{name}"] = items.span
    return WrittenTick(sides["in"], sides["out"], names)


def unknown_names(
    test: WrittenTest, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[Diagnostic]:
    """What the test names that the program does not have."""
    for tick in test.ticks:
        for what, rows, known in (("in", tick.inputs, inputs), ("out", tick.outputs, outputs)):
            for name in rows:
                if name not in known:
                    says = f"the program has no {what}put `{name}`"
                    there = ", ".join(f"`{n}`" for n in known) or "none"
                    cure = did_you_mean(name, known) or f"there are {there}"
                    yield Diagnostic("config", says, tick.names[f"{what}.{name}"], help=cure)


def refuse(problems: Sequence[Diagnostic]) -> None:
    """Raises what is wrong, if anything is."""
    if problems:
        raise ProgramError(*problems)


RunTicks = Callable[[Sequence[TickInput]], Iterator[Outputs]]
"""Runs ticks of a program, and gives the outputs of each."""

MISSING, UNEXPECTED, SAME = _SIGNS = "-", "+", " "


@dataclass(frozen=True, slots=True)
class UnexpectedRows:
    """An output of a tick that is not what is expected: its rows, each with what it is (`MISSING`,
    `UNEXPECTED` or `SAME`), in an order in which they can be read.
    """

    tick: int
    output: str
    span: Span
    rows: tuple[tuple[str, Any], ...]

    def only(self, what: str) -> list[Any]:
        """The rows that are missing, unexpected, or the same."""
        return [row for sign, row in self.rows if sign == what]


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """A test that was run: it failed where there are differences, or an error."""

    test: WrittenTest
    differences: tuple[UnexpectedRows, ...] = ()
    error: HydroError | None = None

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return self.error is None and not self.differences


@dataclass(slots=True)
class _TestRows:
    """Rows of a test as items, and what does not fit."""

    problems: list[Diagnostic] = field(default_factory=list)

    def items(self, rows: Sequence[YamlValue], of: ItemType) -> list[Any]:
        found = []
        for row in rows:
            try:
                found.append(from_json(_json(row.plain), of))
            except ValueProblem as problem:
                says = f"this does not fit {of}: {problem}"
                self.problems.append(
                    Diagnostic(
                        "input",
                        says,
                        row.span,
                        help="`hydrotick check` says what the rows are: mend the row",
                    )
                )
        return found


def judge(test: WrittenTest, typed: Typed, run: RunTicks) -> JudgedTest:
    """Runs a test of a program; what is wrong with it, or with a tick, is a failure of the test."""
    try:
        refuse(list(unknown_names(test, list(typed.inputs), list(typed.outputs))))
        reading = _TestRows()
        ticks = [
            {name: reading.items(rows, typed.inputs[name].item) for name, rows in t.inputs.items()}
            for t in test.ticks
        ]
        wanted = [
            {
                name: reading.items(rows, typed.outputs[name].item)
                for name, rows in t.outputs.items()
            }
            for t in test.ticks
        ]
        refuse(reading.problems)
        given = list(run([TickInput(batches) for batches in ticks]))
    except HydroError as error:
        return JudgedTest(test, error=error)
    return JudgedTest(test, tuple(_differences(test, typed, wanted, given)))


def _differences(
    test: WrittenTest,
    typed: Typed,
    wanted: Sequence[Outputs],
    given: Sequence[Outputs],
) -> Iterator[UnexpectedRows]:
    for number, tick in enumerate(wanted):
        for name, expected in tick.items():
            stream = typed.outputs[name]
            rows = [[to_json(item, stream.item) for item in items]
                    for items in (expected, given[number].get(name, []))]  # fmt: skip
            compared = tuple(compare(*rows, ordered=stream.order is Order.TOTAL))
            if any(sign != SAME for sign, _ in compared):
                span = test.ticks[number].names[f"out.{name}"]
                yield UnexpectedRows(number, name, span, compared)


def compare(
    expected: Sequence[Any], given: Sequence[Any], *, ordered: bool
) -> Iterator[tuple[str, Any]]:
    """Rows that are missing, unexpected, or the same: as they come if they have an order, else
    beside those with the same first column.

    >>> list(compare([1, 2], [2, 3], ordered=False))
    [('-', 1), (' ', 2), ('+', 3)]
    >>> list(compare([1, 2], [2, 1], ordered=True))
    [('-', 1), (' ', 2), ('+', 1)]
    """
    left, right = [_key(row) for row in expected], [_key(row) for row in given]
    if ordered:
        matcher = SequenceMatcher(None, left, right, autojunk=False)
        for kind, i, j, k, n in matcher.get_opcodes():
            if kind == "equal":
                yield from ((SAME, row) for row in expected[i:j])
            else:
                yield from ((MISSING, row) for row in expected[i:j])
                yield from ((UNEXPECTED, row) for row in given[k:n])
        return
    rows = dict(zip([*left, *right], [*expected, *given], strict=True))
    wanted, came = Counter(left), Counter(right)
    signed = [
        *((SAME, key) for key in (wanted & came).elements()),
        *((MISSING, key) for key in (wanted - came).elements()),
        *((UNEXPECTED, key) for key in (came - wanted).elements()),
    ]
    signed.sort(key=lambda s: (_first(rows[s[1]]), _SIGNS.index(s[0]), s[1]))
    yield from ((sign, rows[key]) for sign, key in signed)


def _first(row: Any) -> str:
    """The first column, by which most rows are known."""
    if isinstance(row, dict):
        row = list(row.values())
    return _key(row[0] if isinstance(row, list) and row else row)


def _key(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False)


def _json(value: Any) -> Any:
    """YAML's dates and times as JSON has them."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case dict():
            return {name: _json(inner) for name, inner in value.items()}
        case list():
            return [_json(inner) for inner in value]
        case _:
            return value
