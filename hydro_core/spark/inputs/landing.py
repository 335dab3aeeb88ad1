"""Batches from landing tables: the rows whose column says that they are of a tick.

A landing is what `hydrotick run --input` reads, read the same way: a Delta table, or files of
Parquet, CSV or JSON lines. Its column tells the ticks; without one it arrives whole at tick 0. Of a
Delta table the version is fixed when a range is first read, and what an input once was it stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from hydro_core.files.inputs import demands
from hydro_core.files.pieces import damage_as_errors
from hydro_core.files.places import DELTA
from hydro_core.files.plain import plain_table
from hydro_core.files.scan import Scan
from hydro_core.files.unreadable import UNREADABLE
from hydro_core.spark.files.frames import item_of, native_rows, within
from hydro_core.spark.frames.column_names import TICK
from hydro_core.spark.inputs.arrivals.landings import LandingTable, LandingView, landings_of
from hydro_core.spark.inputs.arrivals.late_rows import arriving, as_of, own_rows
from hydro_core.spark.inputs.arrivals.source import Snapshot, read_by_pieces
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.inputs.landed_refusals import as_changes, has_rows_without_tick, refuse_input
from hydro_core.spark.inputs.miscounted import refuse_unlisted
from hydro_core.spark.store.ledger.input_reads import InputRead
from hydro_core.spark.store.schema import flattened
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import NONE, count_ticks, tick_of_value
from hydro_core.types.columns import required_columns
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.late_rows import Rows


class InputBatches:
    """The batches of a pipeline's inputs, range by range.

    Args:
        landings: where each input lands.
        items: the items' types, by the inputs' names.
        spark: gives the session, when rows are too many to be collected.
        small: up to this many rows a batch is read without Spark.
        calendar: the windows of the ticks; None: numbers tell them.
        directory: the pipeline's; without it, what came for committed ticks is not looked for.
    """

    def __init__(
        self,
        landings: Mapping[str, LandingTable],
        items: Mapping[str, ItemType],
        spark: Callable[[], SparkSession],
        small: int = 100_000,
        calendar: Calendar | None = None,
        directory: DataPlace | None = None,
    ) -> None:
        self._spark, self._small = spark, small
        self._directory = directory
        self.landings = landings_of(landings, items, spark, calendar, directory)
        """What came, went and changed there."""

    def read(
        self,
        first: int,
        last: int,
        seen: Mapping[str, LandingView] | None = None,
    ) -> Mapping[str, Batch]:
        """The batches of a range, as the inputs were seen; late rows come with its first tick.

        Args:
            first: the first tick of the range.
            last: its last tick.
            seen: the inputs as they were looked at; the late rows are for the tick that was open
                then, and for no later one.

        Raises:
            DataError: an input is not there, or its rows do not fit (`input`).
            InfrastructureError: a file was written while it was read.
        """
        found = self.landings.look(first) if seen is None else seen
        return {name: self._batch(one, (first, last)) for name, one in found.items()}

    def rows_there(self, name: str, version: int | None = None) -> int | None:
        """How many rows an input has, all ticks together; None where only reading them tells.

        Raises:
            DataError: it is not there, or not at that version any more (code `input`).
        """
        source = self.landings.sources[name]
        source.refuse_missing()
        try:
            found = source.scan(None if version is None else Snapshot(DELTA, version)).fileset
            if found.dataset is None:
                return None
            with damage_as_errors(found.files, found.form):
                return found.dataset.count_rows()
        except FileNotFoundError as gone:
            where = f" at version {version}" if version is not None else ""
            refuse_input(name, f"{source.file.path} has lost files{where}: {gone}", "restore them")

    def _batch(self, seen: LandingView, ticks: tuple[int, int]) -> Batch:
        own = self._as_they_lie(seen, ticks)
        if seen.off.touch(*ticks):
            own = _joined(own, own_rows(seen.source, seen.scan, seen.off, ticks))
        batch = _joined(own, _arriving(seen, ticks))
        too_early = 0 if ticks[0] else seen.source.too_early(seen.scan)
        seen.refuse_changed()
        if not seen.off.touch(*ticks):
            refuse_unlisted(seen, own.read, ticks)
        recorded = seen.recorded(batch.read, self._directory, first=ticks[0])
        return replace(batch, read=replace(recorded, early=too_early))

    def _as_they_lie(self, seen: LandingView, ticks: tuple[int, int]) -> Batch:
        """The rows of the range itself; none where not all of them are read with it."""
        source = seen.source
        file, item = source.file, source.item
        scan = source.at(seen.scan, ticks)
        if (file.column is None and ticks[0] > 0) or seen.off.touch(*ticks):
            empty = pa.table({c: pa.array([], pa.null()) for c, _ in flattened(item)})
            counts = dict.fromkeys(range(ticks[0], ticks[1] + 1), 0)
            return batch_of(
                file.name, empty, item, 0, replace(input_read(scan), rows=0, counts=counts)
            )
        with as_changes(file):
            try:
                if _is_whole(scan):
                    return self._whole(scan)
            except FileNotFoundError:
                raise
            except UNREADABLE:
                # Which file cannot be read, and why, its pieces tell.
                pass
            return self._by_pieces(scan)

    def _whole(self, scan: Scan) -> Batch:
        """Arrow or Spark reads the rows by itself."""
        item, rows = scan.item, scan.fileset.dataset
        if rows is None:
            raise ValueError("Arrow does not read them by itself")
        where = scan.where(rows)
        if not scan.fileset.is_plain or rows.count_rows(filter=where) <= self._small:
            table = rows.to_table(columns=scan.names or None, filter=where)
            return arrow_batch(scan, plain_table(table))
        if scan.file.column is None:
            counts = Counter({0: rows.count_rows()})
        else:
            counts = Counter[int]()
            for batch in rows.to_batches(columns=[scan.file.column], filter=where):
                counts.update(count_ticks(scan.numbers(batch)))
        kept = within(native_rows(self._spark(), scan), scan.ticks)
        frame = kept.select(item_of(item, scan.columns), TICK)
        return Batch(frame, item, _counted(scan, counts))

    def _by_pieces(self, scan: Scan) -> Batch:
        """The rows are read piece by piece, as what they are is told by each of them."""
        rows, counts = read_by_pieces(self._spark, scan, _of_range(scan))
        return Batch(rows, scan.item, _counted(scan, counts))


def input_read(scan: Scan) -> InputRead:
    """What the ledger is to keep of a reading, apart from what the rows tell."""
    found = scan.fileset
    return InputRead(scan.file.name, None, scan.file.path, found.version, found.kind)


def arrow_batch(scan: Scan, table: pa.Table) -> Batch:
    """The rows of an Arrow table that are of the ticks of a scan."""
    numbers = scan.numbers(table)
    there = numbers != NONE
    read = _counted(scan, count_ticks(numbers))
    rows, kept = table.filter(pa.array(there)), pa.array(numbers[there])
    return batch_of(scan.file.name, rows, scan.item, kept, read)


def _is_whole(scan: Scan) -> bool:
    """Whether Arrow and Spark read the rows by themselves; else they are read piece by piece.

    So it is with nulls that may not be, and rows that are of no tick, of which the pieces tell.
    """
    rows = scan.fileset.dataset
    if rows is None or not scan.is_exact:
        return False
    if any(map(demands, scan.columns.values())):
        return False
    if scan.file.column is not None and has_rows_without_tick(scan, rows, scan.file.column):
        return False
    return not _lacks(scan, rows)


def _lacks(scan: Scan, rows: ds.Dataset) -> bool:
    """Whether there are nulls that may not be."""
    required = [ds.field(name).is_null() for name in required_columns(scan.item)]
    if not required:
        return False
    some = reduce(or_, required)
    where = scan.where(rows)
    if where is not None:
        some &= where
    return bool(rows.count_rows(filter=some))


def _counted(scan: Scan, counts: Counter[int]) -> InputRead:
    """What the ledger is to keep: how many rows there were, and the ticks that had none."""
    ticks = range(1) if scan.ticks is None else scan.ticks.ticks
    empty = () if scan.ticks is None else tuple(tick for tick in ticks if not counts[tick])
    known = {tick: counts[tick] for tick in ticks}
    return replace(input_read(scan), rows=counts.total(), empty=empty, counts=known)


def _joined(batch: Batch, parts: Iterable[tuple[Rows, Counter[int]]]) -> Batch:
    """The batch with more rows of its ticks."""
    for rows, counts in parts:
        known = Counter(batch.read.counts or {})
        known.update(counts)
        read = replace(batch.read, rows=known.total(), counts=dict(sorted(known.items())))
        batch = replace(batch.with_rows(rows), read=read)
    return batch


def _arriving(seen: LandingView, ticks: tuple[int, int]) -> Iterator[tuple[Rows, Counter[int]]]:
    """The late rows that arrive with some ticks."""
    rows = seen.arrivals.rows
    if rows is None or not ticks[0] <= seen.until <= ticks[1]:
        yield from arriving(seen.source, seen.scan, seen.off, ticks)
    else:
        late = sum(seen.arrivals.late.values())
        yield as_of(rows, seen.until), Counter({seen.until: late})


def _of_range(scan: Scan) -> Sequence[DataPlace]:
    """The files without those of which a folder, or the log, says that they are of other ticks."""
    column, ticks, constants = scan.file.column, scan.ticks, scan.fileset.form.constants
    if ticks is None or column is None:
        return scan.fileset.files

    def may_hold(file: DataPlace) -> bool:
        constant = constants.get(file, {}).get(column)
        value = None if constant is None else constant.as_py()
        tick = None if value is None else tick_of_value(value, ticks.calendar, ticks.numbered)
        return tick is None or tick in ticks.ticks

    return list(filter(may_hold, scan.fileset.files))
