"""Batches of ticks from landings, and the rows of them that can matter for some values.

A landing is read as `hydrotick run --input` reads it: a Delta table, or files of Parquet, CSV or
JSON lines. Its column tells the ticks; without one it arrives whole at tick 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, reduce
from itertools import chain
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from hydro_core.files.inputs import demands
from hydro_core.files.kinds import UNREADABLE
from hydro_core.files.pieces import damage_as_errors
from hydro_core.files.places import DELTA
from hydro_core.files.row_batch import plain_table
from hydro_core.files.scan import Scan
from hydro_core.spark.files.frames import item_of, native_rows, within
from hydro_core.spark.frames.column_names import TICK
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.inputs.arrivals import arriving, as_of, own_rows
from hydro_core.spark.inputs.batches import Batch, batch_of, refuse_unlisted
from hydro_core.spark.inputs.looks import Landings, LandingTable, LandingView, landing_sources
from hydro_core.spark.inputs.snapshot import (
    Snapshot,
    as_changes,
    has_rows_without_tick,
    read_by_pieces,
    refuse_input,
    refuse_unfit,
)
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.spark.store.schema import flattened
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import NONE, count_ticks, tick_of_value
from hydro_core.ticks.wanted import (
    CanonicalValues,
    ReadLimits,
    TooLargeError,
    TooManyError,
    WantedRows,
)
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import FieldPath, ItemType, Row, Tuple, required_columns
from hydro_core.types.values import ValueProblem, canonical

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals import Rows


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
        self.sources = landing_sources(landings, items, spark, calendar)
        """The inputs where they land."""
        self.held: RowCache | None = None
        """Where rows are held between looks; None: files are read each time."""
        self.seen: Mapping[str, LandingView] = {}
        """Inputs that were looked at; others are looked at once, when they are asked for."""
        self._scans: dict[tuple[str, int | None], Scan] = {}

    @property
    def landings(self) -> Landings:
        """A look at the landings: each time it is another one."""
        return Landings(self.sources, self._directory)

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
        source = self.sources[name]
        source.refuse_missing()
        try:
            found = self.scan(name, version).fileset
            if found.dataset is None:
                return None
            with damage_as_errors(found.files, found.form):
                return found.dataset.count_rows()
        except FileNotFoundError as gone:
            where = f" at version {version}" if version is not None else ""
            refuse_input(name, f"{source.file.path} has lost files{where}: {gone}", "restore them")

    def scan(self, name: str, version: int | None) -> Scan:
        """A scan of a landing, or of a version of it.

        It is made once, and not at all if the landing was seen at that version by these columns.
        """
        if (name, version) not in self._scans:
            source, view = self.sources[name], self.seen.get(name)
            if view and version in (None, view.now.version) and view.source.reads_as(source):
                scan = view.scan
            else:
                scan = source.scan(None if version is None else Snapshot(DELTA, version))
            self._scans[name, version] = scan
        return self._scans[name, version]

    def _batch(self, seen: LandingView, ticks: tuple[int, int]) -> Batch:
        own = self._as_they_lie(seen, ticks)
        if seen.differences.touch(*ticks):
            own = _joined(own, own_rows(seen.source, seen.scan, seen.differences, ticks))
        batch = _joined(own, _arriving(seen, ticks))
        too_early = 0 if ticks[0] else seen.source.too_early(seen.scan)
        seen.refuse_changed()
        if not seen.differences.touch(*ticks):
            refuse_unlisted(seen, own.read, ticks)
        recorded = seen.recorded(batch.read, self._directory, first=ticks[0])
        return replace(batch, read=replace(recorded, early=too_early))

    def _as_they_lie(self, seen: LandingView, ticks: tuple[int, int]) -> Batch:
        """The rows of the range itself; none where not all of them are read with it."""
        source = seen.source
        file, item = source.file, source.item
        scan = source.at(seen.scan, ticks)
        if (file.column is None and ticks[0] > 0) or seen.differences.touch(*ticks):
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
    """The ledger's record of a read, apart from the counts of rows."""
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
    """True if Arrow and Spark read the rows by themselves; else they are read piece by piece.

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
    """True if there are nulls where the type allows none."""
    required = [ds.field(name).is_null() for name in required_columns(scan.item)]
    if not required:
        return False
    some = reduce(or_, required)
    where = scan.where(rows)
    if where is not None:
        some &= where
    return bool(rows.count_rows(filter=some))


def _counted(scan: Scan, counts: Counter[int]) -> InputRead:
    """The ledger's record, with the number of rows and the ticks that had none."""
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
        yield from arriving(seen.source, seen.scan, seen.differences, ticks)
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


_COUNT = "count_all"
_COUNTED_AT_ONCE = 1 << 18
"""From so many rows on they are counted before more are read."""
_KINDS: tuple[tuple[Any, type], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_date32, date),
)
"""Columns whose values are compared by Arrow as the language compares them."""


@dataclass(frozen=True, slots=True)
class _GatheredRows:
    """The rows that can matter for several, each of which asks for its own."""

    wanted: Sequence[WantedRows]
    last: int
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _Look:
    """The rows of an input that can matter: those for which `where` holds, if anything is known."""

    scan: Scan
    rows: ds.Dataset | None
    """Those of the input, where Arrow reads them as the language does."""
    where: ds.Expression | None

    @property
    def size(self) -> int:
        """The bytes of the files that may have such rows."""
        if self.rows is None:
            return sum(file.stat().st_size for file in self.scan.fileset.files)
        files: Any = self.rows.get_fragments(filter=self.where)
        named = self.scan.fileset.by_name
        return sum(named(file.path).stat().st_size for file in files)


class SlicedBatches(InputBatches):
    """The batches of a pipeline's inputs, of which slices can be read, too."""

    def wanted(
        self,
        wanted: WantedRows,
        last: int,
        most: ReadLimits,
        version: int | None = None,
    ) -> Mapping[int, list[Any]]:
        """The rows of an input up to a tick that can matter, as items by their ticks.

        Args:
            wanted: which rows, and from which tick on.
            last: the last tick.
            most: what may be read.
            version: of a Delta table; None: the latest.

        Raises:
            DataError: the input cannot be read (code `input`).
            TooManyError: it has more such rows.
            TooLargeError: the files that may have them are larger.
        """
        look = self._look([wanted], last, version)
        if look is None:
            return {}
        scan = look.scan
        if look.rows is None:
            _refuse_large(look.size, most)
            batch = self._by_pieces(scan)
        else:
            gathered = self._gathered_for(wanted, last, version)
            if gathered is not None:
                rows: ds.Dataset = ds.dataset(gathered)
            else:
                if wanted.some is None:
                    _refuse_large(look.size, most)
                rows = self._quick(scan, look.rows)
            with damage_as_errors(scan.fileset.files, scan.fileset.form):
                found = matching(rows, scan.names, look.where, most.rows, wanted.some)
            try:
                batch = arrow_batch(scan, plain_table(found))
            except ValueProblem:
                # Which value loses a digit, and where it is, its pieces tell.
                batch = self._by_pieces(scan)
        if not isinstance(batch.rows, pa.Table):
            raise TooManyError
        by_tick: dict[int, list[Any]] = {}
        items = from_arrow(batch.rows[ITEM].combine_chunks(), scan.item)
        ticks: list[Any] = batch.rows[TICK].to_pylist()
        for tick, value in zip(ticks, items, strict=True):
            by_tick.setdefault(tick, []).append(value)
        return wanted.among(by_tick)

    def gather(
        self,
        wanted: Sequence[WantedRows],
        last: int,
        most: ReadLimits,
        version: int | None = None,
    ) -> None:
        """Reads at once what several want of one input from the same tick on.

        `wanted` then finds it. Where they are too many rows, or of files that are too large,
        nothing is read, and each is asked for by itself.
        """
        look = self._look(wanted, last, version)
        if look is None or look.rows is None:
            return
        scan = look.scan
        try:
            _refuse_large(look.size, most)
            with damage_as_errors(scan.fileset.files, scan.fileset.form):
                table = matching(self._quick(scan, look.rows), scan.names, look.where, most.rows)
        except (TooLargeError, TooManyError):
            return
        self._gathered.setdefault((wanted[0].name, version), []).append(
            _GatheredRows(wanted, last, table)
        )

    def counts(
        self,
        asked: Sequence[tuple[WantedRows, Sequence[FieldPath]]],
        last: int,
        version: int | None = None,
    ) -> list[Counter[tuple[Hashable, ...]]]:
        """How many of the rows of an input have which values in some fields, by their forms; for
        each who asks, of those that are wanted. They are all wanted from the same tick on.

        Nothing where that takes more than to count.
        """
        found = [Counter[tuple[Hashable, ...]]() for _ in asked]
        look = self._look([wanted for wanted, _ in asked], last, version)
        if look is None or look.rows is None:
            return found
        scan, item = look.scan, look.scan.item
        told = ((*fields, *chain(*wanted.alternatives)) for wanted, fields in asked)
        names = [column_of(path, item) for path in sorted({*chain(*told)})]
        columns = [name for name in names if name is not None]
        if len(columns) < len(names):
            return found
        with damage_as_errors(scan.fileset.files, scan.fileset.form):
            try:
                counted = counts_of(self._quick(scan, look.rows), columns, look.where)
            except ValueProblem:
                return found
        for (wanted, fields), counts in zip(asked, found, strict=True):
            where = condition_of(wanted, counted.schema, item)
            own = [name for path in fields if (name := column_of(path, item)) is not None]
            rows = ds.dataset(counted).to_table(filter=where)
            summed = rows.group_by(list(dict.fromkeys(own))).aggregate([(_COUNT, "sum")])
            for row in summed.to_pylist():
                counts[tuple(canonical(row[name]) for name in own)] += row[f"{_COUNT}_sum"]
        return found

    def size(
        self,
        wanted: WantedRows,
        last: int,
        version: int | None = None,
    ) -> int:
        """The bytes of the files that may have rows that are wanted."""
        look = self._look([wanted], last, version)
        return 0 if look is None else look.size

    def _look(self, wanted: Sequence[WantedRows], last: int, version: int | None) -> _Look | None:
        """The rows to read for several who want rows of one input from the same tick on; None: it
        has none.
        """
        name, first = wanted[0].name, wanted[0].first
        source = self.sources[name]
        if not source.is_there or (source.file.column is None and first > 0):
            return None
        scan = self.scan(name, version)
        refuse_unfit(scan, None)
        scan = source.at(scan, (first, last))
        rows = scan.fileset.dataset if scan.is_exact else None
        return _Look(scan, rows, None if rows is None else _condition(scan, wanted, rows))

    def _quick(self, scan: Scan, rows: ds.Dataset) -> ds.Dataset:
        """The rows of files, in memory where they are held."""
        if self.held is None or scan.fileset.kind != DELTA:
            return rows
        return self.held.rows(scan.fileset.by_name, rows, scan.names)

    @cached_property
    def _gathered(self) -> dict[tuple[str, int | None], list[_GatheredRows]]:
        return {}

    def _gathered_for(self, wanted: WantedRows, last: int, version: int | None) -> pa.Table | None:
        for gathered in self._gathered.get((wanted.name, version), ()):
            if gathered.last == last and wanted in gathered.wanted:
                return gathered.rows
        return None


def _condition(scan: Scan, wanted: Sequence[WantedRows], rows: ds.Dataset) -> ds.Expression | None:
    """A condition that holds for all rows that somebody wants."""
    told = [condition_of(one, rows.schema, scan.item) for one in wanted]
    known = [condition for condition in told if condition is not None]
    where = reduce(or_, known) if known and len(known) == len(told) else None
    within = scan.where(rows)
    return within if where is None else where if within is None else within & where


def _refuse_large(size: int, most: ReadLimits) -> None:
    if most.size is not None and size > most.size:
        raise TooLargeError(size)


def condition_of(wanted: WantedRows, schema: pa.Schema, item: ItemType) -> ds.Expression | None:
    """A condition that holds for the wanted rows, and for others that Arrow cannot tell apart.

    None: nothing is known of them.
    """
    parts = []
    for alternative in wanted.alternatives:
        told = [
            part
            for path, values in alternative.items()
            if (part := _one_of(column_of(path, item), values, schema)) is not None
        ]
        if not told:
            return None
        parts.append(reduce(and_, told))
    return reduce(or_, parts) if parts else None


def column_of(path: FieldPath, item: ItemType) -> str | None:
    """The column that holds a field; None: it is a part of one."""
    match item:
        case Row() if len(path) == 1:
            return path[0]
        case Tuple() if len(path) == 1:
            return f"_{int(path[0]) + 1}"
        case _:
            return None


def _one_of(column: str | None, values: CanonicalValues, schema: pa.Schema) -> ds.Expression | None:
    if column is None or column not in schema.names:
        return None
    kind = schema.field(column).type
    of = next((of for fits, of in _KINDS if fits(kind)), None)
    there = [value for value in values.values() if value is not None]
    if of is None or not all(type(value) is of for value in there):
        return None
    asked = ds.field(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Of files that delta-rs has rewritten Arrow cannot hold text against their statistics.
        asked = asked.cast(kind)
    found: ds.Expression = asked.isin(pa.array(there, pa.int64() if of is int else kind))
    if len(there) < len(values):
        found |= ds.field(column).is_null()
    return found


def matching(
    rows: ds.Dataset,
    columns: Collection[str],
    where: ds.Expression | None,
    most: int,
    some: int | None = None,
) -> pa.Table:
    """The columns of the rows that meet a condition, or of `some` of them.

    Raises:
        TooManyError: they are more than `most`.
    """
    if some is not None:
        return rows.head(some, columns=list(columns), filter=where)
    found, count = list[pa.RecordBatch](), 0
    for batch in rows.to_batches(columns=list(columns), filter=where):
        count += batch.num_rows
        if count > most:
            raise TooManyError
        found.append(batch)
    schema = pa.schema([rows.schema.field(name) for name in columns])
    return pa.Table.from_batches(found, found[0].schema if found else schema)


def counts_of(rows: ds.Dataset, columns: Sequence[str], where: ds.Expression | None) -> pa.Table:
    """The values that rows which meet a condition have in some columns, and how many have them: in
    the column `count_all`.
    """
    names, found, batches = list(dict.fromkeys(columns)), list[pa.Table](), list[pa.RecordBatch]()

    def count() -> None:
        table = plain_table(pa.Table.from_batches(batches))
        found.append(table.group_by(names).aggregate([([], "count_all")]))
        batches.clear()

    waiting = 0
    for batch in rows.to_batches(columns=names, filter=where):
        batches.append(batch)
        waiting += batch.num_rows
        if waiting > _COUNTED_AT_ONCE:
            count()
            waiting = 0
    if batches:
        count()
    if not found:
        none = plain_table(rows.schema.empty_table().select(names))
        return none.append_column(_COUNT, pa.array([], pa.int64()))
    return pa.concat_tables(found)
