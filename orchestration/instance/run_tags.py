"""Tags and states of runs: what one is about, which process executes it, what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hydro_core.ticks.calendar import span

if TYPE_CHECKING:
    import dagster as dg

FLOW_TAG = "flow"
PROCESS_TAG = ".dagster/hydrotick/process"
"""The tag of a run that names the process which executes it, behind its own number, since tags are
copied to a run that is executed again; the UI hides tags that begin so."""
JUDGED_TAG = "hydrotick/judged"
"""The tag of a run whose tick was judged wrong: its own number, since tags are copied to a run that
is executed again."""
CORRECT_TAG, CORRECT = "hydrotick/correct", "yes"
"""The tag, and its value, of a run that is to compute its committed ticks again."""

WAITING = ("QUEUED", "NOT_STARTED")
"""The states of a run that nothing executes yet, as Dagster's records have them."""
IN_FLIGHT = (*WAITING, "STARTING", "STARTED", "CANCELING")
"""The states of a run that has not ended."""
UNDONE = ("FAILURE", "CANCELED")
"""The states of a run that has ended before its ticks were done."""
TICKS_TAG = "hydrotick/ticks"
"""The tag of a run of several ticks that says what became of them."""

PARTITION = "dagster/partition"
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def range_tags(first: str, last: str) -> dict[str, str]:
    return {RANGE_START: first, RANGE_END: last}


def process_tag(run_id: str, process: str) -> dict[str, str]:
    return {PROCESS_TAG: f"{run_id} {process}"}


def process_of(run: dg.DagsterRun) -> str | None:
    """The process that executes a run, as its tag names it; None: it names none, or that of the run
    which it executes again.
    """
    of, _, process = run.tags.get(PROCESS_TAG, "").rpartition(" ")
    # Earlier releases named the process alone.
    is_own = of == run.run_id or (not of and run.parent_run_id is None)
    return process if process and is_own else None


def keys_of(tags: Mapping[str, str]) -> tuple[str, str] | None:
    """The keys of the first and the last tick that a run is for; None if it does not say."""
    if RANGE_START in tags and RANGE_END in tags:
        return tags[RANGE_START], tags[RANGE_END]
    return (tags[PARTITION], tags[PARTITION]) if PARTITION in tags else None


def committed_ticks_tag(committed: Sequence[str], failed: str | None) -> dict[str, str]:
    """The tag by which a run says which ticks it committed, by their keys, and which one failed."""
    done = span(committed) if committed else "none"
    return {TICKS_TAG: f"{done}; {failed} failed" if failed else done}


def flow_of(run: dg.DagsterRun) -> str:
    """The flow whose ticks a run is for; "" for another run.

    Runs of the flow's own job have a tag, those that are launched from the assets have them.
    """
    selected = run.asset_selection or ()
    return run.tags.get(FLOW_TAG) or next((key.path[0] for key in selected), "")


def is_judged(run: dg.DagsterRun) -> bool:
    return run.tags.get(JUDGED_TAG) == run.run_id


def runs_it_again(flow: str) -> str:
    """How somebody has a tick run again, at the command line or in the UI."""
    return f"`hydrotick backfill {flow}`, or a launch in the UI, runs it again"
