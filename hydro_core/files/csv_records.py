"""The records of a CSV file: where each begins and ends, in which line, and which are none.

Blocks of whole records go to Arrow, so a quoted line end never meets the end of a block, and a
record may be longer than one. A quote opens a field only at its begin, as in RFC 4180; elsewhere it
is part of the text. Text behind a closing quote, and a quote that is never closed, are refused:
whatever such a record was meant to say, its fields are not known.

The law: the records of a file do not depend on how it is cut into blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, NamedTuple

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
_CURE = "mend the line; a quote within a quoted field is written twice"
_QUOTE, _LF, _CR, _COMMA = b'"\n\r,'

Offsets = npt.NDArray[np.int64]


class _Bounds(NamedTuple):
    """Where records begin and end, and the lines in which they begin; blank lines are none."""

    begins: Offsets
    ends: Offsets
    lines: Offsets


@dataclass(frozen=True)
class Records:
    """A block of whole records, each of which ends with a line end but one whose quote is open."""

    content: bytes
    line: int
    """The line in which the block begins."""
    is_closed: bool = True

    @cached_property
    def wrong(self) -> dict[int, Reject]:
        """The records that are none, by their places, and why."""
        if not self.is_closed:
            return {0: self._open()}
        found = dict[int, Reject]()
        if _outer_quotes(self.content) is None:
            records = (_RECORD.match(self.content, at) for at in self.bounds.begins.tolist())
            behind = Reject("has text behind a closing quote", _CURE)
            found = {n: behind for n, one in enumerate(records) if one and one.lastindex}
        if not is_utf8(self.content):
            found |= {n: NOT_UTF8 for n in range(len(self)) if not is_utf8(self.record(n))}
        return found

    @cached_property
    def bounds(self) -> _Bounds:
        """Where the records are."""
        if not self.is_closed:
            return _Bounds(*(np.array([n]) for n in (0, len(self.content), self.line)))
        line_ends = _line_ends(self.content)
        quotes = _outer_quotes(self.content)
        if quotes is None:
            ends = np.fromiter((one.end() for one in _records(self.content)), np.int64)
        else:
            ends = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
        begins = np.concatenate([[0], ends])[: len(ends)]
        first = np.frombuffer(self.content, np.uint8)[begins]
        begins, ends = (of[(first != _CR) & (first != _LF)] for of in (begins, ends))
        lines = self.line + np.searchsorted(line_ends, begins, side="right")
        return _Bounds(begins, ends, lines)

    def __len__(self) -> int:
        return len(self.bounds.begins)

    def record(self, place: int) -> bytes:
        """The bytes of a record, with its line end."""
        return self.content[self.bounds.begins[place] : self.bounds.ends[place]]

    def __getitem__(self, place: int) -> TextLine:
        return TextLine.of(int(self.bounds.lines[place]), self.record(place))

    def right(self) -> bytes:
        """The content without the records that are none."""
        if not self.wrong:
            return self.content
        return b"".join(self.record(n) for n in range(len(self)) if n not in self.wrong)

    def _open(self) -> Reject:
        before: Any = _BEFORE_OPEN.match(self.content)
        line = self.line + _lines_in(before.group())
        return Reject(f"has a quote, opened in line {line}, that is never closed", _CURE)


def records_of(file: DataPlace) -> Iterator[tuple[list[str], Records]]:
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
    content = first.record(0)
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    header = pyarrow.csv.read_csv(
        pa.BufferReader(content), read_options=as_one_block(content), parse_options=options
    ).column_names
    end = int(first.bounds.ends[0])
    yield header, Records(first.content[end:], first.line + _lines_in(first.content[:end]))
    for records in blocks:
        yield header, records


def as_one_block(content: bytes, names: list[str] | None = None) -> pyarrow.csv.ReadOptions:
    """How Arrow reads a text whole; one thread knows the numbers of rows."""
    size = len(content) + 1
    return pyarrow.csv.ReadOptions(use_threads=False, block_size=size, column_names=names)


def _blocks(file: DataPlace) -> Iterator[Records]:
    with opened_text(file) as stream:
        tail, line, size = b"", 1, min(_FIRST, BLOCK)
        while content := tail + _read(stream, size):
            is_last = len(content) - len(tail) < size
            if is_last and content[-1] not in (_CR, _LF):
                content += b"\n"
            end = _end_of_records(content, is_last=is_last)
            if end:
                block = Records(content[:end], line)
                line += _lines_in(block.content)
                yield block
            tail = content[end:]
            if is_last:
                if tail:
                    yield Records(tail, line, is_closed=False)
                return
            if len(tail) > LONGEST:
                Reject(f"begins a row of more than {LONGEST // MEBIBYTE} MiB", _CURE).refuse(file, line)
            # A record that is longer than a block is looked at again as often as it doubles.
            size = max(BLOCK, len(tail))


def _read(stream: IO[bytes], size: int) -> bytes:
    """As many bytes as asked for, unless the file ends: a packed one gives fewer at once."""
    found = stream.read(size)
    while len(found) < size and (more := stream.read(size - len(found))):
        found += more
    return found


def _end_of_records(content: bytes, *, is_last: bool) -> int:
    """Where the last whole record ends; a CR at the end may be one half of a line end."""
    limit = len(content) - (not is_last and content[-1] == _CR)
    quotes = _outer_quotes(content)
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


def _outer_quotes(content: bytes) -> Offsets | None:
    """The quotes of a text in turn opening and closing, a doubled one closing and opening; None:
    some stand elsewhere than where a field begins or ends.
    """
    if b'"' not in content:
        return np.empty(0, np.int64)
    text = np.frombuffer(b"\n" + content + b"\n", np.uint8)
    found = np.flatnonzero(text == _QUOTE)
    opens, closes = found[::2], found[1::2]
    edges = (_COMMA, _LF, _CR, _QUOTE)
    before, behind = text[opens - 1], text[closes + 1]
    if not (np.isin(before, edges).all() and np.isin(behind, edges).all()):
        return None
    # A quote beside an opening one is that which closed just before, never another text's.
    doubled = np.flatnonzero(before == _QUOTE)
    if len(doubled) and (doubled[0] == 0 or (closes[doubled - 1] != opens[doubled] - 1).any()):
        return None
    return found - 1


def _lines_in(content: bytes) -> int:
    return content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")


def _line_ends(content: bytes) -> Offsets:
    """Where lines end, behind LF, CR LF or CR."""
    text = np.frombuffer(content + b"\0", np.uint8)
    ends = (text == _LF) | (text == _CR)
    ends[:-1] &= ~((text[:-1] == _CR) & (text[1:] == _LF))
    return np.flatnonzero(ends) + 1
