"""The rows of one file, batch by batch: no file is held in memory as a whole.

The batches of a file hold what reading it whole gives, and a file that cannot be read is the same
error. JSON lines end at LF alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, repeat
from typing import Any

import pyarrow as pa

from hydro_core.files.csv_files import csv_rows
from hydro_core.files.kinds import (
    UNREADABLE,
    among,
    is_utf8,
    opened_text,
    refuse_file,
    refuse_parquet,
    refuse_untyped,
)
from hydro_core.files.parquet import files_as_dataset, may_be_finer
from hydro_core.files.row_batch import (
    NOT_UTF8,
    ROWS,
    ArrowRows,
    FileForm,
    JsonRows,
    Reject,
    RowBatch,
    TextLine,
    WrongRows,
    lost_nanoseconds,
    plain_column,
)
from hydro_core.storage.remote import DataPlace
from hydro_core.types.common import merge
from hydro_core.types.item import ItemType
from hydro_core.types.json import infer, parse_json
from hydro_core.types.values import ValueProblem

_CURE = "each line is one JSON object"


def json_rows(file: DataPlace, *, tolerant: bool = False) -> Iterator[JsonRows]:
    """The rows of a file, piece by piece; if `tolerant`, with the lines that are none."""
    try:
        with opened_text(file) as lines:
            rows = (
                (TextLine.of(number, line), *_object_of(line))
                for number, line in enumerate(lines, 1)
                if not line.isspace()
            )
            while piece := list(islice(rows, ROWS)):
                told, objects, rejects = zip(*piece, strict=True)
                wrong = {place: reject for place, reject in enumerate(rejects) if reject}
                if wrong and not tolerant:
                    first = min(wrong)
                    wrong[first].refuse(file, told[first].number)
                names = list(dict.fromkeys(name for row in objects for name in row))
                yield JsonRows(objects, names, {n: one.reason for n, one in wrong.items()}, told)
    except UNREADABLE as problem:
        refuse_file(file, problem)


def surveyed_json(file: DataPlace) -> tuple[ItemType, list[str]]:
    """What the rows of a file have in common, and all of their columns."""
    names = dict[str, None]()
    types: list[ItemType] = []
    try:
        for piece in json_rows(file):
            names |= dict.fromkeys(piece.names)
            types.append(infer(piece.objects))
        return merge(types), list(names)
    except ValueProblem as problem:
        refuse_untyped(file, problem)


def _object_of(line: bytes) -> tuple[dict[str, Any], Reject | None]:
    """The object that a line is, or why it is none."""
    if not is_utf8(line):
        return {}, NOT_UTF8
    try:
        row = parse_json(line.decode())
    except ValueProblem as problem:
        return {}, Reject(f"is not JSON: {problem}", _CURE)
    return (row, None) if isinstance(row, dict) else ({}, Reject("is no JSON object", _CURE))


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
