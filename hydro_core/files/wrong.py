"""Rows of a file that are none of their kind: found one by one, so that the others can be read.

Reading a file as a whole is faster, and says of one row at most why it is none. So a file is read
in this way where it may have wrong rows, and reading it as a whole has found one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv

from hydro_core.files.plain import item_type, plain_table
from hydro_core.files.unreadable import is_utf8, text_of
from hydro_core.storage.remote import DataPlace
from hydro_core.types.values import ValueProblem

IS_NOT_UTF8 = "it is not UTF-8"


@dataclass(frozen=True, slots=True)
class WrongRow:
    """Why a row is none."""

    reason: str


WrongRows = Mapping[int, WrongRow]
"""The wrong ones of some rows, by their places among these."""
NONE_WRONG: WrongRows = {}


@dataclass(frozen=True, slots=True)
class TextLine:
    """A row in a file of text: the line in which it begins, from 1 on, and its text."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a CSV file: its fields, and the lines that it is."""

    fields: Sequence[str]
    line: TextLine

    @property
    def text(self) -> str:
        """Its lines."""
        return self.line.text


def records(file: DataPlace) -> Iterator[Record]:
    """The records of a CSV file, the header among them; lines without any text are none."""
    taken: list[str] = []

    def counted_lines(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    with text_of(file, strict=False) as lines:
        reader, begin = csv.reader(counted_lines(lines)), 1
        for fields in reader:
            if fields:
                yield Record(fields, TextLine(begin, "".join(taken)))
            taken.clear()
            begin = reader.line_num + 1


def lines_of(file: DataPlace, rows: Iterable[int]) -> Mapping[int, TextLine]:
    """The lines that some rows of a CSV file are; rows are counted from 0."""
    wanted = set(rows)
    last = max(wanted, default=-1)
    found: dict[int, TextLine] = {}
    for number, record in enumerate(records(file), -1):
        if number in wanted:
            found[number] = record.line
        if number >= last:
            break
    return found


def legible(text: str) -> str:
    """A text as one that can be stored: what is not UTF-8 in it by its number."""
    text = text.rstrip(_ENDS)
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def wrong_record(record: Record, header: Sequence[str]) -> WrongRow | None:
    """Why a record is no row of a file with this header; None: it is one."""
    if not is_utf8(record.text):
        return WrongRow(IS_NOT_UTF8)
    if len(record.fields) != len(header):
        said = f"it has {len(record.fields)} fields, and the file's first line {len(header)}"
        return WrongRow(said)
    return None


OptionsOf = Callable[[Mapping[str, pa.DataType]], pyarrow.csv.ConvertOptions]
"""How fields are converted to columns of these types."""


def csv_table(
    found: Sequence[Record],
    header: Sequence[str],
    types: Mapping[str, pa.DataType],
    options: OptionsOf,
) -> tuple[pa.Table, WrongRows]:
    """The rows of some records in columns of some types, and those that are none: they are null.

    Args:
        found: the records.
        header: the names of all their columns.
        types: the types of the columns that are wanted.
        options: how fields are converted.
    """
    wrong = {n: why for n, one in enumerate(found) if (why := wrong_record(one, header))}
    right = [n for n in range(len(found)) if n not in wrong]
    text = "".join(f"{found[n].text.rstrip(_ENDS)}\n" for n in right)
    texts = _parsed(_line_of(header) + text, options(dict.fromkeys(types, pa.string())))
    places: list[int | None] = [None] * len(found)
    for place, n in enumerate(right):
        places[n] = place
    whole = texts.take(pa.array(places, pa.int64()))
    columns: dict[str, Any] = {}
    for name, of in types.items():
        columns[name], misfits = _typed(whole.column(name).combine_chunks(), of)
        for n in misfits:
            told = f"column `{name}`: {whole.column(name)[n].as_py()!r} is not of type "
            wrong.setdefault(n, WrongRow(told + str(item_type(of))))
    return pa.table(columns), wrong


_ENDS = "\r\n"
_PARSE = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
_ONE_THREAD = pyarrow.csv.ReadOptions(use_threads=False)


def _parsed(text: str, options: pyarrow.csv.ConvertOptions) -> pa.Table:
    return pyarrow.csv.read_csv(
        io.BytesIO(text.encode()),
        read_options=_ONE_THREAD,
        parse_options=_PARSE,
        convert_options=options,
    )


def _line_of(header: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(header)
    return line.getvalue()


def _typed(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """Fields as values of a type, as Arrow converts those of a file, and those that are none."""
    if pa.types.is_string(of):
        return texts, []
    nothing: Any = pa.array([None], of)
    try:
        return _converted(texts, of), []
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return nothing, [0]
    half = len(texts) // 2
    first, wrong = _typed(texts.slice(0, half), of)
    second, others = _typed(texts.slice(half), of)
    return pa.concat_arrays([first, second]), [*wrong, *(half + n for n in others)]


def _converted(texts: Any, of: pa.DataType) -> Any:
    fields = ("" if t is None else '"' + t.replace('"', '""') + '"' for t in texts.to_pylist())
    options = pyarrow.csv.ConvertOptions(
        column_types={"x": of},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    found = _parsed("x\n" + "".join(f"{field}\n" for field in fields), options)
    return found.column("x").combine_chunks()


def plain_rows(table: pa.Table) -> tuple[pa.Table, WrongRows]:
    """The rows in columns of our types, and those with a value that none of them holds: null."""
    try:
        return plain_table(table), NONE_WRONG
    except ValueProblem as problem:
        if table.num_rows == 1:
            return _without(table), {0: WrongRow(str(problem))}
    half = table.num_rows // 2
    first, wrong = plain_rows(table.slice(0, half))
    second, others = plain_rows(table.slice(half))
    both = pa.concat_tables([first, second])
    return both, {**wrong, **{half + n: why for n, why in others.items()}}


def _without(row: pa.Table) -> pa.Table:
    """A row without the values that no type of ours holds."""
    columns: dict[str, Any] = {}
    for name in row.column_names:
        try:
            columns[name] = plain_table(row.select([name])).column(name)
        except ValueProblem:
            empty = plain_table(row.select([name]).slice(0, 0))
            columns[name] = pa.array([None], empty.schema.field(name).type)
    return pa.table(columns)
