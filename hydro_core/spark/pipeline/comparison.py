"""What another program would make of the past, computed while ticks run: nothing of it stays.

It reads the tables as one commit left them, whose files stay for a while whatever is committed
since, and writes to a directory of its own. So it neither needs the right to write nor takes it
from anybody.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from hydro_core.machine.locks import lock_at
from hydro_core.plan.planner import Bootstrap, WantedTables
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.publishing import rows_now
from hydro_core.spark.pipeline.rework import StagedPast
from hydro_core.spark.pipeline.start_rework import staging_for
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.outputs.differing import BagDifference, differing
from hydro_core.spark.store.snapshot_frame import frame_as_of
from hydro_core.storage.places import entries_in, remove_tree
from hydro_core.storage.remote import DataPlace

COMPARED = "_compared"
"""The directory, within a pipeline's, in which programs are compared, each in one of its own."""

_RUNNING = "_running"


@contextmanager
def comparison(
    serving: Pipeline, target: Pipeline, made_by: Bootstrap, wanted: WantedTables, now: Commit
) -> Iterator[StagedPast]:
    """The outputs that another program wants, to be made beside; they are gone in the end.

    Args:
        serving: the pipeline of the program that serves; it is only read.
        target: that of the other program, in the same directory.
        made_by: what makes the tables, run from tick 0 on.
        wanted: which tables are made.
        now: the commit as of which the past is read.

    Raises:
        DataError: the tables are not there any more (code `state`).
    """
    serving.refuse_another_program(now)
    serving.store.check(now)
    with _scratch(serving.directory / COMPARED) as directory:
        yield staging_for(serving, target, (made_by, wanted, {}), now, directory)


def rows_at(pipeline: Pipeline, output: str, tick: int) -> pa.Table:
    """An output as of a tick, by the tables as they were looked at last."""
    return rows_now(pipeline.store, pipeline.output_tables[output], tick)


def differing_at(
    before: Pipeline, after: Pipeline, output: str, tick: int, columns: Sequence[str]
) -> BagDifference | None:
    """By how many rows an output of two pipelines differs as of a tick, told by executors.

    None where the rows are so few that this process holds them.

    Args:
        before: the one, whose tables are as they were looked at last.
        after: the other.
        output: the name in both.
        tick: a committed one of both.
        columns: those that are compared.
    """
    specs = [pipeline.output_tables[output] for pipeline in (before, after)]
    each = list(zip((before, after), specs, strict=True))
    most = max(
        p.store.rows_within(spec.name, tick if spec.kind is Kind.E else 0, tick) for p, spec in each
    )
    if most <= after.store.held_rows or any(spec.has_unknown for spec in specs):
        return None
    first, second = (frame_as_of(p.store, after.spark, spec, tick) for p, spec in each)
    return differing((first, second), columns)


@contextmanager
def _scratch(place: DataPlace) -> Iterator[DataPlace]:
    """A directory for this process; those of processes that were killed are removed."""
    for left in entries_in(place):
        if not lock_at(left / _RUNNING).is_held:
            remove_tree(left, ignore_errors=True)
    directory = place / uuid.uuid4().hex[:8]
    lock = lock_at(directory / _RUNNING)
    lock.take()
    try:
        yield directory / "tables"
    finally:
        lock.release()
        remove_tree(directory, ignore_errors=True)
