"""An output as a Delta table of its own, for readers who know of nothing but Delta.

Its rows are those of the output as of a tick, with no column beside theirs. Every version of it is
what one commit of the ledger has left, so that a reader sees one tick or another, never a part;
which commit that is, a transaction of the version says. It is written by what changes: rows are
merged by their key where they have one, else those that may be concerned are replaced; where most
of it is another, all of it is. Delta's change data feed tells the changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import DeltaError
from deltalake.table import TableMerger
from deltalake.transaction import AddAction, RemoveAction

from hydro_core.files.parquet import files_as_dataset, in_pieces
from hydro_core.machine.faults import raise_outage
from hydro_core.spark.store.delta.actions import (
    DataFile,
    added,
    last_entry,
    named_types,
    stored_file,
    with_order,
)
from hydro_core.spark.store.delta.table import erase_log
from hydro_core.spark.store.outputs.changes import (
    NetChanges,
    TypedColumns,
    agreeing,
    agreeing_rows,
    are_alike,
    difference,
    distinct,
    has_nulls,
    net_changes,
)
from hydro_core.spark.store.schema import TableSpec, stored
from hydro_core.storage.delta import (
    created_table,
    data_files,
    is_table,
    log_configuration,
    opened_table,
    without_old_entries,
)
from hydro_core.storage.places import empty
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import LONG

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.records import Commit

PUBLISHED = "tables"
"""The directory, within a pipeline's, of the outputs as tables."""
_APPLICATION = "hydrotick"
_CONFIGURATION = {"delta.enableChangeDataFeed": "true"}
_SMALL_FILE = 1 << 20
_SMALL_FILES = 16
_OFTEN = 10
_OP, _DELETE, _INSERT = "hydrotick_op", "delete", "insert"
_CHANGES = "_change_data"


def published_path(directory: DataPlace, spec: TableSpec) -> DataPlace:
    """Where the table of an output is, by the spec of its log."""
    return directory / PUBLISHED / spec.name.removeprefix("outputs/")


class PublishedTable:
    def __init__(self, directory: DataPlace, spec: TableSpec, key: Sequence[str] = ()) -> None:
        """`key`: columns of which it has a row at most for each value; none: that is not known."""
        self.path = published_path(directory, spec)
        self.spec = spec
        place = ((spec.place, LONG),) if spec.place else ()
        self.columns: TypedColumns = [(n, stored(t)) for n, t in (*spec.items, *place)]
        types = dict(self.columns)
        self._key = [(n, types[n]) for n in key] if all(are_alike(types[n]) for n in key) else []

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, arrow_type(item)) for name, item in self.columns])

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def opened(self) -> DeltaTable | None:
        """The table as it is; None where there is none that can be read."""
        if not is_table(self.path):
            return None
        try:
            return opened_table(self.path)
        except DeltaError as error:
            raise_outage(error, str(self.path))
            return None

    def sequence(self) -> int | None:
        """The commit of the ledger that it shows; None: that cannot be told."""
        table = self.opened()
        return None if table is None or not self._is_ours(table) else _sequence_of(table)

    def _is_ours(self, table: DeltaTable) -> bool:
        """Whether it has these columns, and nobody else has written to it last."""
        if not self._has_columns(table):
            return False
        last = last_entry(table, self.path)
        return last.get("operation") in _UPKEEP or _APPLICATION in last

    def _has_columns(self, table: DeltaTable) -> bool:
        found: Any = table.schema().to_arrow()
        return named_types(pa.schema(found)) == named_types(self.schema)

    def rows(self) -> pa.Table:
        return pa.concat_tables(self.pieces())

    def pieces(self) -> Iterator[pa.Table]:
        """The same a piece at a time, at least one."""
        yield self.schema.empty_table()
        table = self.opened()
        if table is not None:
            yield from in_pieces(self._files(table))

    def row_count(self) -> int:
        """How many rows it has."""
        table = self.opened()
        return 0 if table is None else _row_count(table)

    def files_of_ours(self) -> list[DataPlace] | None:
        """Its files; None where it is not there, or somebody else has written to it last."""
        table = self.opened()
        return None if table is None or not self._is_ours(table) else _places(table, self.path)

    def restate(self, rows: pa.Table, commit: Commit) -> None:
        """Makes it hold these rows and no others: by what differs, where that is less."""
        rows = rows.select(self.names)
        if self.files_of_ours() is None:
            self._replace(rows, commit)
            return
        self.apply(difference(rows, self.rows(), self.columns), commit, len(rows))

    def take(
        self,
        files: Mapping[DataPlace, int],
        commit: Commit,
        mode: Literal["append", "overwrite"],
    ) -> None:
        """Takes files below its directory over, beside or in place of its own: by one version.

        `files` are the files, each with the number of its rows.
        """
        table = self.made()
        adds: list[AddAction | RemoveAction] = [
            added(DataFile(file, file.stat().st_size, rows), self.path)
            for file, rows in files.items()
        ]
        table.create_write_transaction(
            adds,
            mode,
            Schema.from_arrow(self.schema),
            commit_properties=_properties(commit),
            post_commithook_properties=PostCommitHookProperties(),
        )
        self._tidy(table)

    def apply(self, net: NetChanges, commit: Commit, total: int | None = None) -> bool:
        """Changes its rows; gives whether it could: else it holds other rows than was thought.

        `total` is how many rows it has then, where that is known.
        """
        table = self.opened()
        if table is None:
            raise AssertionError(f"{self.path} is made before it is changed")
        if not len(net):
            said = _properties(commit)
            table.create_write_transaction([], "append", table.schema(), commit_properties=said)
        elif net.is_growth:
            self._write(table, net.coming(), commit, "append")
        elif self._merge_by_key(table, net, commit):
            pass
        else:
            return self._replace_some(table, net, commit, total)
        self._tidy(table)
        return True

    def _merge_by_key(self, table: DeltaTable, net: NetChanges, commit: Commit) -> bool:
        """Puts new rows in the place of those with their key; gives whether that is possible."""
        if not self._key or (abs(net.counts) != 1).any():
            return False
        come, gone = net.of(net.counts > 0).rows, net.of(net.counts < 0).rows
        for rows in (come, gone):
            if len(distinct(rows, self._key)) < len(rows):
                return False
        gone = gone.filter(pa.array(~agreeing(gone, come, self._key)))
        source, values = _marked(come, gone), self._values
        (
            self._merging(table, source, self._matches(source, table, self._key), commit)
            .when_matched_delete(f"s.{_OP} = '{_DELETE}'")
            .when_matched_update(values, f"s.{_OP} = '{_INSERT}'")
            .when_not_matched_insert(values, f"s.{_OP} = '{_INSERT}'")
            .execute()
        )
        return True

    def _replace_some(
        self, table: DeltaTable, net: NetChanges, commit: Commit, total: int | None
    ) -> bool:
        """Replaces the rows that agree with one that goes in all columns that can be compared."""
        by = [(name, item) for name, item in self.columns if are_alike(item)]
        before = _row_count(table)
        if not by or 2 * net.copies > max(before, total or 0):
            rows = _after(self.rows(), net, self.columns)
            if rows is not None:
                self._replace(rows, commit)
            return rows is not None
        gone = distinct(net.of(net.counts < 0).rows, by)
        there = agreeing_rows(self._files(table), gone, by)
        concerned = agreeing(net.rows, gone, by)
        after = _after(there, net.of(concerned), self.columns)
        if after is None:
            return False
        come = pa.concat_tables([after, net.of(~concerned & (net.counts > 0)).coming()])
        empty = pa.nulls(len(gone))
        parts: list[Any] = [
            gone[name] if name in gone.column_names else empty.cast(of)
            for name, of in zip(self.names, self.schema.types, strict=True)
        ]
        source = _marked(come, pa.table(parts, schema=self.schema))
        matches = f"(s.{_OP} = '{_DELETE}') AND {self._matches(source, table, by)}"
        (
            self._merging(table, source, matches, commit)
            .when_matched_delete()
            .when_not_matched_insert(self._values, f"s.{_OP} = '{_INSERT}'")
            .execute()
        )
        self._tidy(table)
        return True

    def _merging(
        self, table: DeltaTable, source: pa.Table, matches: str, commit: Commit
    ) -> TableMerger:
        return table.merge(
            source,
            matches,
            source_alias="s",
            target_alias="t",
            commit_properties=_properties(commit),
        )

    @property
    def _values(self) -> dict[str, str]:
        return {_quoted(name): f"s.{_quoted(name)}" for name in self.names}

    def _matches(self, source: pa.Table, table: DeltaTable, by: TypedColumns) -> str:
        """That a row of the table agrees with one of the source; nulls agree."""
        parts = []
        for name, _ in by:
            same = "IS NOT DISTINCT FROM" if _may_be_null(name, source, table) else "="
            parts.append(f"(t.{_quoted(name)} {same} s.{_quoted(name)})")
        return " AND ".join(parts)

    def _replace(self, rows: pa.Table, commit: Commit) -> None:
        """Writes all of it anew, in one version."""
        self._write(self.made(), rows, commit, "overwrite")

    def made(self) -> DeltaTable:
        """The table; it is made where it is not there."""
        table = self.opened()
        if table is not None:
            return table
        empty(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A directory's log is kept as Delta does it.
        kept = log_configuration(self.path, _OFTEN) if isinstance(self.path, RemotePath) else {}
        return created_table(self.path, self.schema, configuration={**_CONFIGURATION, **kept})

    def _write(
        self,
        table: DeltaTable,
        rows: pa.Table,
        commit: Commit,
        mode: Literal["append", "overwrite"],
    ) -> None:
        write: Any = write_deltalake
        schema = self.schema if self._has_columns(table) else with_order(self.schema)
        write(
            table,
            rows.select(self.names).cast(schema),
            mode=mode,
            schema_mode="overwrite" if mode == "overwrite" else None,
            commit_properties=_properties(commit),
        )

    def _tidy(self, table: DeltaTable) -> None:
        """Joins small files, where there are many."""
        table.update_incremental()
        sizes = [row["size_bytes"] for row in data_files(table, "size_bytes")]
        if sum(size < _SMALL_FILE for size in sizes) >= _SMALL_FILES:
            with suppress(DeltaError):  # what was written stands, and the next time will do
                table.optimize.compact()
                without_old_entries(self.path, table)

    def compact(self, keep_hours: int) -> None:
        """Joins its files, and removes those that no version of the last hours holds."""
        table = self.opened()
        if table is not None:
            table.optimize.compact()
            without_old_entries(self.path, table)
            table.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False, full=True)

    def erase(self) -> None:
        """Removes what it held before, and what has changed since: its files, and its log of it."""
        table = self.opened()
        if table is None:
            return
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        empty(self.path / _CHANGES)
        erase_log(self.path, opened_table(self.path).version())

    def _files(self, table: DeltaTable) -> ds.Dataset:
        return files_as_dataset(_places(table, self.path), self.schema)


_UPKEEP = ("OPTIMIZE", "VACUUM START", "VACUUM END")
"""What changes no row."""


def shown_sequence(path: DataPlace) -> int | None:
    """The commit of the ledger that a published table shows; None where it shows none."""
    try:
        return _sequence_of(opened_table(path))
    except DeltaError as error:
        raise_outage(error, str(path))
        return None


def _sequence_of(table: DeltaTable) -> int | None:
    found = table.transaction_version(_APPLICATION)
    return None if found is None else int(found)


def _properties(commit: Commit) -> CommitProperties:
    said: Mapping[str, str] = {_APPLICATION: f"as of tick {commit.last}"}
    return CommitProperties(
        app_transactions=[Transaction(_APPLICATION, commit.sequence)], custom_metadata=dict(said)
    )


def _places(table: DeltaTable, path: DataPlace) -> list[DataPlace]:
    return [stored_file(path, row) for row in data_files(table, "path", "size_bytes")]


def _row_count(table: DeltaTable) -> int:
    return sum(row["num_records"] or 0 for row in data_files(table, "num_records"))


def _may_be_null(name: str, source: pa.Table, table: DeltaTable) -> bool:
    """Whether a column of rows, or of a table that they are merged into, may have a null."""
    if has_nulls(source[name]):
        return True
    count = f"null_count.{name}"
    counts = [row[count] for row in data_files(table, count)]
    return not counts or any(known != 0 for known in counts)


def _marked(come: pa.Table, gone: pa.Table) -> pa.Table:
    op = [_INSERT] * len(come) + [_DELETE] * len(gone)
    return pa.concat_tables([come, gone]).append_column(_OP, pa.array(op, pa.string()))


def _after(there: pa.Table, net: NetChanges, columns: TypedColumns) -> pa.Table | None:
    """The rows that are left of some; None where more go than there are."""
    both = pa.concat_tables([there, net.rows])
    counts = np.concatenate([np.ones(len(there), np.int64), net.counts])
    left = net_changes(both, counts, columns)
    return left.coming() if left.is_growth else None


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
