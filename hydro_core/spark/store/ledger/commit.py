"""A commit of a pipeline: one row of its ledger, whose columns are derived from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from hydro_core.catalog.forms import Form
from hydro_core.spark.functions.reruns import RerunCount
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.spark.store.ledger.record_columns import columns_of
from hydro_core.types.records import AS_TEXT


@dataclass(frozen=True, slots=True)
class Commit:
    """One row of the ledger: ticks `first` to `last` are done, the tables stand at `versions`."""

    sequence: int
    first: int
    last: int
    plan: str
    versions: Mapping[str, int]
    rows: Mapping[str, int]
    inputs: tuple[InputRead, ...] = ()
    start: datetime | None = None
    """Where the window of the first tick starts, in time."""
    end: datetime | None = None
    """Where the window of the last tick ends."""
    _: KW_ONLY
    started: datetime
    committed: datetime
    checks: Mapping[str, Any] = field(default_factory=dict, metadata=AS_TEXT)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, metadata=AS_TEXT)
    """What each table holds: enough to see whether another program can go on from it."""
    reruns: tuple[RerunCount, ...] = ()
    """The functions for which ranges up to this one ran again in Python."""
    back: bool = False
    """Whether it went back to a program that had served before."""

    @property
    def ticks(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def ran_again(self) -> tuple[RerunCount, ...]:
        """The functions for which the ticks of this commit ran again in Python."""
        return tuple(one for one in self.reruns if one.commit == self.sequence)

    def replaces(self, table: str) -> bool:
        """Whether a tick replaces all rows of a table, by its name."""
        return self.tables.get(table, {}).get("mode") == Form.VALUES.stored


LEDGER_SCHEMA = pa.schema(columns_of(Commit))
"""The columns of a ledger."""


def programs_of(commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """The programs that have served and were not given up, each by its last commit."""
    served: list[str] = []
    last: dict[str, Commit] = {}
    for commit in commits:
        last[commit.plan] = commit
        if served[-1:] == [commit.plan]:
            continue
        if commit.plan in served and commit.back:
            while served[-1] != commit.plan:
                served.pop()
        else:
            served.append(commit.plan)
    return tuple(last[plan] for plan in served)
