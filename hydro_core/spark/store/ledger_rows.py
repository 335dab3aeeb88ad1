"""The rows of a ledger: what stands in them of a commit, and how that is read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.spark.functions.reruns import RERUN_COLUMNS, rerun_of, row_of_rerun
from hydro_core.spark.store.input_reads import INPUT_COLUMNS, read_of, row_of

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger import Commit

_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS: dict[str, pa.DataType] = {
    "sequence": pa.int64(),
    "first": pa.int64(),
    "last": pa.int64(),
    "plan": pa.string(),
    "versions": pa.map_(pa.string(), pa.int64()),
    "rows": pa.map_(pa.string(), pa.int64()),
    "inputs": pa.list_(pa.struct(INPUT_COLUMNS)),
    "start": _TIME,
    "end": _TIME,
    "started": _TIME,
    "committed": _TIME,
    "checks": pa.string(),
    "tables": pa.string(),
    "reruns": pa.list_(pa.struct(RERUN_COLUMNS)),
    "back": pa.bool_(),
}
LEDGER_SCHEMA = pa.schema(_COLUMNS)
"""The columns of a ledger."""


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


def ledger_rows(commits: Iterable[Commit]) -> pa.Table:
    """Commits as the rows of a ledger."""
    rows = [
        {
            "sequence": c.sequence,
            "first": c.first,
            "last": c.last,
            "plan": c.plan,
            "versions": sorted(c.versions.items()),
            "rows": sorted(c.rows.items()),
            "inputs": [row_of(read) for read in c.inputs],
            "start": c.start,
            "end": c.end,
            "started": c.started,
            "committed": c.committed,
            "checks": json.dumps(c.checks, sort_keys=True),
            "tables": json.dumps(c.tables, sort_keys=True),
            "reruns": [row_of_rerun(one) for one in c.reruns],
            "back": c.back,
        }
        for c in commits
    ]
    return pa.Table.from_pylist(rows, schema=LEDGER_SCHEMA)


def commit_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its commit, by the names of a commit's fields."""
    known: dict[str, Any] = {
        field.name: row[field.name] for field in LEDGER_SCHEMA if field.name in row
    }
    known["inputs"] = tuple(read_of(found) for found in known["inputs"])
    # A ledger of an earlier version has none.
    known["reruns"] = tuple(rerun_of(found) for found in known.get("reruns") or ())
    known.setdefault("back", None)
    known["checks"] = json.loads(known["checks"])
    known["tables"] = json.loads(known["tables"])
    for name, moment in known.items():
        if isinstance(moment, datetime):
            known[name] = moment.replace(tzinfo=UTC)
    return known


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
