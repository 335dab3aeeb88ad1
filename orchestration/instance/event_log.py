"""Dagster's record of events in one SQLite database, without a wait for the disk at each event.

A tick logs some sixty events. What they tell can be told again from the ledger, so it is enough
that the operating system has them: a killed process loses none, a power cut perhaps the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import sqlalchemy as db
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable


class EventLog(ConsolidatedSqliteEventLogStorage):
    """The storage that the shipped `dagster.yaml` names; its database is Dagster's own."""

    @cached_property
    def _engine(self) -> db.Engine:
        engine = db.create_engine(
            self._conn_string, poolclass=db.pool.NullPool, connect_args={"timeout": 30}
        )
        db.event.listen(engine, "connect", _do_not_wait)
        return engine

    @contextmanager
    def _connect(self) -> Iterator[db.Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def forget(self, runs: Sequence[str], kept: Sequence[str]) -> int:
        """Removes the events of runs, but those of the kept types; gives how many runs had some."""
        forgotten = 0
        kind = SqlEventLogStorageTable.c.dagster_event_type
        for run in runs:
            with self.run_connection(run) as connection:
                removed = connection.execute(
                    SqlEventLogStorageTable.delete()
                    .where(SqlEventLogStorageTable.c.run_id == run)
                    .where(db.or_(kind.is_(None), kind.not_in(kept)))
                )
            forgotten += removed.rowcount > 0
        return forgotten


def _do_not_wait(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")
