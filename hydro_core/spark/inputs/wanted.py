"""Those rows of a landing that can matter for some values, of many ticks: read as items.

What is asked of columns goes down to the files, whose statistics tell what need not be read. Spark
is needed only where the files are such that its workers have to read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, reduce
from itertools import chain
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.pieces import damage_as_errors
from hydro_core.files.places import DELTA
from hydro_core.files.plain import plain_table
from hydro_core.files.scan import Scan
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.inputs.arrivals.source import Snapshot
from hydro_core.spark.inputs.landed_refusals import refuse_unfit
from hydro_core.spark.inputs.landing import InputBatches, arrow_batch
from hydro_core.spark.store.row_cache import RowCache
from hydro_core.ticks.wanted import (
    CanonicalValues,
    ReadLimits,
    TooLargeError,
    TooManyError,
    WantedRows,
)
from hydro_core.types.arrow import from_arrow
from hydro_core.types.item import FieldPath, ItemType, Row, Tuple
from hydro_core.types.values import ValueProblem, canonical

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
        """What is to be read for some who want rows of one input from the same tick on; None: it
        has none.
        """
        name, first = wanted[0].name, wanted[0].first
        source, key = self.landings.sources[name], (name, version)
        if not source.is_there or (source.file.column is None and first > 0):
            return None
        if key not in self._scans:
            scan = source.scan(None if version is None else Snapshot(DELTA, version))
            refuse_unfit(scan, None)
            self._scans[key] = scan
        scan = source.at(self._scans[key], (first, last))
        rows = scan.fileset.dataset if scan.is_exact else None
        return _Look(scan, rows, None if rows is None else _where(scan, wanted, rows))

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


def _where(scan: Scan, wanted: Sequence[WantedRows], rows: ds.Dataset) -> ds.Expression | None:
    """What holds of the rows that somebody wants."""
    told = [condition_of(one, rows.schema, scan.item) for one in wanted]
    known = [condition for condition in told if condition is not None]
    where = reduce(or_, known) if known and len(known) == len(told) else None
    within = scan.where(rows)
    return within if where is None else where if within is None else within & where


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
