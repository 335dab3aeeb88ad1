"""CSV: its header, its fields as columns of types, and what is wrong with its rows.

Arrow reads a file as a whole, which is fast, and says of one row at most why it is none. So a file
that may have wrong rows is read by Arrow up to the first piece that has one, then row by row.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from hydro_core.files.kinds import ReadNames, among
from hydro_core.files.plain import WrongRows, in_types_of, item_type, plain_table, plain_type
from hydro_core.files.row_batch import ROWS, ArrowRows, FileForm, TextLine
from hydro_core.files.unreadable import (
    IS_NOT_UTF8,
    UNREADABLE,
    is_utf8,
    refuse,
    refuse_not_utf8,
    refuse_text,
    text_of,
)
from hydro_core.storage.arrow import opened
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import BINARY, BOOLEAN, FLOATS, INTEGERS, Decimal, ItemType, Scalar
from hydro_core.types.values import ValueProblem

_NUMBERS = frozenset(Scalar(name) for name in INTEGERS + FLOATS)
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
"""The types of fields in the order in which they are tried."""
_LOOSER: dict[pa.DataType, pa.DataType] = dict(pairwise(_CHAIN))
_MISFIT = re.compile(
    r"In CSV column #(?P<column>\d+):.*CSV conversion error to (?P<type>[^:]+)"
    r"(: invalid value '(?P<value>.*)')?"
)
"""What Arrow says of a field that is no value of its column's type."""
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
"""What Arrow says of a row with another number of fields than the header has."""
_ENDS = "\r\n"
_PARSE = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
# One thread knows the number of a row that has too many fields, or too few.
_ONE_THREAD = pyarrow.csv.ReadOptions(use_threads=False)


def header_of(file: DataPlace, wanted: ReadNames) -> list[str]:
    """The names of the columns of a file, each of which that is read stands there once."""
    try:
        with text_of(file, strict=False) as lines:
            header = next(csv.reader(lines), [])
    except UNREADABLE as problem:
        refuse_text(file, problem)
    if not all(map(is_utf8, header)):
        refuse_not_utf8(file, 1)
    twice = [name for name, count in Counter(among(header, wanted)).items() if count > 1]
    if twice:
        refuse(
            f"`{file}` has several columns `{twice[0]}`",
            "give each a name of its own in the file's first line",
        )
    return header


def csv_type(name: str, item: ItemType) -> pa.DataType:
    """How a column is read: dates, timestamps and decimals as text, of which they are made."""
    if not isinstance(item, Scalar | Decimal) or item == BINARY:
        refuse(
            f"the column `{name}` is of type {item}, which CSV has no form for",
            "use Parquet or JSON lines",
        )
    return arrow_type(item) if item == BOOLEAN or item in _NUMBERS else pa.string()


def csv_rows(file: DataPlace, form: FileForm) -> Iterator[ArrowRows]:
    """The rows of a file, piece by piece; those that are none, too, if the form is tolerant."""
    done = 0
    try:
        for piece in _by_arrow(file, form):
            yield piece
            done += len(piece)
    except UNREADABLE as problem:
        # What Arrow cannot read, and no row is to blame for, is told as ever.
        if not form.tolerant or isinstance(problem, OSError | EOFError):
            raise
        yield from _by_records(file, form, done)


def surveyed_csv(file: DataPlace, form: FileForm) -> pa.Schema:
    """The wanted columns of a file and their types: those that all of its rows have."""
    header = header_of(file, form.wanted)
    declared = {name: csv_type(name, t) for name, t in form.declared.items() if name in header}
    columns = among(header, form.wanted)
    found: dict[str, pa.DataType] = dict(declared)
    missing = [name for name in columns if name not in declared]
    try:
        while missing and not _all_agree(file, header, missing, found):
            pass
    except UNREADABLE as problem:
        refuse_csv(file, problem)
    return pa.schema([(name, plain_type(found[name])) for name in columns])


def refuse_csv(file: DataPlace, problem: Exception) -> NoReturn:
    """Refuses a file; a field that does not fit is told by its line and its column's name."""
    ragged = _RAGGED.search(str(problem))
    if ragged is not None:
        number, expected, got = ragged.groups()
        message = f"`{file}`, line {number} has {got} fields, and the first line {expected}"
        refuse(message, "mend the line; a field that holds a comma or a line's end is quoted")
    found = _MISFIT.search(str(problem))
    if found is None or found["value"] is None:
        refuse_text(file, problem)
    place = int(found["column"])
    with text_of(file) as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        bad = (row for row in rows if len(row) > place and row[place] == found["value"])
        line = f"line {rows.line_num}, " if next(bad, None) is not None else ""
    # Arrow counts the columns that it reads; all of the file are read by their places.
    column = header[place] if place < len(header) else f"#{place}"
    alias: Any = found["type"].partition("[")[0]
    of = item_type(pa.type_for_alias(alias))
    refuse(
        f"`{file}`, {line}column `{column}`: {found['value']!r} is not of type {of}",
        "mend the file, or declare the type that the column has",
    )


def lines_of(file: DataPlace, rows: Iterable[int]) -> Mapping[int, TextLine]:
    """The lines that some rows of a file are; rows are counted from 0."""
    wanted = set(rows)
    numbered = enumerate(_records(file), -1)
    upto = islice(numbered, max(wanted, default=-1) + 2)
    return {number: record.line for number, record in upto if number in wanted}


def _options(
    types: Mapping[str, pa.DataType], columns: list[str] | None = None
) -> pyarrow.csv.ConvertOptions:
    """How the fields are read; an empty field is null, a quoted one an empty text."""
    return pyarrow.csv.ConvertOptions(
        column_types=dict(types),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        # Nothing is read in vain: what nobody wants may be of any kind.
        include_columns=columns,
    )


def _opened(file: DataPlace, options: pyarrow.csv.ConvertOptions) -> pyarrow.csv.CSVStreamingReader:
    return pyarrow.csv.open_csv(opened(file), read_options=_ONE_THREAD, convert_options=options)


def _by_arrow(file: DataPlace, form: FileForm) -> Iterator[ArrowRows]:
    header = header_of(file, form.wanted)
    types = {field.name: field.type for field in form.schema or () if field.name in header}
    for batch in _opened(file, _options(types, among(header, form.wanted))):
        table = plain_table(pa.Table.from_batches([batch]))
        yield ArrowRows(in_types_of(table, form.schema), header)


def _all_agree(
    file: DataPlace, header: list[str], missing: list[str], found: dict[str, pa.DataType]
) -> bool:
    """Whether all rows have the types that are `found` of the columns; else a looser one is."""
    options = _options({n: t for n, t in found.items() if n in missing}, missing)
    try:
        with _opened(file, options) as rows:
            # The first rows say what may be; all rows must agree.
            if any(pa.types.is_binary(field.type) for field in rows.schema):
                refuse_text(file, ValueProblem("not UTF8"))
            found |= {f.name: f.type for f in rows.schema if f.name not in found}
            if any(found[f.name] != f.type for f in rows.schema):
                return False
            for _ in rows:
                pass
    except pa.ArrowInvalid as problem:
        misfit = _MISFIT.search(str(problem))
        name = header[int(misfit["column"])] if misfit else ""
        if found.get(name) not in _LOOSER:
            raise
        found[name] = _LOOSER[found[name]]
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of a file: its fields, and the lines that it is."""

    fields: Sequence[str]
    line: TextLine

    def why_none(self, header: Sequence[str]) -> str | None:
        """Why it is no row of a file with this header; None: it is one."""
        if not is_utf8(self.line.text):
            return IS_NOT_UTF8
        if len(self.fields) != len(header):
            return f"it has {len(self.fields)} fields, and the file's first line {len(header)}"
        return None


def _records(file: DataPlace) -> Iterator[_Record]:
    """The records of a file, the header among them; lines without any text are none."""
    taken: list[str] = []

    def counted_lines(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    with text_of(file, strict=False) as lines:
        reader, begin = csv.reader(counted_lines(lines)), 1
        for fields in reader:
            if fields:
                yield _Record(fields, TextLine(begin, "".join(taken)))
            taken.clear()
            begin = reader.line_num + 1


def _by_records(file: DataPlace, form: FileForm, begin: int) -> Iterator[ArrowRows]:
    """The rows of a file from one on, record by record."""
    header = header_of(file, form.wanted)
    found = islice(_records(file), 1 + begin, None)
    known = {field.name: field.type for field in form.schema or ()}
    types = {name: known.get(name, pa.string()) for name in among(header, form.wanted)}
    while some := list(islice(found, ROWS)):
        table, wrong = _table_of(some, header, types)
        table = in_types_of(plain_table(table), form.schema)
        yield ArrowRows(table, header, wrong, [record.line for record in some])


def _table_of(
    found: Sequence[_Record], header: Sequence[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.Table, WrongRows]:
    """The rows of some records in columns of some types, and those that are none: they are null."""
    wrong = {n: why for n, one in enumerate(found) if (why := one.why_none(header))}
    right = [n for n in range(len(found)) if n not in wrong]
    first = io.StringIO()
    csv.writer(first, lineterminator="\n").writerow(header)
    text = "".join(f"{found[n].line.text.rstrip(_ENDS)}\n" for n in right)
    options = _options(dict.fromkeys(types, pa.string()), list(types))
    places: list[int | None] = [None] * len(found)
    for place, n in enumerate(right):
        places[n] = place
    whole = _parsed(first.getvalue() + text, options).take(pa.array(places, pa.int64()))
    columns: dict[str, Any] = {}
    for name, of in types.items():
        columns[name], misfits = _typed(whole.column(name).combine_chunks(), of)
        for n in misfits:
            value = whole.column(name)[n].as_py()
            wrong.setdefault(n, f"column `{name}`: {value!r} is not of type {item_type(of)}")
    return pa.table(columns), wrong


def _parsed(text: str, options: pyarrow.csv.ConvertOptions) -> pa.Table:
    return pyarrow.csv.read_csv(
        io.BytesIO(text.encode()),
        read_options=_ONE_THREAD,
        parse_options=_PARSE,
        convert_options=options,
    )


def _typed(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """Fields as values of a type, as Arrow converts those of a file, and those that are none."""
    if pa.types.is_string(of):
        return texts, []
    fields = ("" if t is None else '"' + t.replace('"', '""') + '"' for t in texts.to_pylist())
    try:
        found = _parsed("x\n" + "".join(f"{field}\n" for field in fields), _options({"x": of}))
        return found.column("x").combine_chunks(), []
    except pa.ArrowInvalid:
        if len(texts) == 1:
            nothing: Any = pa.array([None], of)
            return nothing, [0]
    half = len(texts) // 2
    first, wrong = _typed(texts.slice(0, half), of)
    second, others = _typed(texts.slice(half), of)
    return pa.concat_arrays([first, second]), [*wrong, *(half + n for n in others)]
