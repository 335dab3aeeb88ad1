"""What a deployed pipeline knows of its data: the rows that its ticks read and stored.

The ledger has the rows of every input and table in each commit, so nothing is read but the ledger,
without a JVM. How many different keys there are stands nowhere; a running result has a row for each
of its keys, but keys that rows are joined on need not be these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hydro_core.catalog.forms import Form
from hydro_core.optimize.cost import ROWS, TICKS, InputStatistics, Statistics
from hydro_core.spark.store.ledger.ledger import Ledger, state_error
from hydro_core.spark.store.ledger.records import Commit, reading, standing_counts
from hydro_core.storage.remote import DataPlace

_ENOUGH = 10
"""Fewer ticks than these tell nothing that a plan should rest on."""

_Arrived = dict[int, float]
"""The rows that came with each tick; those of a commit with its first one."""


def deployed_statistics(directory: DataPlace) -> Statistics:
    """The statistics of the pipeline in a directory: its inputs, and the streams that it stores.

    Raises:
        DataError: no tick was committed there (code `state`).
    """
    commits = Ledger(directory).commits()
    ticks = commits[-1].last + 1 if commits else 0
    if not ticks:
        raise state_error(
            f"no tick was committed in {directory}, so nothing is known of its data",
            "run some ticks first, or give a file of statistics",
        )
    streams = defaultdict[str, _Arrived](dict)
    for commit in standing(commits):
        for table, rows in commit.rows.items():
            of = _added_stream(commit, table)
            if of is not None:
                streams[of][commit.first] = rows
    # What is there from the beginning says little of what ticks bring, once enough of them ran.
    loaded = len(commits[0].ticks)
    since = loaded if ticks >= 2 * loaded else 0
    inputs = _each(_arrived(commits), since, ticks - since)
    return Statistics(ticks, inputs, streams=_each(streams, since, ticks - since))


def _arrived(commits: Sequence[Commit]) -> Mapping[str, _Arrived]:
    """The rows of each input that arrived with each tick.

    A deployment reads ticks again as they had been read, so the commits before it say of them. Of
    ticks that nobody has counted, those of one commit are taken to have as many each.
    """
    found = defaultdict[str, _Arrived](dict)
    for commit in reading(commits):
        for read in commit.inputs:
            each = (read.rows or 0) / len(commit.ticks)
            found[read.name].update(dict.fromkeys(commit.ticks, each))
    for name, counts in standing_counts(commits).items():
        found[name].update((tick, rows) for tick, rows in counts.items() if rows is not None)
    last = commits[-1].last
    return {name: {t: rows for t, rows in of.items() if t <= last} for name, of in found.items()}


def recorded_statistics(directory: DataPlace) -> Statistics | None:
    """What earlier ticks say of the data, for who plans the next ones; None: too few have run.

    A pipeline that is young or small is planned as one that has grown: only how its inputs compare
    with each other is taken from it.
    """
    last = Ledger(directory).last_tick
    if last is None or last + 1 < _ENOUGH:
        return None
    # What streams have is told by the commits since the last deployment alone.
    return grown(replace(deployed_statistics(directory), streams={}))


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
        Form.GROWTH.stored,
        Form.VALUES.stored,
    }:
        return None
    return str(record["of"])


def _each(found: Mapping[str, _Arrived], since: int, ticks: int) -> Mapping[str, InputStatistics]:
    """Of each stream what came, all together and in a tick of those from `since` on."""
    return {
        name: InputStatistics(
            rows=max(sum(rows for tick, rows in of.items() if tick >= since) / ticks, 1e-3),
            history=float(max(sum(of.values()), 1)),
        )
        for name, of in sorted(found.items())
    }
