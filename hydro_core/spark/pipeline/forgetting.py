"""The rows that have a value: those that are landed, files of a pipeline that hold them, and the
removal of all that its tables ever held.

Whoever has taken the rows out of what is landed, and computed the ticks that had read them again,
removes the history of the tables last. That may end anywhere, and is simply run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydro_core.files.scan import Scan, read
from hydro_core.spark.inputs.snapshot import LISTINGS
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import COMPARED, STAGING
from hydro_core.spark.pipeline.tables import drop_retired
from hydro_core.spark.store.delta.table import erase_log
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.storage.arrow import opened
from hydro_core.storage.places import empty, files_in
from hydro_core.storage.remote import DataPlace, name_below
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import Field, ItemType, Row

_LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class ForgottenValue:
    """A value of a column of an input, which tells whose a row is."""

    column: str
    type: ItemType
    value: Any

    def landed(self, scan: Scan) -> Mapping[DataPlace, int]:
        """How many rows of each landed file have it, of whatever ticks; files without any are left
        out.

        Raises:
            DataError: a file cannot be read (code `input`).
        """
        item = Row((Field(self.column, self.type),))
        column = replace(scan, item=item, file=replace(scan.file, column=None))
        rows = {file: self._count(read(column, [file]).items) for file in scan.fileset.files}
        return {file: count for file, count in rows.items() if count}

    def stored(self, directory: DataPlace) -> Mapping[str, int]:
        """How many files of each table below a pipeline's directory hold the value, those of its
        history and its log among them.

        A text is looked for in all columns; any other value in those of the column's name, since
        a number is found everywhere.
        """
        found = Counter[str]()
        for file in files_in(directory):
            name = name_below(file, directory)
            if self._is_in_log(file) if f"/{_LOG}/" in name else self._is_in_rows(file):
                found["/".join(name.split("/")[:-1][:2])] += 1
        return dict(sorted(found.items()))

    def _is_in_log(self, file: DataPlace) -> bool:
        # Its statistics have the least and the greatest text of each column.
        return isinstance(self.value, str) and self.value.encode() in file.read_bytes()

    def _is_in_rows(self, file: DataPlace) -> bool:
        if file.suffix != ".parquet":
            return False
        rows = pq.ParquetFile(opened(file))
        leaves = [rows.schema.column(place) for place in range(len(rows.schema))]
        if not isinstance(self.value, str):
            leaves = [leaf for leaf in leaves if leaf.name == self.column]
        batches = rows.iter_batches(columns=[leaf.path for leaf in leaves]) if leaves else ()
        return any(self._count(part) for batch in batches for part in batch.columns)

    def _count(self, values: Any) -> int:
        kind = arrow_type(self.type)
        return sum(
            pc.sum(pc.equal(leaf.cast(kind), pa.scalar(self.value, kind))).as_py() or 0
            for leaf in _leaves(values)
            if _is_like(leaf.type, kind)
        )


def _is_like(one: Any, other: Any) -> bool:
    return one == other or (pa.types.is_large_string(one) and pa.types.is_string(other))


def _leaves(values: Any) -> Iterator[Any]:
    """The arrays of which nested ones consist."""
    if pa.types.is_struct(values.type):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(values.type):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        yield from _leaves(values.flatten())
    else:
        yield values


def erase(pipeline: Pipeline) -> Commit | None:
    """Removes all that the tables held before, and do not hold now; the pipeline's lock is held.

    The tables of earlier deployments go as well, and what is listed of landings that no tick reads
    next: there is no way back to how anything was. Ended in between, it is to be run again.

    Raises:
        DataError: another writer is at work, or a table is broken (code `state`).
    """
    now = pipeline.ledger.refresh()
    if now is None:
        return None
    pipeline.refuse_another_program(now)
    pipeline.store.recover(now)
    directory, moment = pipeline.directory, datetime.now(UTC)
    pipeline.lock.refuse_lost()
    for scratch in (STAGING, COMPARED):
        empty(directory / scratch)
    drop_retired(directory, pipeline.ledger.commits(), moment, timedelta(0))
    pipeline.step("dropped what is retired")
    pipeline.store.lookup_files.remove_all()
    held = {name: table.version for name, table in pipeline.store.tables.items()}
    # What another has written since it took over is not seen here, and would go.
    kept = pipeline.lock.kept_after(pipeline.step)
    versions = pipeline.store.vacuum(0, kept, pipeline.lock.refuse_lost)
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
