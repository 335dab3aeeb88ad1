"""Tables that no deployment needs any more: those of earlier ones, after a while."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.storage.delta import is_table
from hydro_core.storage.places import remove_tree
from hydro_core.storage.remote import DataPlace


def retired_since(commits: Sequence[Commit]) -> dict[str, datetime]:
    """When each table that the last commit does not name was given up, by the tables' names."""
    known: set[str] = set()
    found: dict[str, datetime] = {}
    for commit in commits:
        for name in known - set(commit.tables):
            found.setdefault(name, commit.committed)
        for name in commit.tables:
            found.pop(name, None)
        known |= set(commit.tables)
    return found


def drop_retired(
    directory: DataPlace, commits: Sequence[Commit], now: datetime, keep: timedelta
) -> tuple[str, ...]:
    """Removes the tables of a pipeline that were given up longer ago than `keep`.

    The pipeline's lock is held. Gives their names; there is no going back to the deployments that
    had them.
    """
    gone = []
    for name, since in retired_since(commits).items():
        if now - since >= keep and is_table(directory / name):
            remove_tree(directory / name)
            gone.append(name)
    return tuple(gone)
