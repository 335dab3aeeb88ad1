"""The rows of a landing as they arrived: those that did not arrive with their own tick, by hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hydro_core.errors import DataError
from hydro_core.files.scan import Scan
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.inputs.arrivals.deviations import (
    NONE_OFF,
    Deviations,
    OffFile,
    OffRows,
    RowIndices,
)
from hydro_core.spark.inputs.arrivals.row_bags import unmatched
from hydro_core.spark.inputs.arrivals.source import LandingSource
from hydro_core.storage.remote import DataPlace, name_below
from hydro_core.ticks.tick_range import Numbers, count_ticks
from hydro_core.types.ddl import parse_ddl, to_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Rows = pa.Table | DataFrame


def rows_of(source: LandingSource, scan: Scan, wanted: OffRows) -> tuple[pa.Table, Numbers]:
    """Rows (item, t) of their own ticks, and the ticks with which they arrived; only those that are
    there.
    """
    parts: list[pa.Table] = []
    came: list[Numbers] = []
    for first, last in runs(wanted.ticks):
        table = source.rows(scan, files_of(source, scan, first, last), (first, last))
        here, places = _matched(wanted.between(first, last), row_hashes(table))
        parts.append(table.take(places))
        came.append(here.arrived)
    if not parts:
        return source.rows(scan, [], None), np.array([], np.int64)
    return pa.concat_tables(parts), np.concatenate(came)


def _matched(rows: OffRows, hashes: Any) -> tuple[OffRows, RowIndices]:
    """Those of some rows that are among others, and their places there, both by their hashes.

    Equal rows are one to the program, so which of them arrived when is open.
    """
    here = rows.where(~unmatched(rows.hashes, hashes))
    places = np.flatnonzero(~unmatched(hashes, here.hashes))
    by_hash = places[np.argsort(hashes[places], kind="stable")]
    return here.where(np.argsort(here.hashes, kind="stable")), by_hash


def arriving(
    source: LandingSource, scan: Scan, off: Deviations, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows that arrived late with some ticks, as of those, and how many each of them has."""
    first, last = ticks
    late = off.late.where((off.late.arrived >= first) & (off.late.arrived <= last))
    # Which of equal rows is which is told by all that are not where they belong.
    same = off.elsewhere.where(off.elsewhere.at(late.ticks))
    table, came = rows_of(source, scan, same) if len(late) else (None, np.array([], np.int64))
    if table is not None:
        kept = (came >= first) & (came <= last)
        table = table.filter(pa.array(kept)).set_column(1, TICK, pa.array(came[kept]))
        yield table, Counter(came[kept].tolist())
    for tick in sorted({f.arrived for f in off.files if f.state == "late"}):
        if not first <= tick <= last:
            continue
        together: dict[tuple[int, int], list[str]] = {}
        for file in off.files:
            if file.state == "late" and file.arrived == tick:
                together.setdefault((file.first, file.last), []).append(file.path)
        for ends, names in together.items():
            paths = present(source, scan, names)
            if paths:
                rows, counts = source.many(scan, paths, ends)
                yield as_of(rows, tick), Counter({tick: counts.total()})


def in_columns_of(source: LandingSource, scan: Scan, off: Deviations) -> Deviations:
    """What differs of an input, by the columns that are read now: another program may read others.

    What is not there is known by its ticks alone then, and so is what cannot be read as before.
    """
    if off.read_as in ("", source.read_as):
        return off
    before = replace(source, item=parse_ddl(off.item))
    late, waiting = (_hashed_again(source, scan, before, rows) for rows in (off.late, off.waiting))
    lost = Counter(zip(off.late.ticks.tolist(), off.late.arrived.tolist(), strict=True))
    lost -= Counter(zip(late.ticks.tolist(), late.arrived.tolist(), strict=True))
    files = [
        *(OffFile("", t, t, "late", arrived=came, rows={t: n}) for (t, came), n in lost.items()),
        *(
            OffFile("", tick, tick, "gone", accepted=accepted)
            for tick, accepted in set(
                zip(off.gone.ticks.tolist(), off.gone.accepted.tolist(), strict=True)
            )
        ),
    ]
    return Deviations(
        late,
        waiting=waiting,
        files=(*off.files, *files),
        read_as=source.read_as,
        item=to_ddl(source.item),
    )


def _hashed_again(
    source: LandingSource, scan: Scan, before: LandingSource, rows: OffRows
) -> OffRows:
    """Rows by other columns, as far as they are there."""
    parts: list[OffRows] = []
    for first, last in runs(rows.ticks):
        files = files_of(source, scan, first, last)
        try:
            then = before.rows(replace(scan, item=before.item), files, (first, last))
            now = source.rows(scan, files, (first, last))
        except DataError:
            continue
        here, places = _matched(rows.between(first, last), row_hashes(then))
        parts.append(replace(here, hashes=row_hashes(now)[places]))
    return NONE_OFF.plus(*parts)


def as_of(rows: Rows, tick: int) -> Rows:
    if isinstance(rows, pa.Table):
        return rows.set_column(1, TICK, pa.repeat(pa.scalar(tick, pa.int64()), rows.num_rows))
    from pyspark.sql import functions as F

    return rows.select(ITEM, F.lit(tick).cast("long").alias(TICK))


def own_rows(
    source: LandingSource, scan: Scan, off: Deviations, ticks: tuple[int, int]
) -> Iterator[tuple[Rows, Counter[int]]]:
    """The rows of some ticks that are read with these: without what is late or waits."""
    there = off.elsewhere.between(*ticks)
    late = {file.path: file.last for file in off.files if file.state == "late"}
    for first, last in _cut(ticks, list(runs(there.ticks))):
        files = files_of(source, scan, first, last)
        files = [file for file in files if _name(source, file) not in late]
        part = there.between(first, last)
        if not len(part):
            yield source.many(scan, files, (first, last))
            continue
        table = source.rows(scan, files, (first, last))
        kept = table.filter(pa.array(unmatched(row_hashes(table), part.hashes)))
        yield kept, count_ticks(kept[TICK].to_numpy())
    for path, late_to in late.items():
        begin = max(ticks[0], late_to + 1)
        if begin <= ticks[1]:
            # Its rows of later ticks came in time.
            yield source.many(scan, present(source, scan, [path]), (begin, ticks[1]))


def present(source: LandingSource, scan: Scan, names: Sequence[str]) -> list[DataPlace]:
    """Files by their names, as far as they are there."""
    wanted = set(names)
    return [file for file in scan.fileset.files if _name(source, file) in wanted]


def unreported(source: LandingSource, scan: Scan, off: Deviations) -> Counter[int]:
    """How many rows came late of which nobody can tell any more which they are, by their ticks."""
    there = {_name(source, file) for file in scan.fileset.files}
    lost = [f for f in off.files if f.state == "late" and f.path not in there]
    found: Counter[int] = Counter()
    for file in lost:
        found.update(file.rows)
    return found


def files_of(source: LandingSource, scan: Scan, first: int, last: int) -> list[DataPlace]:
    """The files that may have rows of some ticks."""

    def may_hold(file: DataPlace) -> bool:
        low, high = source.bounds(scan, file)
        return (low is None or low <= last) and (high is None or high >= first)

    return list(filter(may_hold, scan.fileset.files))


def runs(ticks: Numbers) -> Iterator[tuple[int, int]]:
    """Ticks that follow each other, by the first and the last of them."""
    known = np.unique(ticks)
    if not len(known):
        return
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        yield int(part[0]), int(part[-1])


def _cut(ticks: tuple[int, int], parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """A range, cut where each of some parts begins and ends."""
    begin = ticks[0]
    for first, last in parts:
        if begin < first:
            yield begin, first - 1
        yield first, last
        begin = last + 1
    if begin <= ticks[1]:
        yield begin, ticks[1]


def _name(source: LandingSource, file: DataPlace) -> str:
    return name_below(file, source.base)
