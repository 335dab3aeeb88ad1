"""Tables as they were before a tick, and tables of two programs joined at one."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError
from hydro_core.files.parquet import (
    files_as_dataset,
    in_pieces,
    opened_parquet,
    write_parquet_pieces,
)
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.store.delta.actions import DataFile
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.delta.write import write_files
from hydro_core.spark.store.ledger.ledger import Ledger, state_error
from hydro_core.spark.store.ledger.records import Commit, anew_since, last_seam
from hydro_core.spark.store.outputs.changes import net, signed
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed
from hydro_core.spark.store.store import ALWAYS, Store
from hydro_core.storage.places import are_there, has_second_name, second_name
from hydro_core.storage.remote import DataPlace, name_below

# Rows carry their ticks, so mostly it is a matter of files: those that end before that tick get a
# second name, and one that goes on beyond it is cut.


@dataclass(frozen=True, slots=True)
class Base:
    """Where the tables of a pipeline can be had as they were after a tick; -1: before the first."""

    tick: int
    files: Mapping[str, tuple[DataFile, ...]]
    """Of each table the files that hold its rows, and maybe rows of later ticks."""
    commit: Commit | None
    """The commit that ended with the tick, where one did."""
    summed_to: Mapping[str, int] = field(default_factory=dict)
    """Of each log the tick up to which its rows may be one."""


NO_BASE = Base(-1, {}, None)


def base_before(store: Store, ledger: Ledger, first: int) -> Base:
    """The latest tick before `first` as of which all tables can still be had.

    Rows carry their ticks, so mostly it is the tick before. A table that holds its last tick only,
    or a log that was summed up since, is had from an earlier version, as far as its files are
    there; else there is nothing to go on from. Nor is there before the tick from which on a log is
    of the program that serves.
    """
    now, seam = ledger.last, last_seam(ledger.commits())
    if now is None or first <= max(seam, 0):
        return NO_BASE
    tables, summed_to = store.tables, summed_ticks(store)
    if all(has_changes_since(table, first - 1, now.last, summed_to) for table in tables.values()):
        files = {name: tuple(table.files()) for name, table in tables.items()}
        commit = ledger.commit_of(first - 1)
        ends = commit is not None and commit.last == first - 1
        return Base(first - 1, files, commit if ends else None, summed_to)
    since = math.inf
    for commit in reversed(ledger.commits()):
        # Its ticks were not made again or taken back since.
        stands = commit.ticks and commit.last < since
        since = min(since, commit.first)
        if stands and seam <= commit.last < first:
            held = held_at(store, commit)
            if held is not None:
                return Base(commit.last, held, commit, summed_to)
    return NO_BASE


def summed_ticks(store: Store) -> Mapping[str, int]:
    """Of each log of a store the tick up to which its rows may be one."""
    return {name: t.summed_to() for name, t in store.tables.items() if t.spec.forgets and t.exists}


def has_changes_since(
    table: StoredTable, tick: int, last: int, summed_to: Mapping[str, int]
) -> bool:
    """Whether the table's rows tell what it held after the tick."""
    if table.spec.form is Form.VALUES:
        return tick == last
    return summed_to.get(table.spec.name, -1) <= tick


def held_at(store: Store, commit: Commit) -> Mapping[str, tuple[DataFile, ...]] | None:
    """The files of the tables at a commit; None where some are not there any more."""
    held = {}
    for name, table in store.tables.items():
        if name not in commit.versions or not table.exists:
            return None
        try:
            files = table.files_at(commit.versions[name])
        except DataError:
            return None
        if not are_there(file.path for file in files):
            return None
        held[name] = tuple(files)
    return held


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
    tables, summed_to = store.tables, summed_ticks(store)
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


def begin(staged: Store, ledger: Ledger, base: Base, plan: str) -> None:
    """Makes the tables and the ledger beside: as they were after the tick of the base."""
    ledger.create()
    if base.tick < 0:
        return
    for name, table in staged.tables.items():
        table.create()
        serving = staged.directory.parent / name
        linked = (_up_to(base.tick, file, table, serving) for file in base.files[name])
        summed_to = min(base.summed_to.get(name, -1), base.tick)
        table.hold((file for file in linked if file is not None), summed_to=summed_to)
    # Of a tick within a commit the ledger has kept nothing: the checks will ask the tables.
    known: Mapping[str, Any] = base.commit.checks if base.commit is not None else {}
    moment = datetime.now(UTC)
    ledger.append(
        Commit(
            sequence=0,
            first=0,
            last=base.tick,
            plan=plan,
            versions={name: table.version for name, table in staged.tables.items()},
            rows={},
            started=moment,
            committed=moment,
            checks=known,
            tables={name: table.spec.record() for name, table in staged.tables.items()},
        )
    )


def _up_to(tick: int, file: DataFile, table: StoredTable, serving: DataPlace) -> DataFile | None:
    """The rows of a file up to a tick, below the table: the very file, if it has no others."""
    if not file.may_hold(0, tick):
        return None
    here = table.path / name_below(file.path, serving)
    here.parent.mkdir(parents=True, exist_ok=True)
    if file.last is not None and file.last <= tick:
        second_name(file.path, here)
        return replace(file, path=here)
    here = here.parent / f"{uuid.uuid4()}.parquet"
    column = table.spec.tick
    whole = files_as_dataset([file.path], table.spec.arrow_schema)
    pieces = list(in_pieces(whole, [column], ds.field(column) <= tick))
    if not pieces:
        return None
    # Of the ticks no more is held than a column; the rows go by one by one.
    ends: Any = pc.min_max(pa.chunked_array([c for p in pieces for c in p[column].chunks])).as_py()
    size = write_parquet_pieces(in_pieces(whole, where=ds.field(column) <= tick), here)
    return DataFile(here, size, sum(map(len, pieces)), ends["min"], ends["max"])


def moved(file: DataPlace, here: DataPlace, there: DataPlace) -> DataPlace:
    """The file below the directory `there`; one that is linked there already stays."""
    target = there / name_below(file, here)
    if not has_second_name(file, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        second_name(file, target)
    return target


def join_at(
    tick: int, served: Store, made: Store, name: str, session: Callable[[], SparkSession]
) -> None:
    """Puts the rows that a table has of the ticks before `tick` before those of another one.

    Of a log, the changes at that tick lead from what the one has to what the other has. Columns
    that only the first has are left out, those that only the second has are null.

    Args:
        tick: the first of the second table's ticks that count.
        served: has the table whose earlier ticks stay.
        made: has the table of the other program, with all ticks; it gets the rows of both.
        name: what the table is called in both.
        session: gives the Spark that does it where the stores do not hold so many rows.
    """
    first, second = served.tables[name], made.tables[name]
    if max(first.rows, second.rows) > made.held_rows and not second.spec.has_unknown:
        _by_executors(tick, served, made, name, session())
        return
    spec = second.spec
    before = _as(spec, _rows(first, ds.field(first.spec.tick) < tick))
    if not spec.is_log:
        since = _rows(second, ds.field(spec.tick) >= tick)
        second.rewrite(pa.concat_tables([before, since]))
        return
    taken = before.set_column(
        before.column_names.index(spec.count_column),
        spec.arrow_schema.field(spec.count_column),
        pc.negate(before[spec.count_column]),
    )
    second.rewrite(
        pa.concat_tables([before, summed(pa.concat_tables([taken, _rows(second)]), spec, tick)])
    )


def _by_executors(tick: int, served: Store, made: Store, name: str, spark: SparkSession) -> None:
    table = made.tables[name]
    spec, at = table.spec, table.spec.tick
    stays = served.frame(spark, name, 0, tick - 1)
    before = None if stays is None else _columns(spec, stays)
    after = made.frame(spark, name, tick + 1 if spec.is_log else tick, ALWAYS)
    parts = [before, after]
    if spec.is_log:
        names = [name for name, _ in spec.columns if name not in (at, spec.count_column)]
        leading = made.frame(spark, name, 0, tick)
        rows, by = signed(before, leading, names, spec.count_column)
        if rows is not None:
            turned = net(rows, by).withColumnRenamed(by, spec.count_column)
            parts.append(_columns(spec, turned.withColumn(at, F.lit(tick).cast("long"))))
    whole = [part for part in parts if part is not None]
    if not whole:
        table.hold(())
        return
    ends = [file.last for file in table.files()]
    # The rows that stay are of earlier ticks than `tick`, and maybe of later ones than the others.
    last = None if None in ends else max([tick, *(end or 0 for end in ends)])
    first = None if last is None else 0
    written = write_files(table, reduce(DataFrame.unionAll, whole), (0, last or tick))
    counted = [(file, opened_parquet(file).metadata.num_rows) for file in written.files]
    table.hold(DataFile(file, file.stat().st_size, n, first, last) for file, n in counted)


def _columns(spec: TableSpec, rows: DataFrame) -> DataFrame:
    """The columns of a table; of those that the rows have not, nulls."""
    there = {name.lower() for name in rows.columns}
    return rows.select(
        *[
            F.col(quoted(field.name))
            if field.name.lower() in there
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in spec.spark_schema.fields
        ]
    )


def _rows(table: StoredTable, where: ds.Expression | None = None) -> pa.Table:
    files = files_as_dataset((file.path for file in table.files()), table.spec.arrow_schema)
    return files.to_table(filter=where)


def _as(spec: TableSpec, rows: pa.Table) -> pa.Table:
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in spec.arrow_schema
    ]
    return pa.table(columns, schema=spec.arrow_schema)
