"""What the rows of a ledger say of programs, and how Arrow gives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.ledger import Commit

_TIME = pa.timestamp("us", tz="UTC")


def without_zones(rows: pa.Table) -> pa.Table:
    """The rows with instants that have no zone: of those with one pyarrow makes pandas' own.

    They are looked at anew, not cast: to cast, it loads all its functions.
    """
    local = pa.timestamp("us")
    for place, column in enumerate(rows.schema):
        if column.type == _TIME:
            seen = [chunk.view(local) for chunk in rows.column(place).chunks]
            rows = rows.set_column(place, column.with_type(local), pa.chunked_array(seen, local))
    return rows


def programs_of(commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """The programs that have served and were not given up, each by its last commit."""
    served: list[str] = []
    last: dict[str, Commit] = {}
    for commit in commits:
        last[commit.plan] = commit
        if served[-1:] == [commit.plan]:
            continue
        if commit.plan in served and commit.back in (True, None):
            while served[-1] != commit.plan:
                served.pop()
        else:
            served.append(commit.plan)
    return tuple(last[plan] for plan in served)
