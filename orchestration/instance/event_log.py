"""Dagster's record of events in one SQLite database, without a wait for the disk at each event.

A tick logs some sixty events. What they tell can be told again from the ledger, so it is enough
that the operating system has them: a killed process loses none, a power cut perhaps the last.

Of a run's events, those that make up the records of assets and checks are kept, and so are the runs
themselves; how it went step by step, and what it printed, is forgotten after a while. The records
of ticks are small beside that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import dagster as dg
import sqlalchemy as db
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable


class EventLog(ConsolidatedSqliteEventLogStorage):
    """The storage that the shipped `dagster.yaml` names; its database is Dagster's own."""

    @cached_property
    def _engine(self) -> db.Engine:
        engine = db.create_engine(
            self._conn_string, poolclass=db.pool.NullPool, connect_args={"timeout": 30}
        )
        no_wait = "PRAGMA synchronous=OFF"
        db.event.listen(engine, "connect", lambda connection, _: connection.execute(no_wait))
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


KEPT_DAYS = 30
"""Who looks for the cause of a failure looks within a month."""

_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
_KEPT_EVENTS = sorted(event.value for event in ASSET_EVENTS | ASSET_CHECK_EVENTS)


def forget_old_logs(instance: dg.DagsterInstance, days: int) -> int:
    """Removes the logs of runs that ended more than `days` days ago; gives how many runs had some.

    It does nothing in an instance whose events are stored otherwise than in the shipped way.
    """
    events = instance.event_log_storage
    if not isinstance(events, EventLog):
        return 0
    before = datetime.now(UTC) - timedelta(days=days)
    old = instance.get_run_records(dg.RunsFilter(statuses=_ENDED, updated_before=before))
    forgotten = events.forget([record.dagster_run.run_id for record in old], _KEPT_EVENTS)
    storage = Path(instance.root_directory) / "storage"
    for record in old:
        shutil.rmtree(storage / record.dagster_run.run_id, ignore_errors=True)
    return forgotten
