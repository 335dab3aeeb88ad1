"""CSV files at the edges of the format: what each holds, and which of its rows are none.

A case is the bytes, the rows `(k long, v string)` that fit, and of those that do not the line and
the reason.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field

Reject = tuple[int, str]


@dataclass(frozen=True, slots=True)
class CsvCase:
    """A file, and what it holds."""

    content: bytes
    rows: list[tuple[int | None, str | None]]
    rejects: list[Reject] = field(default_factory=list)
    name: str = "a.csv"


_MIB = 1 << 20
_FIELDS = "it has {} fields, and the file's first line 2"
_BEHIND = "it has text behind a closing quote"
_OPEN = "it has a quote, opened in line {}, that is never closed"


_LONG = "a" * 995
_ROW = f"1,{_LONG}\n".encode()
"""Few rows take more than a block."""
_OVER_A_BLOCK = _MIB // len(_ROW) + 10


def _filled(size: int) -> tuple[bytes, list[tuple[int | None, str | None]]]:
    """A header and rows that take so many bytes."""
    rows, rest = divmod(size - 4, len(_ROW))
    last = _LONG + "b" * rest
    content = b"k,v\n" + _ROW * (rows - 1) + f"1,{last}\n".encode()
    return content, [*[(1, _LONG)] * (rows - 1), (1, last)]


def _at_the_end_of_a_block(before: int, case: bytes, value: str) -> CsvCase:
    content, rows = _filled(_MIB - before)
    return CsvCase(content + b'2,"' + case + b'"\n3,z\n', [*rows, (2, value), (3, "z")])


_MANY = f'1,"a\r\nb{_LONG}"\n'.encode() * _OVER_A_BLOCK

CASES = {
    "quoted": CsvCase(b'k,v\n1,"a,""b"""\n2,"c\nd"\n', [(1, 'a,"b"'), (2, "c\nd")]),
    "unclosed": CsvCase(b'k,v\n1,a\n2,"b\n3,c\n4,d\n', [(1, "a")], [(3, _OPEN.format(3))]),
    "unclosed, opened in a later line": CsvCase(b'k,v\n"1\n","b\n3,c', [], [(2, _OPEN.format(3))]),
    "unclosed, far from the end": CsvCase(
        b'k,v\n1,a\n2,"b\n' + _ROW * _OVER_A_BLOCK, [(1, "a")], [(3, _OPEN.format(3))]
    ),
    "unclosed, in a packed file": CsvCase(
        gzip.compress(b'k,v\n1,a\n2,"b\n'), [(1, "a")], [(3, _OPEN.format(3))], "a.csv.gz"
    ),
    "line ends in quotes, over a block": CsvCase(
        b"k,v\n" + _MANY, [(1, f"a\r\nb{_LONG}")] * _OVER_A_BLOCK
    ),
    **{
        f"quoted CR LF, its CR {n} before a block's end": _at_the_end_of_a_block(
            n + 4, b"x\r\ny", "x\r\ny"
        )
        for n in range(4)
    },
    **{
        f"doubled quote, {n} before a block's end": _at_the_end_of_a_block(n + 3, b'x""y', 'x"y')
        for n in range(4)
    },
    "a record over a block": CsvCase(
        b'k,v\n1,"' + b"x\n" * _MIB + b'"\n2,b\n', [(1, "x\n" * _MIB), (2, "b")]
    ),
    "an unquoted record over a block": CsvCase(
        b"k,v\n1," + b"x" * 3 * _MIB + b"\n2,b\n", [(1, "x" * 3 * _MIB), (2, "b")]
    ),
    "a field over 128 KiB": CsvCase(
        b"k,v\n1," + b"x" * 200_000 + b"\nz,b\n",
        [(1, "x" * 200_000)],
        [(3, "column `k`: 'z' is not of type long")],
    ),
    "no line end after the header": CsvCase(b"k,v", []),
    "a header alone": CsvCase(b"k,v\n", []),
    "no line end at last": CsvCase(b"k,v\n1,a", [(1, "a")]),
    "a mark": CsvCase(b'\xef\xbb\xbf"k",v\n1,a\n', [(1, "a")]),
    "CR alone": CsvCase(
        b'k,v\r1,a\r2,"b\rc"\rx,d\r',
        [(1, "a"), (2, "b\rc")],
        [(5, "column `k`: 'x' is not of type long")],
    ),
    "CR LF": CsvCase(
        b"k,v\r\n1,a\r\n\r\nx,d\r\n", [(1, "a")], [(4, "column `k`: 'x' is not of type long")]
    ),
    "all line ends": CsvCase(b"k,v\r1,a\n2,b\r\n3,c\r", [(1, "a"), (2, "b"), (3, "c")]),
    "NUL": CsvCase(b"k,v\n1,a\0b\n2,c\n", [(1, "a\0b"), (2, "c")]),
    "fields": CsvCase(
        b"k,v\n1\n2,b,c\n3,d\n", [(3, "d")], [(2, _FIELDS.format(1)), (3, _FIELDS.format(3))]
    ),
    "not UTF-8": CsvCase(
        b"k,v\n1,\xc3\xa9\n2,\xe9\n3,c\n", [(1, "é"), (3, "c")], [(3, "it is not UTF-8")]
    ),
    "blank lines": CsvCase(b"\n\nk,v\n\n1,a\r\n\r\n\n2,b\n\n", [(1, "a"), (2, "b")]),
    "a stray quote": CsvCase(
        b'k,v\n1,5" disk\n2,"a\nb"\n3,x"y"\n', [(1, '5" disk'), (2, "a\nb"), (3, 'x"y"')]
    ),
    "text behind a quote": CsvCase(
        b'k,v\n1,"a"b\n2,"a" \n3,"5" disk"\n4,d\n',
        [(4, "d")],
        [(2, _BEHIND), (3, _BEHIND), (4, _BEHIND)],
    ),
    "text behind a quote in an early field": CsvCase(
        b'k,v\n"1"0,"a"\n2,b\n', [(2, "b")], [(2, _BEHIND)]
    ),
    "null and an empty text": CsvCase(
        b'k,v\n,\n1,""\n"",c\n',
        [(None, None), (1, "")],
        [(4, "column `k`: '' is not of type long")],
    ),
    "columns that nobody reads stand twice": CsvCase(b"k,x,v,x\n1,p,a,q\n", [(1, "a")]),
    "line separators of Unicode": CsvCase(
        "k,v\n1,a\u2028b\u2029c\u0085d\x0be\x0cf\n2,b\n".encode(),
        [(1, "a\u2028b\u2029c\u0085d\x0be\x0cf"), (2, "b")],
    ),
    "packed": CsvCase(gzip.compress(b'k,v\n1,"a\nb"\n'), [(1, "a\nb")], [], "a.csv.gz"),
    "a wrong value far behind": CsvCase(
        b"k,v\n" + _ROW * _OVER_A_BLOCK + b"x,b\n3,c\n",
        [*[(1, _LONG)] * _OVER_A_BLOCK, (3, "c")],
        [(_OVER_A_BLOCK + 2, "column `k`: 'x' is not of type long")],
    ),
    "all kinds at once": CsvCase(
        b'k,v\nx,a\n"1"2,b\n1\n2,\xff\n3,c\n4,"d\n',
        [(3, "c")],
        [
            (2, "column `k`: 'x' is not of type long"),
            (3, _BEHIND),
            (4, _FIELDS.format(1)),
            (5, "it is not UTF-8"),
            (7, _OPEN.format(7)),
        ],
    ),
}
REFUSED = {
    "nothing at all": (b"", "Empty CSV file"),
    "only blank lines": (b"\n\r\n\n", "Empty CSV file"),
    "an open header": (
        b'k,"v\n1,a\n',
        "line 1 has a quote, opened in line 1, that is never closed",
    ),
    "a broken header": (b'"k"x,v\n1,a\n', "line 1 has text behind a closing quote"),
    "a header that is no text": (b"k,v\xff\n1,a\n", "line 1 is not UTF-8"),
    "a column twice": (b"k,v,k\n1,a,2\n", "has several columns `k`"),
}
