"""Late rows: what lands for committed ticks, or changes there, before the next tick runs.

An input says what becomes of such rows: they arrive with the next tick, or committed ticks are
computed again with them, or nothing runs until somebody decides. In any case they are told of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, Diagnostic, HydroError
from hydro_core.project.flow_asset import FlowAsset

from ..project.ticks import Window
from .looking import After, Reading, look
from .noticed import noticed
from .ranges import Log, Ranges, is_of_the_tick, overtaken
from .report import TickReport, report_of_error

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.seen import Seen

    from ..openlineage.events import Parent
    from .runner import TickRunner


def run_open(
    runner: TickRunner,
    flow: FlowAsset,
    windows: Sequence[Window],
    log: Log,
    refuse: Callable[[Window], None],
    parent: Parent | None,
) -> Iterator[TickReport]:
    """Runs open ticks that follow each other, after what came for committed ones had its way.

    Where these are computed again, they are reported first, as started by `parent`.
    """
    pipeline = runner.pipeline(flow)
    reading, first = Reading(runner, flow, {}), None
    if windows[0].tick == pipeline.next_tick:
        try:
            # What may not run is told as such, whatever has landed.
            for window in (windows[0], windows[-1]):
                refuse(window)
            reading = look(runner, flow)
            first = first_to_correct(runner.asset(flow), reading.seen)
        except HydroError as error:
            yield report_of_error(windows[0], error, judged=is_of_the_tick(error))
            return
    if first is not None:
        for report in _corrected(runner, flow, reading, first, log, parent):
            yield report
            if not report.committed:
                return
        reading = seen_again(runner, flow, reading)
    asset, sample = runner.asset(flow), runner.sample(flow)
    ranges = Ranges(asset, pipeline, reading, log, refuse, reading.after, sample)
    for report in ranges.run(windows):
        if report.committed and report.window == windows[0]:
            for line in report.notices(flow.name):
                runner.told(line)
        yield report
    forget_lists(runner, flow)


def _corrected(
    runner: TickRunner,
    flow: FlowAsset,
    reading: Reading,
    first: int,
    log: Log,
    parent: Parent | None,
) -> Iterator[TickReport]:
    """The ticks from `first` on, computed again with what is late, and what that has done."""
    window = flow.ticks.calendar.window(first)
    runner.told(f"{window.key} and the ticks after it are corrected first:")
    for line in _says(flow, reading.seen):
        log(f"for committed ticks: {line}")
        runner.told(f"  {line}")
    report = None
    for report in runner.correct(flow, window, log, reading, parent):
        yield report
    if report is not None and report.corrected is not None:
        for line in (str(report.corrected), *report.corrected.lines):
            runner.told(line)


def forget_lists(runner: TickRunner, flow: FlowAsset) -> None:
    """Removes old lists of files, where they take much; those that are read next stay."""
    from hydro_core.spark.inputs.arrivals.listing import clear_listings

    directory = runner.directory(flow)
    reads = runner.deployments.ledger(flow).last_reads()
    needed = {name for read in reads for name in (read.listing, read.accepted_listing)}
    if needed != {None}:
        clear_listings(directory, needed)


def first_to_correct(
    flow: FlowAsset, seen: Mapping[str, Seen], first: int | None = None
) -> int | None:
    """The first tick that has to be computed again; None: none has to be.

    Args:
        flow: whose inputs say what becomes of late rows.
        seen: its inputs.
        first: the tick that is the first anyway, if one is.

    Raises:
        DataError: there is something to decide first (code `input`).
    """
    _refuse_undecided(flow, seen, first)
    found = [] if first is None else [first]
    for name, one in seen.items():
        if flow.inputs[name].late == "correct":
            found += [tick for tick in (one.arrivals.earliest, *_firsts(one)) if tick is not None]
    return min(found, default=None)


def seen_again(runner: TickRunner, flow: FlowAsset, reading: Reading) -> Reading:
    """The same landings, as they were seen, after committed ticks were computed again with them."""
    ledger = runner.deployments.ledger(flow)
    last = ledger.last
    if last is None:
        raise AssertionError("only what is committed is computed again")
    seen = runner.landings(flow).look(last.last + 1, ledger.last_reads(), reading.seen)
    return Reading(runner, flow, seen, After(last.sequence))


def accept(runner: TickRunner, flow: FlowAsset, reading: Reading) -> None:
    """Accepts what came or changed for committed ticks, as it was seen: late rows arrive with the
    next tick, and changed ticks stay as they were read. The ledger says so.

    Raises:
        HydroError: another process is at work, or has committed since.
    """
    pipeline, directory = runner.pipeline(flow), runner.directory(flow)
    last = pipeline.ledger.refresh()
    if last is None or reading.after != After(last.sequence):
        raise overtaken(flow.name)
    reads = pipeline.ledger.last_reads()
    pipeline.decide([reading.seen[read.name].accepted(read, directory) for read in reads])


def _firsts(one: Seen) -> list[int]:
    return [change.first for change in one.changed]


def _refuse_undecided(flow: FlowAsset, seen: Mapping[str, Seen], before: int | None) -> None:
    """Raises where something came or changed that somebody has to decide on."""
    calendar = flow.ticks.calendar
    undecided = {
        name: one
        for name, one in seen.items()
        if flow.inputs[name].late == "refuse"
        and one.undecided.earliest is not None
        and (before is None or one.undecided.earliest < before)
    }
    if not undecided:
        return
    lines = []
    for name, one in undecided.items():
        found = noticed(calendar, one.undecided.late, one.undecided.changed)
        files = "".join(f"\n    in {file}" for file in one.undecided.files)
        lines += [f"  {name}: late: {found.says_late}{files}"] if found.late else []
        lines += [f"  {name}: changed: {found.says_changed}"] if found.changed else []
    earliest = min(e for one in undecided.values() if (e := one.undecided.earliest) is not None)
    raise DataError(
        Diagnostic(
            "input",
            "rows came or changed for committed ticks, and the input refuses them until somebody "
            "decides:\n" + "\n".join(lines),
            help=f"`hydrotick correct {flow.name} --from {calendar.window(earliest).key}` computes "
            f"these ticks again with them; `hydrotick accept {flow.name}` lets late rows arrive "
            "with the next tick, and leaves changed ticks as they were read",
        )
    )


def _says(flow: FlowAsset, seen: Mapping[str, Seen]) -> Iterator[str]:
    for name, one in seen.items():
        found = noticed(flow.ticks.calendar, one.arrivals.late, one.changed)
        if found.late:
            yield f"`{name}`: late: {found.says_late}"
        if found.changed:
            yield f"`{name}`: changed: {found.says_changed}"
