"""Those rows of a landing that can matter for some values, of many ticks: read as items.

What is asked of columns goes down to the files, whose statistics tell what need not be read. Spark
is needed only where the files are such that its workers have to read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.pieces import damage_told
from hydro_core.files.places import DELTA
from hydro_core.files.plain import plain_table
from hydro_core.files.scan import Scan
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.arrivals.source import Snapshot
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.inputs.landed_refusals import refuse_unfit
from hydro_core.spark.inputs.landing import InputBatches, input_read
from hydro_core.spark.store.row_cache import RowCache
from hydro_core.ticks.tick_range import NONE
from hydro_core.ticks.wanted import (
    CanonicalValues,
    ReadLimits,
    TooLargeError,
    TooManyError,
    WantedRows,
)
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import FieldPath, ItemType, Row, Tuple
from hydro_core.types.values import canonical

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
class _Gathered:
    """The rows that can matter for several, each of which asks for its own."""

    wanted: Sequence[WantedRows]
    last: int
    rows: pa.Table


class SlicedBatches(InputBatches):
    """The batches of a pipeline's inputs, of which slices can be read, too.

    A landing is looked at once: what lands in it later is not seen.
    """

    held: RowCache | None = None
    """Where rows are held between looks; None: files are read each time."""

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
        if self._has_none(wanted):
            return {}
        scan = self._scan_of(wanted, last, version)
        rows, item = _rows_of(scan), scan.item
        if rows is None:
            _refuse_large(sum(file.stat().st_size for file in scan.fileset.files), most)
            batch = self._by_pieces(scan)
        else:
            gathered = self._gathered_for(wanted, last, version)
            where = _where(scan, [wanted], rows)
            if gathered is not None:
                rows = ds.dataset(gathered)
            else:
                if wanted.some is None:
                    _refuse_large(_size(scan, rows, where), most)
                rows = self._quick(scan, rows)
            with damage_told(scan.fileset.files, scan.fileset.form):
                table = plain_table(matching(rows, scan.names, where, most.rows, wanted.some))
            numbers = scan.numbers(table)
            there = numbers != NONE
            ticks: Any = pa.array(numbers[there])
            batch = batch_of(
                scan.file.name, table.filter(pa.array(there)), item, ticks, input_read(scan)
            )
        if not isinstance(batch.rows, pa.Table):
            raise TooManyError
        return wanted.among(items_by_tick(batch.rows, item))

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
        if self._has_none(wanted[0]):
            return
        scan = self._scan_of(wanted[0], last, version)
        rows = _rows_of(scan)
        if rows is None:
            return
        where = _where(scan, wanted, rows)
        try:
            _refuse_large(_size(scan, rows, where), most)
            with damage_told(scan.fileset.files, scan.fileset.form):
                table = matching(self._quick(scan, rows), scan.names, where, most.rows)
        except (TooLargeError, TooManyError):
            return
        self._gathered.setdefault((wanted[0].name, version), []).append(
            _Gathered(wanted, last, table)
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
        nothing = [Counter[tuple[Hashable, ...]]() for _ in asked]
        if self._has_none(asked[0][0]):
            return nothing
        scan = self._scan_of(asked[0][0], last, version)
        rows, item = _rows_of(scan), scan.item
        paths = {path for wanted, fields in asked for path in (*fields, *_asked_of(wanted))}
        names = [column_of(path, item) for path in sorted(paths)]
        columns = [name for name in names if name is not None]
        if rows is None or len(columns) < len(names):
            return nothing
        where = _where(scan, [wanted for wanted, _ in asked], rows)
        with damage_told(scan.fileset.files, scan.fileset.form):
            counted = counts_of(self._quick(scan, rows), columns, where)
        found = []
        for wanted, fields in asked:
            where = condition_of(wanted, counted.schema, item)
            own = [name for path in fields if (name := column_of(path, item)) is not None]
            found.append(_by_form(ds.dataset(counted).to_table(filter=where), own))
        return found

    def size(
        self,
        wanted: WantedRows,
        last: int,
        version: int | None = None,
    ) -> int:
        """The bytes of the files that may have rows that are wanted."""
        if self._has_none(wanted):
            return 0
        scan = self._scan_of(wanted, last, version)
        rows = _rows_of(scan)
        if rows is None:
            return sum(file.stat().st_size for file in scan.fileset.files)
        return _size(scan, rows, _where(scan, [wanted], rows))

    def _has_none(self, wanted: WantedRows) -> bool:
        source = self.landings.sources[wanted.name]
        return not source.is_there or (source.file.column is None and wanted.first > 0)

    def _scan_of(self, wanted: WantedRows, last: int, version: int | None) -> Scan:
        source, key = self.landings.sources[wanted.name], (wanted.name, version)
        if key not in self._scans:
            scan = source.scan(None if version is None else Snapshot(DELTA, version))
            refuse_unfit(scan, None)
            self._scans[key] = scan
        return source.at(self._scans[key], (wanted.first, last))

    def _quick(self, scan: Scan, rows: ds.Dataset) -> ds.Dataset:
        """The rows of files, in memory where they are held."""
        if self.held is None or scan.fileset.kind != DELTA:
            return rows
        return self.held.rows(scan.fileset.by_name, rows, scan.names)

    @cached_property
    def _scans(self) -> dict[tuple[str, int | None], Scan]:
        """What lies in landings, by the inputs and the versions that were asked for."""
        return {}

    @cached_property
    def _gathered(self) -> dict[tuple[str, int | None], list[_Gathered]]:
        return {}

    def _gathered_for(self, wanted: WantedRows, last: int, version: int | None) -> pa.Table | None:
        for gathered in self._gathered.get((wanted.name, version), ()):
            if gathered.last == last and wanted in gathered.wanted:
                return gathered.rows
        return None


def _rows_of(scan: Scan) -> ds.Dataset | None:
    """The rows of an input, where Arrow reads them as the language does."""
    rows = scan.fileset.dataset
    return rows if rows is not None and scan.is_exact else None


def _asked_of(wanted: WantedRows) -> Iterator[FieldPath]:
    return (path for alternative in wanted.alternatives for path in alternative)


def _where(scan: Scan, wanted: Sequence[WantedRows], rows: ds.Dataset) -> ds.Expression | None:
    """What holds of the rows that somebody wants."""
    told = [condition_of(one, rows.schema, scan.item) for one in wanted]
    known = [condition for condition in told if condition is not None]
    where = reduce(or_, known) if known and len(known) == len(told) else None
    within = scan.where(rows)
    return within if where is None else where if within is None else within & where


def _size(scan: Scan, rows: ds.Dataset, where: ds.Expression | None) -> int:
    """The bytes of the files that may have rows for which the condition holds."""
    files: Any = rows.get_fragments(filter=where)
    named = scan.fileset.by_name
    return sum(named(file.path).stat().st_size for file in files)


def _refuse_large(size: int, most: ReadLimits) -> None:
    if most.size is not None and size > most.size:
        raise TooLargeError(size)


def condition_of(wanted: WantedRows, schema: pa.Schema, item: ItemType) -> ds.Expression | None:
    """What holds of the rows that are wanted; also of others, where Arrow cannot tell them apart.

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
    found: ds.Expression = asked.isin(pa.array(there, _widest(kind)))
    if len(there) < len(values):
        found |= ds.field(column).is_null()
    return found


def _widest(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else kind


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


def _by_form(counted: pa.Table, columns: Sequence[str]) -> Counter[tuple[Hashable, ...]]:
    found = Counter[tuple[Hashable, ...]]()
    summed = counted.group_by(list(dict.fromkeys(columns))).aggregate([(_COUNT, "sum")])
    for row in summed.to_pylist():
        found[tuple(canonical(row[name]) for name in columns)] += row[f"{_COUNT}_sum"]
    return found


def items_by_tick(rows: pa.Table, item: ItemType) -> Mapping[int, list[Any]]:
    """The items of a batch by their ticks, in the order in which they stand there."""
    found: dict[int, list[Any]] = {}
    items = from_arrow(rows[ITEM].combine_chunks(), item)
    ticks: list[Any] = rows[TICK].to_pylist()
    for tick, value in zip(ticks, items, strict=True):
        found.setdefault(tick, []).append(value)
    return found
