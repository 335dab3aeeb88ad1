"""What the tables that serve were computed from: how many rows arrived with each tick, by input.

Each commit says it of the ticks that it read. A deployment, or the way back to an earlier one,
computes ticks again as they had been read, so it says it of inputs alone that none had read before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.input_reads import Counts, InputRead

FORGOTTEN = "forgotten"
"""What a commit calls, among what it keeps for others, how many late rows of each input it has
taken out of what had been read, by their ticks: the others stay as they had been read.
"""


def standing_counts(commits: Sequence[Commit]) -> Mapping[str, Counts]:
    """How many rows each tick has of each input, by the commits up to some."""
    found: dict[str, dict[int, int | None]] = {}
    for commit, anew in _in_order(commits):
        for ticks in found.values():
            for tick in [tick for tick in ticks if tick > commit.last]:
                del ticks[tick]
        for read in commit.inputs:
            ticks = found.setdefault(read.name, {})
            if read.counts is not None:
                ticks.update(read.counts)
            elif anew or FORGOTTEN in commit.checks:
                ticks.update(dict.fromkeys(commit.ticks))
    return found


def anew_since(commits: Sequence[Commit], sequence: int) -> int | None:
    """The first tick that was read, not as it had been, by a commit after one; None: none was."""
    later = (c.first for c, anew in _in_order(commits) if anew and c.sequence > sequence)
    return min(later, default=None)


def reading(commits: Sequence[Commit]) -> list[Commit]:
    """The commits that have read their ticks, and not as they had been read before."""
    return [commit for commit, anew in _in_order(commits) if anew and commit.inputs]


def last_read_of(commits: Sequence[Commit], name: str) -> tuple[InputRead, int] | None:
    """What was read of an input last, and the first tick that has not read it."""
    found = None
    for commit in commits:
        for read in commit.inputs:
            if read.name == name:
                found = read, commit.last + 1
    return found


def late_by_tick(commits: Sequence[Commit], name: str) -> Counter[int]:
    """How many rows of an input have arrived late, by their own ticks."""
    made_by: dict[int, InputRead] = {}
    forgotten = Counter[int]()
    for commit, anew in _in_order(commits):
        of = commit.checks.get(FORGOTTEN, {}).get(name, {})
        forgotten.update({int(tick): rows for tick, rows in of.items()})
        end = commit.first if anew else commit.last + 1
        made_by = {tick: read for tick, read in made_by.items() if tick < end}
        if anew:
            made_by |= ((commit.first, read) for read in commit.inputs if read.name == name)
    return sum((Counter(read.late) for read in made_by.values()), Counter()) - forgotten


def _in_order(commits: Sequence[Commit]) -> Iterator[tuple[Commit, bool]]:
    """The commits, and whether each has read the ticks that it made."""
    plan = None
    for commit in commits:
        is_read = bool(commit.ticks) and FORGOTTEN not in commit.checks
        yield commit, is_read and plan in (None, commit.plan)
        plan = commit.plan
