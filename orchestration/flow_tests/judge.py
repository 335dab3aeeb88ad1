"""Runs a test of a flow, and compares what its ticks give with what is expected of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from difflib import SequenceMatcher
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.errors import Diagnostic, HydroError, Span
from hydro_core.project.yaml_text import YamlValue
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import ItemType
from hydro_core.types.json import from_json, to_json
from hydro_core.types.stream import Order
from hydro_core.types.values import ValueProblem

from .written import WrittenTest, refuse, unknown_names

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
class _Reading:
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
        reading = _Reading()
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
