"""What of Python's texts depends on the Unicode database: upper and lower case, kinds of
characters, digits, blanks.

Kinds of characters become regular expressions that are written from the running Python's database,
so they are Python's by construction. Upper and lower case are ICU's: for the version in Spark 4.2
they are Python's but for the characters below, which got their other case after Unicode 14. A text
with one of them that this Python does not map is taken apart there; such a character bounds words
to Python, so the context of a final sigma ends there too.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from pyspark.sql import Column

from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, boolean, strict, string
from hydro_core.types.item import DOUBLE, LONG, STRING

# What ICU in Spark 4.2 knows and Unicode 14, the oldest that a supported Python has, does not:
# letters with an upper case, and characters with a lower case or a part in where words end
# (U+0295 and U+1171E beside a Σ are left aside).
_YOUNG_UPPER = "19b 264 1c8a a7cd a7cf a7d3 a7d5 a7db 10d70-10d85 16ebb-16ed3"
_YOUNG_LOWER = """ 897 ece 1acf-1add 1ae0-1aeb 1c89-1c8a a7cb-a7cf a7d2 a7d4 a7da-a7dc a7f1 10d4e
10d50-10d65 10d69-10d6d 10d6f-10d85 10ec5 10efa-10eff 11241 113bb-113c0 113ce 113d0 113d2
113e1-113e2 11b60 11b62-11b64 11b66 11dd9 11f00-11f01 11f36-11f3a 11f40 11f42 11f5a 13439-13440
13447-13455 1611e-16129 1612d-1612f 16d40-16d42 16d6b-16d6c 16ea0-16eb8 16ebb-16ed3 16ff2-16ff3
1df25-1df2a 1e030-1e06d 1e08f 1e4eb-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5 1e6ff
"""

_KINDS: dict[str, Callable[[str], bool]] = {
    "isalnum": str.isalnum,
    "isalpha": str.isalpha,
    "isdecimal": str.isdecimal,
    "isdigit": str.isdigit,
    "isnumeric": str.isnumeric,
    "isspace": str.isspace,
}
KINDS = frozenset(_KINDS)


def has_kind(scope: ColumnScope, value: ColumnValue, method: str) -> ColumnValue:
    """`text.isdigit()` and its like: of every character, and there is one."""
    text = scope.need(value)
    return boolean(F.rlike(text.column, F.lit(f"\\A[{_ranges(method)}]+\\z")), text)


def is_ascii(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`text.isascii()`."""
    text = scope.need(value)
    return boolean(F.rlike(text.column, F.lit("\\A[\\x{0}-\\x{7f}]*\\z")), text)


def changed(scope: ColumnScope, value: ColumnValue, method: str) -> ColumnValue:
    """`text.upper()` or `text.lower()`."""
    text = scope.need(value)
    change = F.upper if method == "upper" else F.lower
    young = _young(method)
    if not young:
        return string(change(text.column), text, safe=True)
    other = F.rlike(text.column, F.lit(f"[{_class(map(ord, young))}]"))
    return strict(F.when(~other, change(text.column)), STRING, text, text, doubtful=True)


def blanks() -> str:
    """The characters that `strip` and `split` take for blanks."""
    return "".join(_characters("isspace"))


def words(text: Column) -> Column:
    """`text.split()`."""
    bare = F.btrim(text, F.lit(blanks()))
    found = F.split(bare, f"[{_ranges('isspace')}]+", -1)
    return F.when(bare == "", F.array().cast("array<string>")).otherwise(found)


def whole_number(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`int(text)` of plain digits; of underscores and other scripts Python knows."""
    text = scope.need(value)
    plain = F.rlike(text.column, F.lit("\\A[ \\t-\\r]*[+-]?[0-9]{1,18}[ \\t-\\r]*\\z"))
    number = F.when(plain, text.column.cast("bigint"))
    return strict(number, LONG, text, text, doubtful=True)


def real_number(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """`float(text)` of plain digits; of underscores, other scripts and `nan` Python knows."""
    text = scope.need(value)
    digits = "(?:[0-9]{1,99}(?:[.][0-9]{0,99})?|[.][0-9]{1,99})(?:[eE][+-]?[0-9]{1,9})?"
    plain = F.rlike(text.column, F.lit(f"\\A[ \\t-\\r]*[+-]?{digits}[ \\t-\\r]*\\z"))
    number = F.when(plain, text.column.cast("double"))
    return strict(number, DOUBLE, text, text, doubtful=True)


@lru_cache
def _young(method: str) -> tuple[str, ...]:
    """The characters that Spark changes or minds, and the running Python does not."""
    characters = [
        chr(code)
        for part in (_YOUNG_UPPER if method == "upper" else _YOUNG_LOWER).split()
        for code in range(int(part.split("-")[0], 16), int(part.split("-")[-1], 16) + 1)
    ]
    if method == "upper":
        return tuple(c for c in characters if c.upper() == c)
    return tuple(c for c in characters if unicodedata.category(c) == "Cn")


@lru_cache
def _characters(kind: str) -> tuple[str, ...]:
    test = _KINDS[kind]
    return tuple(c for c in map(chr, range(sys.maxunicode + 1)) if test(c))


@lru_cache
def _ranges(kind: str) -> str:
    return _class(map(ord, _characters(kind)))


def _class(codes: Iterable[int]) -> str:
    """The inside of a regular expression's class of these code points, in order."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)
