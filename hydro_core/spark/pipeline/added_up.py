"""What several commits come to: the rows that tables got, and what was read of inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.input_reads import InputRead


def added_up_rows(commits: Iterable[Commit]) -> Mapping[str, int]:
    """How many rows the tables got; one that every commit replaces has those of the last."""
    found: Counter[str] = Counter()
    for commit in commits:
        for name, rows in commit.rows.items():
            found[name] = rows if commit.replaces(name) else found[name] + rows
    return dict(found)


def read_in_all(commits: Iterable[Commit]) -> tuple[InputRead, ...]:
    """What was read of each input: as it was read last, all rows, and all ticks without one.

    Late rows came with the first tick of all, and with no other.
    """
    found: dict[str, InputRead] = {}
    for read in (read for commit in commits for read in commit.inputs):
        before = found.get(read.name)
        rows = (read.rows or 0) + ((before.rows or 0) if before else 0)
        empty = (*(before.empty if before else ()), *read.empty)
        late = read.late if before is None else before.late
        counts = read.counts
        if before is not None and counts is not None:
            counts = None if before.counts is None else {**before.counts, **counts}
        found[read.name] = replace(read, rows=rows, empty=empty, late=late, counts=counts)
    return tuple(found.values())
