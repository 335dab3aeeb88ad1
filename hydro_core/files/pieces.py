"""The rows of one file, a piece after the other: no file lies in memory as a whole.

The pieces of a file hold what reading it whole gives, and a file that cannot be read is the same
error. Types that only all rows of all files tell are found first, by a survey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.csv

from hydro_core.files.kinds import (
    JSON_LINES,
    Declared,
    ReadNames,
    among,
    csv_options,
    csv_type,
    header_of,
    json_lines,
    parquet_file,
)
from hydro_core.files.plain import plain_table, plain_type
from hydro_core.files.row_batch import ArrowRows, JsonRows, RowBatch
from hydro_core.files.unreadable import (
    MISFIT,
    UNREADABLE,
    refuse_bytes,
    refuse_csv,
    refuse_file,
    refuse_parquet,
    refuse_untyped,
)
from hydro_core.files.wrong import NONE_WRONG, csv_table, plain_rows, records
from hydro_core.storage.arrow import opened
from hydro_core.storage.remote import DataPlace
from hydro_core.types.common import merge
from hydro_core.types.item import ItemType
from hydro_core.types.json import infer
from hydro_core.types.quarantine import REASON
from hydro_core.types.values import ValueProblem

ROWS = 10_000
"""The rows of a piece: a few MiB of usual ones."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """How the files of an input are read."""

    kind: str
    base: DataPlace
    declared: Declared
    wanted: ReadNames
    schema: pa.Schema | None = None
    """The columns as all files together have them; None: of JSON lines, or not known yet."""
    constants: Mapping[DataPlace, Mapping[str, Any]] = field(default_factory=dict)
    """Columns that a file does not hold, since they are the same in all of its rows."""

    @property
    def tolerant(self) -> bool:
        """Whether wrong rows are read, too: see `hydro_core.types.quarantine`."""
        return REASON in self.declared


def pieces(file: DataPlace, form: FileForm) -> Iterator[RowBatch]:
    """The rows of a file; a `DataError` as soon as they cannot be read."""
    readers: Mapping[str, Callable[[], Iterator[RowBatch]]] = {
        "Parquet": lambda: _parquet(file, form),
        "CSV": lambda: _tolerant_csv(file, form) if form.tolerant else _csv(file, form),
        JSON_LINES: lambda: _json(file, form.tolerant),
    }
    try:
        yield from readers[form.kind]()
    except UNREADABLE as problem:
        if form.kind == "CSV":
            refuse_csv(file, problem)
        if form.kind == "Parquet":
            refuse_parquet(file, problem, form.base)
        refuse_file(file, problem)


@contextmanager
def damage_told(files: Sequence[DataPlace], form: FileForm) -> Iterator[None]:
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
    data = parquet_file(file, form.base)
    names = [name for name in data.schema.names if name not in constants]
    columns = among(names, form.wanted)
    for batch in data.to_batches(columns=columns, batch_size=ROWS, use_threads=False):
        rows = pa.Table.from_batches([batch])
        for name in among(constants, form.wanted):
            rows = rows.append_column(name, pa.repeat(constants[name], batch.num_rows))
        plain, wrong = plain_rows(rows) if form.tolerant else (plain_table(rows), NONE_WRONG)
        yield ArrowRows(_as_all(plain, form.schema), [*names, *constants], wrong)


def _csv(file: DataPlace, form: FileForm) -> Iterator[RowBatch]:
    header = header_of(file, form.wanted)
    types = {field.name: field.type for field in form.schema or ()}
    options = csv_options(
        {name: types[name] for name in header if name in types},
        among(header, form.wanted) if form.wanted else None,
    )
    for batch in _opened_csv(file, options):
        table = plain_table(pa.Table.from_batches([batch]))
        yield ArrowRows(_as_all(table, form.schema), header)


def _tolerant_csv(file: DataPlace, form: FileForm) -> Iterator[RowBatch]:
    """The same with the rows that are none: by Arrow up to the first piece that has one."""
    done = 0
    try:
        for piece in _csv(file, form):
            yield piece
            done += len(piece)
    except UNREADABLE as problem:
        # What Arrow cannot read, and no row is to blame for, is told as ever.
        if isinstance(problem, OSError | EOFError):
            raise
        yield from _by_records(file, form, done)


def _by_records(file: DataPlace, form: FileForm, begin: int) -> Iterator[RowBatch]:
    """The rows of a CSV file from one on, record by record."""
    header = header_of(file, form.wanted)
    found = islice(records(file), 1 + begin, None)
    names = among(header, form.wanted) if form.wanted else header
    known = {field.name: field.type for field in form.schema or ()}
    types = {name: known.get(name, pa.string()) for name in names}
    while some := list(islice(found, ROWS)):
        table, wrong = csv_table(some, header, types, lambda of: csv_options(of, names))
        table = _as_all(plain_table(table), form.schema)
        yield ArrowRows(table, header, wrong, [record.line for record in some])


def _opened_csv(
    file: DataPlace, options: pyarrow.csv.ConvertOptions
) -> pyarrow.csv.CSVStreamingReader:
    # One thread knows the number of a row that has too many fields, or too few.
    one_thread = pyarrow.csv.ReadOptions(use_threads=False)
    return pyarrow.csv.open_csv(opened(file), read_options=one_thread, convert_options=options)


def _as_all(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """The columns in the types that they have in all files; what a file lacks is null."""
    if schema is None or table.schema.equals(schema):
        return table
    for place, one in enumerate(table.schema):
        wanted = schema.field(one.name).type if one.name in schema.names else one.type
        if pa.types.is_nested(wanted) or pa.types.is_timestamp(wanted):
            # INT96 has no zone, and a Delta table says that its timestamps have one.
            table = table.set_column(place, one.name, table.column(place).cast(wanted))
    return pa.concat_tables([schema.empty_table(), table], promote_options="permissive")


def _json(file: DataPlace, tolerant: bool = False) -> Iterator[JsonRows]:
    lines = json_lines(file, tolerant=tolerant)
    while piece := list(islice(lines, ROWS)):
        wrong = {n: line.wrong for n, line in enumerate(piece) if line.wrong is not None}
        yield JsonRows([line.object for line in piece], wrong, [line.line for line in piece])


def surveyed_csv(file: DataPlace, form: FileForm) -> pa.Schema:
    """The wanted columns of a CSV file and their types: those that all of its rows have."""
    try:
        return _csv_schema(file, form)
    except UNREADABLE as problem:
        refuse_csv(file, problem)


def _csv_schema(file: DataPlace, form: FileForm) -> pa.Schema:
    header = header_of(file, form.wanted)
    declared = {name: csv_type(name, t) for name, t in form.declared.items() if name in header}
    columns = among(header, form.wanted) if form.wanted else header
    found: dict[str, pa.DataType] = dict(declared)
    missing = [name for name in columns if name not in declared]
    while missing:
        options = csv_options({n: t for n, t in found.items() if n in missing}, missing)
        try:
            with _opened_csv(file, options) as rows:
                # The first rows say what may be; all rows must agree.
                refuse_bytes(file, rows.schema)
                found |= {f.name: f.type for f in rows.schema if f.name not in found}
                if any(found[f.name] != f.type for f in rows.schema):
                    continue
                for _ in rows:
                    pass
            break
        except pa.ArrowInvalid as problem:
            misfit = MISFIT.search(str(problem))
            name = header[int(misfit["column"])] if misfit else ""
            if found.get(name) not in _LOOSER:
                raise
            found[name] = _LOOSER[found[name]]
    return pa.schema([(name, plain_type(found[name])) for name in columns])


_CHAIN: tuple[pa.DataType, ...] = (
    pa.null(),
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.float64(),
    pa.string(),
)
"""The types of CSV fields in the order in which they are tried."""
_LOOSER: dict[pa.DataType, pa.DataType] = dict(pairwise(_CHAIN))


def surveyed_json(file: DataPlace) -> tuple[ItemType, list[str]]:
    """What the rows of a file of JSON lines have in common, and all of their columns."""
    names = dict[str, None]()
    types: list[ItemType] = []
    try:
        for piece in _json(file):
            names |= dict.fromkeys(piece.names)
            types.append(infer(piece.objects))
        return merge(types), list(names)
    except ValueProblem as problem:
        refuse_untyped(file, problem)
