"""CSV files: their records, the records' columns by type, and rejects as data."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hydro_core.files.kinds import (
    UNREADABLE,
    ReadNames,
    among,
    is_utf8,
    opened_text,
    refuse,
    refuse_file,
)
from hydro_core.files.row_batch import (
    NOT_UTF8,
    ArrowRows,
    FileForm,
    Reject,
    TextLine,
    item_type,
    plain_type,
)
from hydro_core.settings import MEBIBYTE
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import BINARY, BOOLEAN, FLOATS, INTEGERS, Decimal, ItemType, Scalar
from hydro_core.types.values import ValueProblem, describe

# The records of a CSV file: where each begins and ends, in which line, and which are none.
#
# Blocks of whole records go to Arrow, so a quoted line end never meets the end of a block, and a
# record may be longer than one. A quote opens a field only at its begin, as in RFC 4180;
# elsewhere it is part of the text. Text behind a closing quote, and a quote that is never closed,
# are refused: whatever such a record was meant to say, its fields are not known.
#
# The law: the records of a file do not depend on how it is cut into blocks.


BLOCK = MEBIBYTE
_FIRST = 64 * 1024
"""What is read of a file first: its header may be all that is wanted."""
LONGEST = 256 * MEBIBYTE
"""A record that takes more than this is refused: a quote that is not closed, most likely."""
_QUOTED = rb'"(?:[^"]++|"")*+"'
_FIELD = rb"(?:%b([^,\r\n]++)?|(?!\")[^,\r\n]*+)" % _QUOTED
_RECORD = re.compile(rb"%b(?:,%b)*+(?:\r\n|\r|\n)" % (_FIELD, _FIELD))
"""A record with its line end; its groups match where text stands behind a closing quote."""
_BEFORE_OPEN = re.compile(rb"(?:%b,)*+" % _FIELD)
"""What stands before the field that a record breaks off in."""
_ALL = re.compile(rb"(?s).+")
_CURE = "mend the line; a quote within a quoted field is written twice"
_BEHIND = Reject("has text behind a closing quote", _CURE)
_QUOTE, _LF, _CR, _COMMA = b'"\n\r,'

_EDGES = np.isin(np.arange(256), (_COMMA, _LF, _CR, _QUOTE))
"""The bytes beside the quotes of a quoted field, by number."""


@dataclass(frozen=True)
class Records:
    """A block of whole records, each of which ends with a line end but one whose quote is open."""

    content: bytes
    line: int
    """The line in which the block begins."""
    is_regular: bool = True
    """Whether quotes are known to stand only where fields begin and end, or twice."""
    is_closed: bool = True

    @cached_property
    def _each(self) -> list[tuple[int, re.Match[bytes]]]:
        """The records and the lines in which they begin; blank lines are none."""
        line, found = self.line, []
        for record in _records(self.content) if self.is_closed else _ALL.finditer(self.content):
            if record.group() not in (b"\n", b"\r", b"\r\n"):
                found.append((line, record))
            line += _lines_in(record.group())
        return found

    @cached_property
    def wrong(self) -> Mapping[int, Reject]:
        """The records that are none, by their places."""
        if not self.is_closed:
            return {0: self._open()}
        found = dict[int, Reject]()
        if not self.is_regular:
            found = {n: _BEHIND for n, (_, one) in enumerate(self._each) if one.lastindex}
        if not is_utf8(self.content):
            found |= {n: NOT_UTF8 for n in range(len(self)) if not is_utf8(self.record(n))}
        return found

    def __len__(self) -> int:
        return len(self._each)

    def __getitem__(self, place: int) -> TextLine:
        return TextLine.of(self._each[place][0], self.record(place))

    def record(self, place: int) -> bytes:
        """The bytes of a record, with its line end."""
        return self._each[place][1].group()

    def right(self) -> bytes:
        """The content without the records that are none."""
        if not self.wrong:
            return self.content
        return b"".join(self.record(n) for n in range(len(self)) if n not in self.wrong)

    def behind(self, place: int) -> Records:
        """The block behind a record."""
        line, record = self._each[place]
        rest = self.content[record.end() :]
        return Records(rest, line + _lines_in(record.group()), self.is_regular)

    def _open(self) -> Reject:
        before: Any = _BEFORE_OPEN.match(self.content)
        line = self.line + _lines_in(before.group())
        return Reject(f"has a quote, opened in line {line}, that is never closed", _CURE)


def records_of(file: DataPlace) -> Generator[tuple[list[str], Records]]:
    """The records of a file, block by block, each beside the names of the columns; once at least.

    Raises:
        DataError: the first line is no header (code `input`).
    """
    blocks = _blocks(file)
    first = next(filter(len, blocks), None)
    if first is None:
        raise ValueProblem("Empty CSV file")
    if 0 in first.wrong:
        first.wrong[0].refuse(file, first[0].number)
    header = parsed(first.record(0)).column_names
    yield header, first.behind(0)
    for records in blocks:
        yield header, records


def parsed(
    content: bytes,
    names: Sequence[str] = (),
    types: Mapping[str, pa.DataType] | None = None,
    ragged: list[Any] | None = None,
) -> pa.Table:
    """Records as columns; an empty field is null, a quoted one an empty text.

    Args:
        content: the records, whole.
        names: those of the columns; none where the first record has them.
        types: the columns that are read, and as what.
        ragged: takes the records of another number of fields, which are left out.
    """

    def skipped(row: Any) -> Literal["skip"]:
        if ragged is not None:
            ragged.append(row)
        return "skip"

    content = content or b"\n"  # Arrow refuses a text without any line
    return pyarrow.csv.read_csv(
        io.BytesIO(content),
        # One thread knows the numbers of rows, one block has no end to trip over.
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(content) + 1, column_names=list(names)
        ),
        parse_options=pyarrow.csv.ParseOptions(
            newlines_in_values=b'"' in content, invalid_row_handler=skipped
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict(types or {}),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            # Nothing is read in vain: what nobody wants may be of any kind.
            include_columns=list(types or ()),
        ),
    )


def _blocks(file: DataPlace) -> Iterator[Records]:
    with opened_text(file) as stream:
        tail, line, size = b"", 1, min(_FIRST, BLOCK)
        while content := tail + _read(stream, size):
            is_last = len(content) - len(tail) < size
            if is_last and content[-1] not in (_CR, _LF):
                content += b"\n"
            quotes = _outer_quotes(content)
            end = _end_of_records(content, quotes, is_last=is_last)
            if end:
                block = Records(content[:end], line, quotes is not None)
                line += _lines_in(block.content)
                yield block
            tail = content[end:]
            if is_last:
                if tail:
                    yield Records(tail, line, is_closed=False)
                return
            if len(tail) > LONGEST:
                Reject(f"begins a row of more than {LONGEST // MEBIBYTE} MiB", _CURE).refuse(
                    file, line
                )
            # A record that is longer than a block is looked at again as often as it doubles.
            size = max(BLOCK, len(tail))


def _read(stream: IO[bytes], size: int) -> bytes:
    """As many bytes as asked for, unless the file ends: a packed one gives fewer at once."""
    found = stream.read(size)
    while len(found) < size and (more := stream.read(size - len(found))):
        found += more
    return found


def _end_of_records(content: bytes, quotes: Quotes | None, *, is_last: bool) -> int:
    """Where the last whole record ends; a CR at the end may be one half of a line end."""
    limit = len(content) - (not is_last and content[-1] == _CR)
    if quotes is None:
        return max((one.end() for one in _records(content) if one.end() <= limit), default=0)
    for n in range(len(quotes) // 2, -1, -1):
        # The parts between quoted fields, from the last one on.
        begin = int(quotes[2 * n - 1]) + 1 if n else 0
        stop = int(quotes[2 * n]) if 2 * n < len(quotes) else limit
        found = max(content.rfind(b"\n", begin, stop), content.rfind(b"\r", begin, stop))
        if found >= 0:
            return found + 1
    return 0


def _records(content: bytes) -> Iterator[re.Match[bytes]]:
    at = 0
    while one := _RECORD.match(content, at):
        yield one
        at = one.end()


Quotes = npt.NDArray[np.int64]


def _outer_quotes(content: bytes) -> Quotes | None:
    """The quotes of a text in turn opening and closing, a doubled one closing and opening; None:
    some stand elsewhere than where a field begins or ends.
    """
    if b'"' not in content:
        return np.empty(0, np.int64)
    text = np.frombuffer(b"\n%b\n" % content, np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    opens, closes = quotes[::2], quotes[1::2]
    before = text[opens - 1]
    # A quote before an opening one is that which closed just now.
    doubled = before[1:] == _QUOTE
    if before[0] == _QUOTE or (doubled & (opens[1:] - 1 != closes[: len(opens) - 1])).any():
        return None
    is_regular = _EDGES[before].all() and _EDGES[text[closes + 1]].all()
    return quotes - 1 if is_regular else None


def _lines_in(content: bytes) -> int:
    """The line ends in a text: LF, CR LF or CR."""
    return content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")


# Arrow converts blocks of whole records. Which fields of a block do not fit is
# asked only where it refuses the block, so rejects cost nothing where there are none. Who reads
# strictly refuses a file for its first reject; who is tolerant has the rejects beside the rows.


_NUMBERS = frozenset(Scalar(name) for name in INTEGERS + FLOATS)
_TIGHTEST_FIRST = (
    *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.float64(), pa.string()),
)
"""The types of columns of which none is declared: the first that all fields are of."""
_ALSO: Mapping[pa.DataType, Collection[pa.DataType]] = {
    pa.null(): _TIGHTEST_FIRST,
    pa.int64(): (pa.float64(),),
    pa.date32(): (pa.timestamp("s"),),
}
"""Types whose fields are all of other types, too."""
_Types = Mapping[int, pa.DataType]
"""Columns by their places in the file."""
_MISFIT = "mend the file, or declare the type that the column has"
_RAGGED = "mend the line; a field that holds a comma or a line's end is quoted"


def header_of(file: DataPlace, wanted: ReadNames) -> list[str]:
    """The names of the columns of a file, each of which that is read stands there once."""
    try:
        with closing(records_of(file)) as found:
            header, _ = next(found)
    except UNREADABLE as problem:
        refuse_file(file, problem)
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
    """The rows of a file, block by block; those that are none, too, if the form is tolerant."""
    known = {field.name: field.type for field in form.schema or ()}
    for header, records in records_of(file):
        block = _Block(records, header)
        types = {n: known.get(header[n], pa.string()) for n in _places(header, form.wanted)}
        table, rejects = block.rows(types)
        if not form.tolerant:
            _refuse_first(file, block, rejects)
        wrong = {row: reject.reason for row, reject in rejects.items()}
        yield ArrowRows(table, header, wrong, records)


def surveyed_csv(file: DataPlace, form: FileForm) -> pa.Schema:
    """The wanted columns of a file and their types: those that all of its rows have."""
    fit: dict[int, list[pa.DataType]] = {}
    names: list[str] = []
    try:
        for header, records in records_of(file):
            names, block = header, _Block(records, header)
            for place in _places(header, form.wanted):
                if header[place] not in form.declared:
                    fit.setdefault(place, list(_TIGHTEST_FIRST))
            if not block.narrow(fit):
                _refuse_first(file, block, block.rows({})[1])
    except UNREADABLE as problem:
        refuse_file(file, problem)
    declared = {n: csv_type(n, t) for n, t in form.declared.items()}
    found = {names[place]: plain_type(types[0]) for place, types in fit.items()}
    return pa.schema([(n, declared.get(n) or found[n]) for n in among(names, form.wanted)])


def _places(header: list[str], wanted: ReadNames) -> list[int]:
    return [place for place, name in enumerate(header) if wanted is None or name in wanted]


def _refuse_first(file: DataPlace, block: _Block, rejects: Mapping[int, Reject]) -> None:
    if rejects:
        row = min(rejects)
        rejects[row].refuse(file, block.records[row].number)


@dataclass(frozen=True, slots=True)
class _Block:
    """Records, and the names of their columns."""

    records: Records
    header: list[str]

    def rows(self, types: _Types) -> tuple[pa.Table, Mapping[int, Reject]]:
        """The records as columns of types, and those that are none: they are null."""
        ragged: list[Any] = []
        misfits: list[tuple[int, Reject]] = []
        content = self.records.right()
        try:
            table = self._parsed(content, types, ragged)
        except pa.ArrowInvalid:
            ragged.clear()
            table = self._parsed(content, dict.fromkeys(types, pa.string()), ragged)
            for at, (name, of) in enumerate(zip(table.column_names, types.values(), strict=True)):
                texts = table.column(at).combine_chunks()
                column, wrong = _typed(texts, of)
                table = table.set_column(at, name, column)
                misfits += ((n, _misfit(name, texts[n].as_py(), of)) for n in wrong)
        if not (ragged or misfits or self.records.wrong):
            return table, {}
        return self._beside_rejects(table, ragged, misfits)

    def narrow(self, fit: Mapping[int, list[pa.DataType]]) -> bool:
        """Takes the types of columns away that a field is not of; gives whether all are rows."""
        ragged: list[Any] = []

        def fits(types: _Types) -> bool:
            try:
                self._parsed(self.records.right(), types, ragged)
            except pa.ArrowInvalid:
                return False
            return True

        untested = {place: types[:-1] for place, types in fit.items()}
        while asked := {place: types[0] for place, types in untested.items() if types}:
            all_fit = fits(asked)
            for place, of in asked.items():
                is_fit = all_fit or fits({place: of})
                if not is_fit:
                    fit[place].remove(of)
                known = (of, *(_ALSO.get(of, ()) if is_fit else ()))
                untested[place] = [t for t in untested[place] if t not in known]
        return not (ragged or self.records.wrong)

    def _parsed(self, content: bytes, types: _Types, ragged: list[Any]) -> pa.Table:
        """Records as Arrow reads them, without those of another number of fields."""
        # Names may stand twice in a header, places do not; without any column, rows are counted.
        names = [str(place) for place in range(len(self.header))]
        read = dict(types) or {0: pa.string()}
        table = parsed(content, names, {names[n]: of for n, of in read.items()}, ragged)
        return table.rename_columns([self.header[n] for n in read])

    def _beside_rejects(
        self, table: pa.Table, ragged: list[Any], misfits: list[tuple[int, Reject]]
    ) -> tuple[pa.Table, Mapping[int, Reject]]:
        """Rows of a table at the places of their records, with nulls where a record is no row."""
        rejects, count = dict(self.records.wrong), len(self.records)
        right = [n for n in range(count) if n not in rejects]
        for row in ragged:
            problem = (
                f"has {row.actual_columns} fields, and the file's first line {len(self.header)}"
            )
            rejects[right[row.number - 1]] = Reject(problem, _RAGGED)
        rows = [n for n in range(count) if n not in rejects]
        places: Any = np.full(count, -1)
        places[rows] = range(len(rows))
        table = table.take(pa.array(places, pa.int64(), mask=places < 0))
        for n, reject in misfits:
            rejects.setdefault(rows[n], reject)
        return table, rejects


def _misfit(column: str, value: str, of: pa.DataType) -> Reject:
    return Reject(f"{describe(value)} is not of type {item_type(of)}", _MISFIT, column)


def _typed(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """Fields as values of a type, as Arrow converts those of a file, and those that are none."""
    if pa.types.is_string(of):
        return texts, []
    # Asked of Arrow one by one, wrong fields take 200 times as long as right ones.
    wrong = [n for n, t in enumerate(texts.to_pylist()) if t is not None and _cannot_be(t, of)]
    if wrong:
        right = np.ones(len(texts), bool)
        right[wrong] = False
        texts = pc.if_else(pa.array(right), texts, None)
    column, others = _asked(texts, of)
    return column, [*wrong, *others]


def _cannot_be(text: str, of: pa.DataType) -> bool:
    """Whether a field is surely none of a type: Python takes all that Arrow takes, but for 0x1F."""
    try:
        if pa.types.is_boolean(of):
            return text.strip().lower() not in ("true", "false", "0", "1")
        if pa.types.is_floating(of):
            float(text)
        elif pa.types.is_integer(of):
            return not -(1 << of.bit_width - 1) <= int(text) < 1 << of.bit_width - 1
    except ValueError:
        return "0x" not in text.lower()
    return False


def _asked(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """The same by asking Arrow for all fields, for halves of them, and at last for single ones."""
    fields = ("" if t is None else '"' + t.replace('"', '""') + '"' for t in texts.to_pylist())
    content = "".join(f"{field},\n" for field in fields).encode()
    try:
        return parsed(content, ["x", "end"], {"x": of}).column("x").combine_chunks(), []
    except pa.ArrowInvalid:
        if len(texts) == 1:
            nothing: Any = pa.array([None], of)
            return nothing, [0]
    half = len(texts) // 2
    first, wrong = _asked(texts.slice(0, half), of)
    second, others = _asked(texts.slice(half), of)
    return pa.concat_arrays([first, second]), [*wrong, *(half + n for n in others)]
