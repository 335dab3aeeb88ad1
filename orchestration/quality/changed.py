"""What ticks that were computed again change of a table: rows added and removed, as bags.

Few rows are compared by their hashes: a number for each row of a range, of a log of changes three
for each of its rows. Of more, executors tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.store.schema import TableSpec
    from hydro_core.spark.store.store import Store

    Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """How many rows are there that were not, and were there that are not.

    Each tick has rows of its own; a log has at every tick those that are there.
    """

    added: int
    removed: int

    def __str__(self) -> str:
        if self == ChangedRows(0, 0):
            return "unchanged"
        return f"{self.added:,} row(s) added, {self.removed:,} removed"

    @property
    def metadata(self) -> dict[str, int]:
        """Metadata for the UI."""
        return {"rows added": self.added, "rows removed": self.removed}


def changed(
    before: Store,
    after: Store,
    spec: TableSpec,
    parts: Iterable[range],
    session: Callable[[], Any],
) -> ChangedRows:
    """How the rows of a table differ between two stores, over consecutive ranges of ticks.

    `session` gives the Spark that is asked of more rows than the stores hold.
    """
    found = list(parts)
    first, last = found[0].start, found[-1].stop - 1
    most = max(store.rows_within(spec.name, first, last) for store in (before, after))
    if most > after.held_rows and not spec.has_unknown:
        return _by_executors(before, after, spec, (first, last), session())
    if spec.is_log:
        return _of_logs(before, after, spec, found)
    return sum_of(
        _difference(*(_stored(store, spec, ticks) for store in (before, after))) for ticks in found
    )


def changed_as_of(
    pipelines: tuple[Pipeline, Pipeline], output: str, tick: int, columns: Sequence[str]
) -> ChangedRows:
    """How an output of two pipelines differs as of a tick, in some columns, which both have."""
    from hydro_core.spark.pipeline.rework import differing_at, rows_at

    before, after = pipelines
    told = differing_at(before, after, output, tick, columns)
    if told is not None:
        return ChangedRows(*told)
    rows = rows_at(before, output, tick), after.output(output, tick)
    return _difference(*(_hashed(one.select(columns)) for one in rows))


def _by_executors(
    before: Store, after: Store, spec: TableSpec, ticks: tuple[int, int], spark: Any
) -> ChangedRows:
    from hydro_core.spark.store.outputs.changes import differing, differing_logs

    frames = before.frame(spark, spec.name, *ticks), after.frame(spark, spec.name, *ticks)
    names = [name for name, _ in spec.items]
    if spec.is_log:
        columns = names, spec.tick, spec.count_column
        return ChangedRows(*differing_logs(frames, columns, ticks[1] + 1))
    return ChangedRows(*differing(frames, [spec.tick, *names]))


def sum_of(found: Iterable[ChangedRows]) -> ChangedRows:
    all_ = list(found)
    return ChangedRows(sum(one.added for one in all_), sum(one.removed for one in all_))


def _stored(store: Store, spec: TableSpec, ticks: range) -> Numbers:
    pieces = store.pieces(spec.name, ticks.start, ticks.stop - 1)
    return np.concatenate([_hashed(piece, spec.place) for piece in pieces])


def _hashed(rows: pa.Table, *without: str | None) -> Numbers:
    from hydro_core.spark.frames.row_hashes import row_hashes

    # Where one row comes, all after it have other positions: they are the same rows.
    return row_hashes(rows.select([name for name in rows.column_names if name not in without]))


def _difference(before: Numbers, after: Numbers) -> ChangedRows:
    _, ids = np.unique(np.concatenate([before, after]), return_inverse=True)
    counts = np.bincount(ids[len(before) :], minlength=ids.max(initial=-1) + 1)
    counts -= np.bincount(ids[: len(before)], minlength=len(counts))
    return ChangedRows(int(counts[counts > 0].sum()), int(-counts[counts < 0].sum()))


def _of_logs(before: Store, after: Store, spec: TableSpec, parts: list[range]) -> ChangedRows:
    """Of each item the changes are added up from tick to tick: what is left holds until the next
    change.
    """
    read = [
        _changes(store, spec, ticks, sign) for store, sign in ((before, -1), (after, 1))
        for ticks in parts
    ]  # fmt: skip
    items, ticks, counts = (np.concatenate(found) for found in zip(*read, strict=True))
    order = np.lexsort((ticks, items))
    items, ticks, counts = items[order], ticks[order], counts[order]
    is_last = np.append(items[1:] != items[:-1], True)[: len(items)]
    until = np.where(is_last, parts[-1].stop, np.append(ticks[1:], 0)[: len(items)])
    there = np.cumsum(counts)
    # Where an item begins, what those before it have left is taken away.
    starts = np.flatnonzero(np.append(True, is_last[:-1])[: len(items)])
    left = np.repeat(there[starts] - counts[starts], np.diff(np.append(starts, len(items))))
    lasting = (there - left) * (until - ticks)
    return ChangedRows(int(lasting[lasting > 0].sum()), int(-lasting[lasting < 0].sum()))


def _changes(
    store: Store, spec: TableSpec, ticks: range, sign: int
) -> tuple[Numbers, Numbers, Numbers]:
    found = []
    for rows in store.pieces(spec.name, ticks.start, ticks.stop - 1):
        counts = rows[spec.count_column].to_numpy() * sign
        items = _hashed(rows, spec.tick, spec.count_column, spec.place)
        found.append((items, rows[spec.tick].to_numpy(), counts))
    items, at, counts = (np.concatenate(each) for each in zip(*found, strict=True))
    return items, at, counts


@dataclass(frozen=True, slots=True)
class RowsRead:
    """How many rows of an input were read, and how many before; None: that is not known."""

    rows: int
    before: int | None

    def __str__(self) -> str:
        before = "" if self.before is None else f", {self.before:,} before"
        return f"{self.rows:,} row(s) read{before}"


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """Ticks that were computed again by one commit."""

    ticks: str
    """The ticks, in words."""
    commit: int
    """The commit's number in the ledger."""
    inputs: Mapping[str, RowsRead]
    outputs: Mapping[str, ChangedRows]
    """How the rows of all these ticks differ from those that had been published."""

    def __str__(self) -> str:
        return f"commit {self.commit} computed {self.ticks} again from what was landed by then"

    @property
    def lines(self) -> list[str]:
        """A line for each input and output."""
        told = (*self.inputs.items(), *self.outputs.items())
        width = max((len(name) for name, _ in told), default=0)
        return [f"  {name:<{width}}  {what}" for name, what in told]

    def metadata_of(self, asset: str) -> dict[str, Any]:
        """Metadata for the UI on one asset."""
        changed = self.outputs.get(asset)
        return {"correction": str(self), **(changed.metadata if changed else {})}
