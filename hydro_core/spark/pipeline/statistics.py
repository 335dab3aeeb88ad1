"""What a deployed pipeline knows of its data: the rows that its ticks read and stored.

The ledger has the rows of every input and table in each commit, so nothing is read but the ledger,
without a JVM. How many different keys there are stands nowhere; a running result has a row for each
of its keys, but keys that rows are joined on need not be these.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.optimize.statistics import InputStatistics, Statistics
from hydro_core.plan.tick_plan import Mode
from hydro_core.spark.store.ledger import Commit, Ledger, state_error


def deployed_statistics(directory: Path) -> Statistics:
    """The statistics of the pipeline in a directory: its inputs, and the streams that it stores.

    Raises:
        DataError: no tick was committed there (code `state`).
    """
    commits = standing(Ledger(directory).commits())
    if not commits:
        raise _no_pipeline(directory)
    ticks = sum(len(commit.ticks) for commit in commits)
    inputs: dict[str, int] = {}
    streams: dict[str, int] = {}
    for commit in commits:
        for read in commit.inputs:
            inputs[read.name] = inputs.get(read.name, 0) + (read.rows or 0)
        for table, rows in commit.rows.items():
            of = _added_stream(commit, table)
            if of is not None:
                streams[of] = streams.get(of, 0) + rows
    return Statistics(ticks, _each(inputs, ticks), streams=_each(streams, ticks))


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


def _each(rows: dict[str, int], ticks: int) -> dict[str, InputStatistics]:
    return {
        name: InputStatistics(rows=max(count / ticks, 1e-3), history=float(max(count, 1)))
        for name, count in sorted(rows.items())
    }


def _no_pipeline(directory: Path) -> DataError:
    return state_error(
        f"no tick was committed in {directory}, so nothing is known of its data",
        "run some ticks first, or give a file of statistics",
    )
