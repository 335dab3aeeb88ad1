"""The records of a CSV file: where each begins and ends, in which line, and which are none.

Blocks of whole records go to Arrow, so a quoted line end never meets the end of a block, and a
record may be longer than one. A quote opens a field only at its begin, as in RFC 4180; elsewhere it
is part of the text. Text behind a closing quote, and a quote that is never closed, are refused:
whatever such a record was meant to say, its fields are not known.

The law: the records of a file do not depend on how it is cut into blocks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from hydro_core.files.row_batch import NOT_UTF8, Reject, TextLine
from hydro_core.files.unreadable import is_utf8, opened_text
from hydro_core.settings import MEBIBYTE
from hydro_core.storage.remote import DataPlace
from hydro_core.types.values import ValueProblem

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
