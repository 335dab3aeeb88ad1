"""The rows of one file, a piece after the other: no file lies in memory as a whole.

The pieces of a file hold what reading it whole gives, and a file that cannot be read is the same
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pyarrow as pa

from hydro_core.files.csv_files import csv_rows
from hydro_core.files.json_lines import json_rows
from hydro_core.files.kinds import among
from hydro_core.files.parquet import files_as_dataset, may_be_finer
from hydro_core.files.plain import WrongRows, lost_nanoseconds, plain_column
from hydro_core.files.row_batch import ROWS, ArrowRows, FileForm, RowBatch
from hydro_core.files.unreadable import UNREADABLE, refuse_file, refuse_parquet
from hydro_core.storage.remote import DataPlace


def pieces(file: DataPlace, form: FileForm) -> Iterator[RowBatch]:
    """The rows of a file; a `DataError` as soon as they cannot be read."""
    try:
        match form.kind:
            case "Parquet":
                yield from _parquet(file, form)
            case "CSV":
                yield from csv_rows(file, form)
            case _:
                yield from json_rows(file, tolerant=form.tolerant)
    except UNREADABLE as problem:
        if form.kind == "Parquet":
            refuse_parquet(file, problem, form.base)
        refuse_file(file, problem)


@contextmanager
def damage_as_errors(files: Sequence[DataPlace], form: FileForm) -> Iterator[None]:
    """Where files that are read together cannot be read: which one it is, and why.

    Raises:
        DataError: the first of the files that cannot be read (code `input`).
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except UNREADABLE:
        for file in files:
            for _ in pieces(file, form):
                pass
        raise


def _parquet(file: DataPlace, form: FileForm) -> Iterator[RowBatch]:
    constants = form.constants.get(file, {})
    data = files_as_dataset([file], None)
    names = [name for name in data.schema.names if name not in constants]
    columns = among(names, form.wanted)
    reading: Any = {"columns": columns, "batch_size": ROWS, "use_threads": False}
    finer: Iterator[Any] = repeat(None)
    if any(may_be_finer(fragment.metadata) for fragment in data.get_fragments()):
        finer = files_as_dataset([file], None, "ns").to_batches(**reading)
    for batch, fine in zip(data.to_batches(**reading), finer):  # noqa: B905 - None has no end
        found: dict[str, Any] = {}
        inexact: dict[str, WrongRows] = {}
        for name in columns:
            found[name], inexact[name] = plain_column(batch.column(name))
            if fine is not None:
                inexact[name] = lost_nanoseconds(batch.column(name), fine.column(name))
            if form.schema is not None and name in form.schema.names:
                # INT96 has no zone, and a Delta table says that its timestamps have one.
                found[name] = found[name].cast(form.schema.field(name).type)
        for name in among(constants, form.wanted):
            found[name] = pa.repeat(constants[name], batch.num_rows)
        rows = pa.table(found) if found else pa.Table.from_batches([batch])
        yield ArrowRows(rows, [*names, *constants], inexact=inexact)
