"""Whether Dagster's records have more to say of a flow than its ledger: a glance, without Dagster.

To load Dagster and to open its instance takes seconds of a processor, and nearly always nothing is
in it that the ledger does not say: no run is at work or has failed since the last commit, and every
committed tick is recorded. That much is asked of the shipped storage, SQLite, directly. Where in
doubt, and for every other storage, Dagster is to be asked.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset

from ..code_location.asset_paths import last_path
from ..flows.flows import Flows
from ..instance import SETTINGS
from ..instance.run_tags import FLOW_TAG, IN_FLIGHT, UNDONE

_STORAGE = ("storage", "run_storage", "event_log_storage", "local_artifact_storage")
"""The settings of an instance that say where its records are."""
_RUNS, _EVENTS = "history/runs.db", "event_log.db"
_SECONDS = 2


def say_nothing_more(flow: FlowAsset, flows: Flows) -> bool:
    """Whether Dagster's records surely have nothing of the flow that its ledger does not say."""
    home, done = flows.project.dagster_home, flows.next_tick(flow)
    if not home.exists():
        return not done
    try:
        if not _is_stored_as_shipped(home):
            return False
        if not (home / _RUNS).exists():
            return not done
        with _opened(home / _RUNS) as runs, _opened(home / _EVENTS) as events:
            if _has_runs(runs, flow, flows, done):
                return False
            if done:
                return _has_all_ticks(events, flow, flows, done)
            # Records of the flow's assets are of what is landed or was once computed.
            keys = events.execute("SELECT asset_key FROM asset_keys").fetchall()
            return all(json.loads(key)[0] != flow.name for (key,) in keys)
    except (OSError, HydroError, sqlite3.Error, yaml.YAMLError, _UnknownFormError):
        return False


class _UnknownFormError(Exception):
    """Records have another form than those of this release of Dagster, or are being written."""


def _is_stored_as_shipped(home: Path) -> bool:
    texts = [
        (home / SETTINGS).read_text(encoding="utf-8"),
        (files("hydrotick.instance") / SETTINGS).read_text(encoding="utf-8"),
    ]
    if texts[0] == texts[1]:
        return True
    used, shipped = (yaml.safe_load(text) or {} for text in texts)
    return all(used.get(name) == shipped.get(name) for name in _STORAGE)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    if not os.access(path.parent, os.W_OK):
        # SQLite writes beside what it only reads, unless it may take it to be as it is for ever.
        if path.with_name(f"{path.name}-wal").exists():
            raise _UnknownFormError
        uri += "&immutable=1"
    with closing(sqlite3.connect(uri, uri=True, timeout=_SECONDS)) as connection:
        yield connection


def _has_runs(runs: sqlite3.Connection, flow: FlowAsset, flows: Flows, tick: int) -> bool:
    """Whether a run is at work on the flow, or has failed or been ended since the last commit.

    One that was launched from assets has no tag of its flow: it counts for all of them.
    """
    since = flows.waits_since(flow, tick)
    after = "" if since is None else since.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    query = f"""
        SELECT 1 FROM runs WHERE
        (status IN ({_marks(IN_FLIGHT)})
            OR status IN ({_marks(UNDONE)}) AND update_timestamp > ?)
        AND NOT EXISTS (SELECT 1 FROM run_tags
            WHERE run_tags.run_id = runs.run_id AND key = ? AND value <> ?)
        LIMIT 1
    """  # noqa: S608 - marks alone are put in
    values = (*IN_FLIGHT, *UNDONE, after, FLOW_TAG, flow.name)
    return runs.execute(query, values).fetchone() is not None


def _has_all_ticks(events: sqlite3.Connection, flow: FlowAsset, flows: Flows, done: int) -> bool:
    """Whether every committed tick is recorded, the last ones as they were committed last."""
    key = json.dumps(last_path(flow, flows.plan(flow)))
    last = flow.ticks.calendar.window(done - 1).key
    wiped = events.execute("SELECT wipe_timestamp FROM asset_keys WHERE asset_key = ?", (key,))
    if wiped.fetchone() != (None,):
        return False
    of_it = "FROM event_logs WHERE asset_key = ? AND dagster_event_type = 'ASSET_MATERIALIZATION'"
    counted = events.execute(f"SELECT COUNT(DISTINCT partition) {of_it}", (key,))
    made = events.execute(
        f"SELECT event {of_it} AND partition = ? ORDER BY id DESC LIMIT 1",
        (key, last),
    ).fetchone()
    if counted.fetchone() != (done,) or made is None:
        return False
    commit = flows.deployments.ledger(flow).last_run
    return commit is not None and _commit_of(made[0]) in (None, commit.sequence)


def _commit_of(event: str) -> int | None:
    """The commit that a recorded tick names; None where it names none."""
    try:
        made: Any = json.loads(event)["dagster_event"]["event_specific_data"]["materialization"]
        entries = made["metadata_entries"]
        found = [e["entry_data"]["value"] for e in entries if e["label"] == "commit"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _UnknownFormError from problem
    return found[0] if found else None


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
