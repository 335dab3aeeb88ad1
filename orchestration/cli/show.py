"""`hydrotick show`: the rows of an output, or of a state, as of a committed tick."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.rows import RowsAsOf, rows_at
from hydro_core.ticks.calendar import TickWindow

from ..project.arguments import asked_flow
from ..project.console import Console
from ..runner.runner import TickRunner

_WIDEST = 60
"""Longer values are cut in a table for people."""


def show(options: Asked) -> int:
    """Shows the rows of an output, or of a state, as of a committed tick."""
    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    window = committed_window(flow, runner.next_tick(flow), options.tick)
    found = rows_at(runner.pipeline(flow), options.name, window.tick, options.limit)
    console = Console(options)
    table = "" if console.gives_json else as_table(found.columns, found.rows)
    told = {"tick": window.key, "rows": found.rows}
    console.give(told, f"{table}{_counted(found)} as of tick {window.key}")
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


def _counted(found: RowsAsOf) -> str:
    if len(found.rows) == found.total:
        return f"{found.total:,} row(s)"
    return f"{len(found.rows):,} of {found.total:,} row(s)"


def as_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows under their columns, numbers to the right."""
    columns = []
    for name in names:
        values = [row[name] for row in rows]
        right = all(isinstance(v, int | float) or v is None for v in values) and bool(values)
        cells = [name, *map(_cell, values)]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in cells])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "".join(f"{line}\n" for line in lines)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
