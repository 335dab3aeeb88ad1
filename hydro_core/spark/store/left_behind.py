"""The tables that an earlier program has left, as far as it would make the same by now."""

from __future__ import annotations

from collections.abc import Sequence

from hydro_core.spark.store.as_it_was import NO_BASE, Base, has_changes_since, held_at, summed
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.spark.store.ledger.seams import last_seam
from hydro_core.spark.store.ledger.standing import anew_since
from hydro_core.spark.store.store import Store


def left_by(
    store: Store, program: str, commits: Sequence[Commit], now: Commit
) -> tuple[Base, Commit]:
    """The tables of a program as it left them, up to the last tick that was not read anew since;
    and the commit that left them.

    Args:
        store: the tables.
        program: by which the ledger knows it.
        commits: all of them.
        now: the last one.

    Raises:
        DataError: they are not there any more (code `state`).
    """
    left = None
    tables, summed_to = store.tables, summed(store)
    for commit in reversed(commits):
        held = held_at(store, commit) if commit.plan == program else None
        if held is None:
            continue
        left = commit
        anew = anew_since(commits, commit.sequence)
        last = min(commit.last, now.last, commit.last if anew is None else anew - 1)
        if last == commit.last:
            return Base(last, held, commit, summed_to), commit
        told = (has_changes_since(t, last, commit.last, summed_to) for t in tables.values())
        seam = last_seam(c for c in commits if c.sequence <= commit.sequence)
        if last >= max(seam, 0) and all(told):
            return Base(last, held, None, summed_to), commit
    if left is not None:
        return NO_BASE, left
    raise state_error(
        "the tables of the deployment before are not there any more",
        "deploy its program again: what is missing is computed from the landed past",
    )


def undone_from(commits: Sequence[Commit], left: Commit) -> int:
    """The first tick that some commit after one has made."""
    later = [c.first for c in commits if c.sequence > left.sequence and c.ticks]
    return min(later, default=left.last + 1)
