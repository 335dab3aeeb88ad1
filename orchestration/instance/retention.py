"""How long the instance keeps what runs logged: what assets and checks had stays for ever.

Of a run's events, those that make up the records of assets and checks are kept, and so are the runs
themselves; how it went step by step, and what it printed, is forgotten after a while. The records
of ticks are small beside that.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS

from .event_log import EventLog

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
