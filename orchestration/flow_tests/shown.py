"""Shows how tests of flows ended: for people as tables of rows, for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydro_core.errors import HydroError, shown_file
from hydro_core.printing.table import table_lines

from .judge import MISSING, SAME, UNEXPECTED, JudgedTest, UnexpectedRows

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
    columns = _columns(row for _, row in shown)
    cells = [[sign, *(_of(row, name) for name in columns)] for sign, row in shown]
    yield from table_lines([" ", *columns], cells)
    if len(shown) < len(difference.rows):
        same = len(difference.only(SAME))
        more = len(difference.rows) - same - len(shown)
        yield f"… {same:,} row(s) as expected" + (
            f", {more:,} more that differ" if more > 0 else ""
        )


def _columns(rows: Iterator[Any]) -> list[str]:
    """The columns of rows that are objects; one of the name "item" for other items."""
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row if isinstance(row, dict) else ["item"])
    return list(names)


def _of(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, dict) else row
