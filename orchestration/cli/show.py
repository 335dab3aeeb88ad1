"""`hydrotick show`: the rows of an output, or of a state, as of a committed tick."""

from __future__ import annotations

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, HydroError
from hydro_core.printing.table import table_lines
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.rows import rows_at
from hydro_core.ticks.calendar import TickWindow

from ..project.console import Console, asked_flow
from ..quality.facts import measure
from ..runner.runner import TickRunner

WIDEST = 60
"""Longer values are cut in a table for people."""


def show(options: Asked) -> int:
    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    window = committed_window(flow, runner.next_tick(flow), options.tick)
    found = rows_at(runner.pipeline(flow), options.name, window.tick, options.limit, measure)
    if Console(options).gives_json:
        output.print_json_rows({"tick": window.key}, "rows", found.rows)
    else:
        output.print_lines(table_lines(found.columns, found, WIDEST))
        all_of_them = "" if len(found) == found.total else f"{len(found):,} of "
        output.print_text(f"{all_of_them}{found.total:,} row(s) as of tick {window.key}")
    return 0


def committed_window(
    flow: FlowAsset, done: int, key: str | None, *, next_too: bool = False
) -> TickWindow:
    """The tick that was asked for, which is committed, or with `next_too` the next to be.

    Raises:
        DataError: it is not; which ones are (code `state`).
    """
    calendar = flow.ticks.calendar
    if done == 0 and not (next_too and key is not None):
        raise _not_there(
            f"no tick of `{flow.name}` is committed", f"run it: `hydrotick backfill {flow.name}`"
        )
    last = calendar.window(max(done - 1, 0)).key
    there = f"the committed ticks are {calendar.window(0).key} to {last}"
    if key is None:
        return calendar.window(done - 1)
    try:
        window = calendar.window_of(key)
    except HydroError as error:
        wrong = error.diagnostics[0]
        raise _not_there(wrong.message, f"{wrong.help}; {there}") from error
    if window.tick >= done + next_too:
        raise _not_there(f"tick {window.key} of `{flow.name}` is not committed", there)
    return window


def _not_there(message: str, cure: str) -> DataError:
    return DataError.of("state", message, help=cure)
