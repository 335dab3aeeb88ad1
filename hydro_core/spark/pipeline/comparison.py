"""What another program would make of the past, computed while ticks run: nothing of it stays.

It reads the tables as one commit left them, whose files stay for a while whatever is committed
since, and writes to a directory of its own. So it neither needs the right to write nor takes it
from anybody.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hydro_core.machine.locks import lock_at
from hydro_core.plan.bootstrap import Bootstrap, WantedTables
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import Rework, staging_for
from hydro_core.spark.pipeline.tables import refuse_another_program
from hydro_core.spark.store.ledger import Commit
from hydro_core.storage.places import entries_in, remove_tree
from hydro_core.storage.remote import DataPlace

COMPARED = "_compared"
"""The directory, within a pipeline's, in which programs are compared, each in one of its own."""

_RUNNING = "_running"


@contextmanager
def comparison(
    serving: Pipeline, target: Pipeline, made_by: Bootstrap, wanted: WantedTables, now: Commit
) -> Iterator[Rework]:
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
    refuse_another_program(serving.directory, serving.fingerprint, serving.tables, now)
    serving.store.check(now)
    with _scratch(serving.directory / COMPARED) as directory:
        yield staging_for(serving, target, (made_by, wanted, {}), now, directory)


def rows_at(pipeline: Pipeline, output: str, tick: int) -> pa.Table:
    """An output as of a tick, by the tables as they were looked at last."""
    spec = pipeline.output_tables[output]
    return pipeline.store.rows(spec.name, 0 if spec.kind is Kind.H else tick, tick)


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
