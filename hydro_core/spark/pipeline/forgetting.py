"""The rows of one value of a key, taken out of a pipeline; and all that its tables ever held.

Where the plan keeps the rows of different values apart, the rows of one are taken out of every
table by one row of the ledger, which is of all committed ticks, as that of a correction is. No
tick is computed. Whatever ends the process before that row leaves tables that are ahead of the
ledger, and these are set back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hydro_core.analysis.partition.locations import PathSet, keyed_streams
from hydro_core.analysis.partition.terms import is_exact
from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import NodeId
from hydro_core.spark.inputs.snapshot import LISTINGS
from hydro_core.spark.pipeline.comparison import COMPARED
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import STAGING
from hydro_core.spark.pipeline.tables import drop_retired
from hydro_core.spark.store.delta.erased import KeyedRows, erase_files, erase_log
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.delta.table_rows import rows_since
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.spark.store.ledger.seams import seams
from hydro_core.spark.store.ledger.standing import FORGOTTEN
from hydro_core.spark.store.schema import TableSpec
from hydro_core.storage.places import empty, files_in
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import FieldPath, at

_FILES = ".parquet"


@dataclass(frozen=True, slots=True)
class TheirRows:
    """The rows of a value in each table that may have some, by the tables' names."""

    rows: Mapping[str, KeyedRows] = field(default_factory=dict)
    obstacles: tuple[str, ...] = ()
    """Why they cannot be told apart; empty where they can."""


def by_key(pipeline: Pipeline, keys: Mapping[str, FieldPath], value: Any) -> TheirRows:
    """Which rows of a pipeline's tables come of the landed rows that have a value, and no others.

    Args:
        pipeline: the one that serves.
        keys: the inputs that have the key, each with its field.
        value: the key's, of a type that compares exactly.
    """
    plan = pipeline.plan
    streams: dict[str, list[NodeId]] = {
        pipeline.state_tables[slot.id].name: [slot.stream.node] for slot in plan.slots
    }
    for name, spec in pipeline.output_tables.items():
        streams[spec.name] = [sink.inputs[0].node for sink in plan.graph.sinks[name]]
    found = keyed_streams(plan.typed, keys, (n for nodes in streams.values() for n in nodes))
    obstacles = list(found.obstacles)
    of_two = seams(pipeline.ledger.commits())
    obstacles += [f"`{name}` has ticks of an earlier program" for name in sorted(of_two)]
    rows: dict[str, KeyedRows] = {}
    for spec in () if obstacles else pipeline.tables:
        fields = [found.fields[node] for node in streams[spec.name]]
        path = _path(spec, fields)
        if path is not None:
            rows[spec.name] = KeyedRows(spec, path, value)
        elif any(one is not None for one in fields):
            what = "output" if spec.role == "output" else "state"
            obstacles.append(f"the {what} `{spec.of}` does not have it")
    return TheirRows({} if obstacles else rows, tuple(obstacles))


def _path(spec: TableSpec, fields: Sequence[PathSet | None]) -> FieldPath | None:
    """The field of a table that is the key; None: it has none, or some of its rows have none."""
    sets = [one or frozenset() for one in fields]
    common = frozenset.intersection(*sets)
    exact = (path for path in common if is_exact(at(spec.item, path)))
    return min(exact, key=lambda path: (len(path), path), default=None)


def rows_there(pipeline: Pipeline, found: TheirRows) -> Mapping[str, int]:
    """How many rows of the value each table has, by the tables' names; nothing is changed."""
    now = pipeline.ledger.refresh()
    pipeline.store.check(now)
    tables = pipeline.store.tables
    return {name: rows.count(tables[name]) for name, rows in found.rows.items()}


def rows_before(pipeline: Pipeline, found: TheirRows) -> int:
    """How many rows of the value are in files that the tables held before; nothing is changed."""
    tables = pipeline.store.tables
    return sum(rows.count(tables[n], _replaced(tables[n])) for n, rows in found.rows.items())


def _replaced(table: StoredTable) -> list[DataPlace]:
    held = {file.path for file in table.files()}
    parts = (f for f in files_in(table.path) if f.name.startswith("part-") and f.suffix == _FILES)
    return [file for file in parts if file not in held]


def take_out(
    pipeline: Pipeline,
    found: TheirRows,
    reads: Sequence[InputRead],
    late: Mapping[str, Mapping[int, int]],
) -> Commit:
    """Takes the rows out of all tables, by one row of the ledger; the pipeline's lock is held.

    Args:
        pipeline: the one that serves; something is committed.
        found: which rows they are.
        reads: what is to stand in the ledger of the inputs, of all ticks.
        late: how many of the landed rows came late, by input and their own ticks.

    Raises:
        DataError: another writer is at work, or a table is broken (code `state`).
    """
    now = _recovered(pipeline)
    for name, rows in found.rows.items():
        rows.take_out(pipeline.store.tables[name])
        pipeline.step(name)
    commit = _of_all_ticks(pipeline, now, reads, late)
    pipeline.ledger.append(commit)
    pipeline.step("ledger")
    return commit


def erase(pipeline: Pipeline) -> Commit | None:
    """Removes all that the tables held before, and does not hold now; the pipeline's lock is held.

    The tables of earlier deployments go as well, and what is listed of landings that no tick reads
    next: there is no way back to how anything was. Ended in between, it is to be run again.

    Raises:
        DataError: another writer is at work, or a table is broken (code `state`).
    """
    if pipeline.ledger.refresh() is None:
        return None
    now = _recovered(pipeline)
    directory, moment = pipeline.directory, datetime.now(UTC)
    pipeline.lock.refuse_lost()
    for scratch in (STAGING, COMPARED):
        empty(directory / scratch)
    drop_retired(directory, pipeline.ledger.commits(), moment, timedelta(0))
    pipeline.step("dropped what is retired")
    pipeline.store.lookup_files.remove_all()
    held = {name: table.version for name, table in pipeline.store.tables.items()}
    versions = {}
    for name, table in pipeline.store.tables.items():
        # What another has written since it took over is not seen here, and would go.
        pipeline.lock.refuse_lost()
        versions[name] = erase_files(table, pipeline.lock.refuse_lost)
        pipeline.step(f"erased {name}")
    recorded = pipeline.note(now, now.last, versions, started=moment)
    pipeline.step("noted")
    pipeline.lock.refuse_lost()
    pipeline.published.erase()
    for name, version in held.items():
        # Who has read the table as it was held goes on from there.
        erase_log(directory / name, version)
        pipeline.store.tables[name].forget()
        pipeline.step(f"erased the log of {name}")
    needed = {name for read in pipeline.ledger.last_reads() for name in read.lists}
    for file in files_in(directory / LISTINGS):
        if file.stem not in needed:
            file.unlink()
    return recorded


def _recovered(pipeline: Pipeline) -> Commit:
    now = pipeline.ledger.refresh()
    if now is None:
        raise AssertionError("nothing is committed, so there is nothing to take out")
    pipeline.refuse_another_program(now)
    pipeline.store.recover(now)
    return now


def _of_all_ticks(
    pipeline: Pipeline,
    now: Commit,
    reads: Sequence[InputRead],
    late: Mapping[str, Mapping[int, int]],
) -> Commit:
    ledger, tables = pipeline.ledger, pipeline.store.tables
    begun, ended = ledger.commit_of(0), ledger.commit_of(now.last)
    moment = datetime.now(UTC)
    # The next tick measures the tables; the facts that are known are of other rows.
    checks = {**(ended.checks if ended else {}), "tables": {}, FORGOTTEN: late}
    return replace(
        now,
        sequence=now.sequence + 1,
        first=0,
        versions={name: table.version for name, table in tables.items()},
        rows={
            name: table.rows if table.spec.form is Form.VALUES else rows_since(table, 0)
            for name, table in tables.items()
        },
        inputs=tuple(reads),
        start=begun.start if begun else None,
        end=ended.end if ended else None,
        started=moment,
        committed=moment,
        checks=checks,
        back=False,
    )
