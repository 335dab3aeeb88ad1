"""`hydrotick why`: which landed rows, of which ticks, a row of an output comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydro_core.analysis.slice_wording import column_of
from hydro_core.analysis.slices import Known, all_columns, slice_of
from hydro_core.cli.command import Asked
from hydro_core.ticks.calendar import TickWindow
from hydro_core.ticks.wanted import ReadLimits, field_of
from hydro_core.types.item import FLOATS, FieldPath, ItemType, at
from hydro_core.types.values import ValueProblem
from hydro_core.validation.same_items import same_items
from hydro_core.validation.shrink import shrink

from ..flows.slices import FlowSlices, Where, inputs_of, rows_where
from ..project.arguments import asked_flow
from ..project.console import Console
from ..runner.runner import TickRunner
from .show import committed_window
from .where import value_in, wrong_where
from .why_text import Why, as_json, as_text

_FEW = 3
"""So many ticks are named at which there was such a row."""


def why(options: Asked) -> int:
    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    done = runner.next_tick(flow)
    window = committed_window(flow, done, options.tick, next_too=True)
    ledger, most = runner.pipeline(flow).ledger, ReadLimits(runner.project.why_rows)
    program = runner.deployments.naive(flow)
    inputs = inputs_of(flow, program, runner.inputs)
    slices = FlowSlices(flow, program, inputs, ledger, most)
    where = _where(slices, options.output, options.where)
    stored = _stored(runner, slices, options.output, where, window) if window.tick < done else None
    found = explain(slices, (options.output, where), window, stored, options.seconds)
    Console(options).give(as_json(found), as_text(found, options.limit))
    return 0 if found.agrees else 1


def explain(
    slices: FlowSlices,
    asked: tuple[str, Where],
    window: TickWindow,
    stored: Sequence[Any] | None,
    seconds: float,
) -> Why:
    """Where the rows of an output with given values at a tick come from.

    Args:
        asked: the output's name, and which of its rows are asked about.
        stored: these rows as the table holds them; None: the tick is not committed.
        seconds: so long it is tried which of the rows that can matter do.

    Raises:
        DataError: an input cannot be read (code `input`).
    """
    output, where = asked
    ticks = (window.tick, window.tick)
    if stored:
        where = _narrowed(slices, output, where, stored)
    run = slices.run(output, where, ticks)
    rows = None if run.too_many else run.run()[-1]
    if stored is not None and rows is not None and not same_items(rows, stored, ordered=False):
        as_read = slices.run(output, where, ticks, as_read=True)
        if not as_read.too_many:
            run, rows = as_read, as_read.run()[-1]
    shrunk = shrink(run, seconds) if rows else None
    there = () if rows or run.too_many else _there(slices, output, where, window)
    commit = None if stored is None else slices.ledger.commit_of(window.tick)
    again = () if commit is None else commit.ran_again
    return Why(slices, asked[1], run, window, stored, rows, shrunk, there, again)


def _narrowed(slices: FlowSlices, output: str, where: Where, stored: Sequence[Any]) -> Where:
    """If all rows of an input can matter: what else the rows have in their columns, asked for, too,
    but for floating-point numbers, which the program may give with other last bits.
    """
    typed = slices.program.typed
    needs = slice_of(typed, output, where).inputs.values()
    if all(need.conditions for alternatives in needs for need in alternatives):
        return where
    others = {
        path: Known.of(known.column, [field_of(row, path) for row in stored])
        for path, known in all_columns(typed, output).items()
        if str(at(typed.outputs[output].item, path)) not in FLOATS
    }
    return {**others, **where}


def _there(
    slices: FlowSlices, output: str, where: Where, window: TickWindow
) -> Sequence[TickWindow]:
    """The last ticks before at which there are such rows."""
    run = slices.run(output, where, (0, window.tick))
    if run.too_many:
        return ()
    ticks = [tick for tick, rows in enumerate(run.run()) if rows]
    return [slices.window(tick) for tick in ticks[-_FEW:]]


def _where(slices: FlowSlices, output: str, texts: Sequence[str]) -> Where:
    """The values that were asked for, by fields of the output's items."""
    typed, found = slices.program.typed, dict[FieldPath, Known]()
    for text in texts:
        column, equals, value = text.partition("=")
        path = column_of(typed, output, column)
        item = at(typed.outputs[output].item, path)
        assert item is not None
        try:
            if not equals:
                raise ValueProblem("there is no `=`")
            found[path] = Known.of(column, [_value(value, item)])
        except ValueProblem as problem:
            cure = f"write `--where {column}=VALUE`; the column is {item}"
            raise wrong_where(text, str(problem), cure) from problem
    return found


def _value(text: str, item: ItemType) -> Any:
    return None if text == "null" else value_in(text, item)


def _stored(
    runner: TickRunner, slices: FlowSlices, output: str, where: Where, window: TickWindow
) -> Sequence[Any]:
    table = runner.pipeline(slices.flow).output(output, window.tick)
    return rows_where(table, slices.program.typed.outputs[output].item, where)
