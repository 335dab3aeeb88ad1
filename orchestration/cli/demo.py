"""`hydrotick demo`: the first days of the flights of New York, tick by tick, and something worth
seeing in them. The flow is that of hydrotick's repository.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.errors import DataError, shown_file
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.storage.remote import DataPlace, Remote
from hydro_core.ticks.calendar import TickWindow

from ..project import project
from ..runner.runner import TickRunner

_FLOW = "flights"
_DAYS = 7
_SHOWN = 8
_LINE = "  {:<12}{:>11}{:>12}{:>17}{:>8}{:>9}"


def demo(options: Asked) -> int:
    days = options.days
    found = project.current()
    flow = next((flow for flow in found.flows if flow.name == _FLOW and flow.land), None)
    if flow is None or flow.land is None:
        raise DataError.of(
            "config",
            f"the demo is that of hydrotick's repository: this project has no flow `{_FLOW}`",
            help="run it there; `hydrotick init DIR` makes a project that runs",
        )
    calendar = flow.ticks.calendar
    if not 1 <= days <= (calendar.count or days):
        raise MisuseError(f"--days takes 1 to 365, not {days}")
    runner = TickRunner(found.settings)
    _say("Departures from New York in 2013: every day is a tick, and a Dagster run.\n")
    _say(f"Landing the data below {_shown(runner.project.landing)} … ", end="")
    flow.land(runner.project.landing)
    _say("336,776 flights, hourly weather, planes, airlines, airports.")
    _run(runner, flow, days)
    _results(runner, flow)
    _farewell(runner, flow)
    return 0


def _run(runner: TickRunner, flow: FlowAsset, days: int) -> None:
    done = runner.next_tick(flow)
    if done:
        _say(f"{done} day(s) are committed from before.")
    if done >= days:
        return
    runner.warm_up()
    _say("Starting Dagster and Spark; the first day waits for both.\n")
    from .ticking import run_ticks

    _say(_LINE.format("day", "departures", "new routes", "back in service", "checks", "time"))
    for tick in run_ticks(flow, runner, days - 1, _started):
        rows = {name: f"{count:,}" for name, count in tick.report.rows.items()}
        counts = [rows[name] for name in ("departures", "new_routes", "back_in_service")]
        held = f"{sum(verdict.passed for _, verdict in tick.report.verdicts)} ok"
        line = _LINE.format(tick.window.key, *counts, held, f"{tick.seconds:.1f} s")
        _say(("\r" if sys.stdout.isatty() else "") + line)


def _started(window: TickWindow) -> None:
    if sys.stdout.isatty():
        _say(f"  {window.key:<12}…", end="")


def _results(runner: TickRunner, flow: FlowAsset) -> None:
    pipeline = runner.pipeline(flow)
    statistics = pipeline.output("delay_statistics", every=True).to_pandas()
    last = date.fromisoformat(flow.ticks.calendar.window(runner.next_tick(flow) - 1).key)
    latest = statistics.sort_values("tick").groupby(["carrier", "origin"]).tail(1)
    busy = latest[latest["flights"] >= latest["flights"].median()].copy()
    busy["late share"] = busy["late"] / busy["flights"]
    worst = busy.sort_values("late share", ascending=False).head(_SHOWN)
    _say(
        f"\nWho keeps New York waiting, from January 1 to {last:%B} {last.day}: the busier half of"
    )
    _say("carriers and airports, by their share of departures more than 15 minutes late.\n")
    _say(f"  {'carrier':<9}{'from':<6}{'flights':>8}{'late':>7}{'share':>8}{'longest delay':>16}")
    for row in worst.to_dict("records"):
        hours, minutes = divmod(int(row["longest_delay"]), 60)
        _say(
            f"  {row['carrier']:<9}{row['origin']:<6}{row['flights']:>8,}{row['late']:>7,}"
            f"{row['late share']:>8.0%}{f'{hours} h {minutes:02} min':>16}"
        )


def _farewell(runner: TickRunner, flow: FlowAsset) -> None:
    directory = runner.directory(flow)
    _say(f"\nThe tables are Delta tables below {_shown(directory)}:")
    pipeline = runner.pipeline(flow)
    _say(f"  outputs/   {', '.join(pipeline.output_tables)}")
    _say(f"  state/     what ticks remember: {', '.join(pipeline.state_tables)}")
    _say("  _ledger/   a row for every committed tick")
    command = Path(sys.executable).parent / "hydrotick"
    _say(f"\nMore days:                  {shown_file(command)} demo --days 31")
    _say(f"Lineage, runs and checks:   {shown_file(command)} dev")


def _shown(path: DataPlace) -> str:
    """A directory as a person writes it."""
    return f"{path if isinstance(path, Remote) else shown_file(path)}/"


def _say(text: str, end: str = "\n") -> None:
    output.write(text + end)
