"""What a deployed pipeline knows of its data: the rows that its ticks read and stored.

The ledger has the rows of every input and table in each commit, so nothing is read but the ledger,
without a JVM. How many different keys there are stands nowhere; a running result has a row for each
of its keys, but keys that rows are joined on need not be these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.optimize.statistics import ROWS, TICKS, InputStatistics, Statistics
from hydro_core.plan.tick_plan import Mode
from hydro_core.spark.store.ledger import Commit, Ledger, state_error

_ENOUGH = 10
"""Fewer ticks than these tell nothing that a plan should rest on."""

_Arrived = list[tuple[int, int]]
"""The first tick of each commit, and its rows."""


def deployed_statistics(directory: Path) -> Statistics:
    """The statistics of the pipeline in a directory: its inputs, and the streams that it stores.

    Raises:
        DataError: no tick was committed there (code `state`).
    """
    commits = standing(Ledger(directory).commits())
    if not commits:
        raise _no_pipeline(directory)
    inputs, streams = defaultdict[str, _Arrived](list), defaultdict[str, _Arrived](list)
    for commit in commits:
        for read in commit.inputs:
            inputs[read.name].append((commit.first, read.rows or 0))
        for table, rows in commit.rows.items():
            of = _added_stream(commit, table)
            if of is not None:
                streams[of].append((commit.first, rows))
    ticks = sum(len(commit.ticks) for commit in commits)
    loaded = commits[0]
    # What is there from the beginning says little of what ticks bring, once enough of them ran.
    later = ticks - len(loaded.ticks)
    since = loaded.last + 1 if later >= len(loaded.ticks) else loaded.first
    span = later if since > loaded.first else ticks
    return Statistics(ticks, _each(inputs, since, span), streams=_each(streams, since, span))


def recorded_statistics(directory: Path) -> Statistics | None:
    """What earlier ticks say of the data, for who plans the next ones; None: too few have run.

    A pipeline that is young or small is planned as one that has grown: only how its inputs compare
    with each other is taken from it.
    """
    commits = standing(Ledger(directory).commits())
    if sum(len(commit.ticks) for commit in commits) < _ENOUGH:
        return None
    return grown(deployed_statistics(directory))


def grown(found: Statistics) -> Statistics:
    """The statistics, of at least as many ticks and rows as are assumed where nothing is known."""
    most = max((of.rows for of in found.inputs.values()), default=ROWS)
    larger, longer = max(1.0, ROWS / most), max(0.0, TICKS - found.ticks)

    def later(of: InputStatistics) -> InputStatistics:
        history = (of.history or 0.0) + of.rows * longer
        return replace(of, rows=of.rows * larger, history=history * larger)

    inputs, streams = (
        {name: later(of) for name, of in known.items()} for known in (found.inputs, found.streams)
    )
    return replace(found, ticks=found.ticks + longer, inputs=inputs, streams=streams)


def standing(commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """The commits that count: of a tick that was made again, the last."""
    found: list[Commit] = []
    for commit in commits:
        found = [c for c in found if c.last < commit.first]
        found.append(commit)
    return tuple(found)


def _added_stream(commit: Commit, table: str) -> str | None:
    """The stream whose items a table holds, one row each; None where its rows are others."""
    record = commit.tables.get(table, {})
    if record.get("role") != "state" or record.get("mode") not in {
        Mode.APPEND.value,
        Mode.LAST.value,
    }:
        return None
    return str(record["of"])


def _each(found: Mapping[str, _Arrived], since: int, ticks: int) -> Mapping[str, InputStatistics]:
    """Of each stream what came, all together and in a tick of those from `since` on."""
    return {
        name: InputStatistics(
            rows=max(sum(rows for first, rows in of if first >= since) / ticks, 1e-3),
            history=float(max(sum(rows for _, rows in of), 1)),
        )
        for name, of in sorted(found.items())
    }


def _no_pipeline(directory: Path) -> DataError:
    return state_error(
        f"no tick was committed in {directory}, so nothing is known of its data",
        "run some ticks first, or give a file of statistics",
    )
