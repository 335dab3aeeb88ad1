"""Methods of texts and bytes, and the classes of characters that Python has."""

from __future__ import annotations

import operator
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache, partial, reduce
from typing import Any

from hydro_core.functions.kinds import ExprType, is_open
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    ANYTHING,
    KNOWN_TEXT,
    KNOWN_WHOLE,
    MANY,
    TEXT,
    TEXTS,
    WHOLE,
    CallSite,
    Column,
    Expression,
    Members,
    Operation,
    Parameter,
    method,
    optional,
    several,
)
from hydro_core.types.item import BINARY, BOOLEAN, LONG, STRING, Array, Tuple

# Classes of characters of Python's texts (spaces, digits and so on), read from the running Python.


@lru_cache
def characters(test: str) -> tuple[str, ...]:
    """All characters for which a test of `str` is true: `characters("isspace")`."""
    holds = getattr(str, test)
    return tuple(c for c in map(chr, range(sys.maxunicode + 1)) if holds(c))


@lru_cache
def all_of(test: str) -> str:
    """The same characters as the inside of a regular expression's class."""
    return ranges(map(ord, characters(test)))


def ranges(codes: Iterable[int]) -> str:
    """The inside of a regular expression's class of these code points, in order."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in found)


# Characters that ICU in Spark 4.2 has, and Unicode 14, the oldest in a supported Python, has not:
# letters with an upper case, and characters with a lower case or an effect on the ends of words
# (U+0295 and U+1171E next to a Σ are left aside).
_YOUNG = {
    "upper": "19b 264 1c8a a7cd a7cf a7d3 a7d5 a7db 10d70-10d85 16ebb-16ed3",
    "lower": """ 897 ece 1acf-1add 1ae0-1aeb 1c89-1c8a a7cb-a7cf a7d2 a7d4 a7da-a7dc a7f1 10d4e
10d50-10d65 10d69-10d6d 10d6f-10d85 10ec5 10efa-10eff 11241 113bb-113c0 113ce 113d0 113d2
113e1-113e2 11b60 11b62-11b64 11b66 11dd9 11f00-11f01 11f36-11f3a 11f40 11f42 11f5a 13439-13440
13447-13455 1611e-16129 1612d-1612f 16d40-16d42 16d6b-16d6c 16ea0-16eb8 16ebb-16ed3 16ff2-16ff3
1df25-1df2a 1e030-1e06d 1e08f 1e4eb-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5 1e6ff
""",
}


@lru_cache
def young(case: str) -> str:
    """The characters that matter to Spark in `upper` or `lower`, and not to this Python.

    As the inside of a regular expression's class. Upper and lower case are ICU's in Spark: for the
    version in Spark 4.2 they are Python's but for these, which got their other case after Unicode
    14. Such a character bounds words to Python, so the context of a final sigma ends there too.
    """
    codes = [
        code
        for part in _YOUNG[case].split()
        for code in range(int(part.split("-")[0], 16), int(part.split("-")[-1], 16) + 1)
    ]
    if case == "upper":
        return ranges(code for code in codes if chr(code).upper() == chr(code))
    return ranges(code for code in codes if unicodedata.category(chr(code)) == "Cn")


# The methods of texts and of bytes.
#
# Spark counts texts by code point, as Python does. Where Python uses its database of characters and
# Spark has no equivalent, an expression is exact for texts in ASCII, and null for others.


_WIDEST = 10_000
_MOST_PARTS = 2**31 - 1
_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REGEX_SPECIAL = frozenset("\\.[]{}()<>*+-=!?^$|&#")
_KINDS = ("alnum", "alpha", "decimal", "digit", "numeric", "space")
_MAYBE = optional(KNOWN_TEXT)
_FROM_TO = (optional(WHOLE), optional(WHOLE))
_BYTES = Parameter("bytes, or a number", lambda kind: kind == BINARY or WHOLE.fits(kind))


# Bounds of results of constants.


def _expanded(args: list[Any]) -> int:
    tabs = args[0].count("\t") if isinstance(args[0], str) else 1
    return max(tabs, 1) * entry.widest(args)


def _with_replacements(args: list[Any]) -> int:
    match args:
        case [str(base), str(old), str(new), *rest]:
            places = base.count(old)
            if rest and isinstance(rest[0], int) and rest[0] >= 0:
                places = min(places, rest[0])
            return len(base) + places * len(new)
        case _:
            return 0


def _glued_length(args: list[Any]) -> int:
    match args:
        case [str(glue), list() | tuple() | set() | dict() as parts]:
            return len(parts) * len(glue) + sum(len(p) for p in parts if isinstance(p, str))
        case _:
            return 0


# Types of calls.


def _joined(site: CallSite) -> ExprType:
    element = site.elements()
    if not is_open(element) and element != STRING:
        raise site.problem(
            f"`join` takes strings, not {element}", "make them strings: `str(x) for x in …`"
        )
    return STRING


# Spark's expressions


def _kind(test: str, count: str = "+") -> Operation:
    """True if all characters are of a class; `+`: and there is at least one."""
    return method(
        BOOLEAN, column=lambda F, text: F.rlike(text, F.lit(f"\\A[{all_of(test)}]{count}\\z"))
    )


def _in_ascii(found: Callable[..., Column]) -> Expression:
    """The expression for a text in ASCII; Python computes other texts."""

    def asked(F: Any, text: Column) -> Column:
        return F.when(F.rlike(text, F.lit("\\A[\\x{0}-\\x{7f}]*\\z")), found(F, text))

    return asked


def _fits(pattern: str) -> Expression:
    """True if a text in ASCII matches a pattern."""
    return _in_ascii(lambda F, text: F.rlike(text, F.lit(f"\\A{pattern}\\z")))


def _cased(case: str) -> Expression:
    def changed(F: Any, text: Column) -> Column:
        made = F.upper(text) if case == "upper" else F.lower(text)
        others = young(case)
        return F.when(~F.rlike(text, F.lit(f"[{others}]")), made) if others else made

    return changed


def _titled(F: Any, text: Column) -> Column:
    def cased(letter: Column, place: Column) -> Column:
        before = F.get(F.split(text, ""), place - 1)
        return F.when(F.rlike(before, F.lit("[A-Za-z]")), F.lower(letter)).otherwise(
            F.upper(letter)
        )

    return F.array_join(F.transform(F.split(text, ""), cased), "")


def _capital(F: Any, text: Column) -> Column:
    return F.concat(F.upper(F.substring(text, 1, 1)), F.lower(F.substr(text, F.lit(2))))


def _stripped(trim: str) -> Expression:
    def stripped(F: Any, text: Column, of: str | None = None) -> Column:
        taken = "".join(characters("isspace")) if of is None else of
        return getattr(F, trim)(text, F.lit(taken)) if taken else text

    return stripped


def _any_of(test: str) -> Expression:
    def begun(F: Any, text: Column, parts: list[Column]) -> Column:
        return reduce(operator.or_, (getattr(F, test)(text, p) for p in parts), F.lit(False))

    return begun


def _found(F: Any, text: Column, part: Column) -> Column:
    return F.call_function("locate", part, text) - 1


def _found_last(F: Any, text: Column, part: Column) -> Column:
    behind = F.call_function("locate", F.reverse(part), F.reverse(text)) - 1
    return F.when(behind < 0, -1).otherwise(F.length(text) - F.length(part) - behind)


def _there(found: Callable[..., Column]) -> Expression:
    """The position; null if there is none."""

    def place(F: Any, text: Column, part: Column) -> Column:
        at = found(F, text, part)
        return F.when(at >= 0, at)

    return place


def _counted(F: Any, text: Column, part: str) -> Column | None:
    without = F.length(F.replace(text, F.lit(part), F.lit("")))
    return F.call_function("div", F.length(text) - without, F.lit(len(part))) if part else None


def _replaced(F: Any, text: Column, old: str, new: Column) -> Column | None:
    return F.replace(text, F.lit(old), new) if old else None


def _without(*, end: bool) -> Expression:
    def cut(F: Any, text: Column, part: str) -> Column:
        if end:
            there, rest = F.endswith, F.substr(text, F.lit(1), F.length(text) - len(part))
        else:
            there, rest = F.startswith, F.substr(text, F.lit(len(part) + 1))
        return F.when(there(text, F.lit(part)), rest).otherwise(text)

    return cut


def _parted(find: Callable[..., Column], *, last: bool) -> Expression:
    """`partition` and `rpartition`, by the position of the part."""

    def parted(F: Any, text: Column, part: str) -> tuple[Column, ...] | None:
        if not part:
            return None
        at, nothing = find(F, text, F.lit(part)), F.lit("")
        found = F.substr(text, F.lit(1), at), F.lit(part), F.substr(text, at + len(part) + 1)
        missing = (nothing, nothing, text) if last else (text, nothing, nothing)
        pairs = zip(found, missing, strict=True)
        return tuple(F.when(at >= 0, one).otherwise(other) for one, other in pairs)

    return parted


def _split(F: Any, text: Column, at: str | None = None, times: int = -1) -> Column | None:
    if at is None:
        if times >= 0:
            return None
        bare = F.btrim(text, F.lit("".join(characters("isspace"))))
        words = F.split(bare, f"[{all_of('isspace')}]+", -1)
        return F.when(bare == "", F.array().cast("array<string>")).otherwise(words)
    if not at or times >= _MOST_PARTS:
        return None
    quoted = "".join(f"\\{c}" if c in _REGEX_SPECIAL else c for c in at)
    return F.split(text, quoted, times + 1 if times >= 0 else -1)


def _glued(F: Any, between: Column, parts: Column) -> Column:
    whole = F.call_function("array_join", parts, between)
    return F.when(~F.exists(parts, lambda part: part.isNull()), whole)


def _lacking(F: Any, text: Column, width: int) -> Column:
    """The number of characters that a text lacks to a width."""
    return F.greatest(F.lit(width) - F.length(text), F.lit(0))


def padded(side: str) -> Callable[..., Column | None]:
    """A text that is padded on one side, or on both."""

    def filled(F: Any, text: Column, width: int, fill: str = " ") -> Column | None:
        if len(fill) != 1 or width > _WIDEST:
            return None
        lacks = _lacking(F, text, width)
        if side == "both":
            left = F.call_function("div", lacks, F.lit(2)) + lacks.bitwiseAND(F.lit(width % 2))
            before = F.repeat(F.lit(fill), left.cast("int"))
            return F.concat(before, text, F.repeat(F.lit(fill), (lacks - left).cast("int")))
        filling = F.repeat(F.lit(fill), lacks)
        return F.concat(filling, text) if side == "left" else F.concat(text, filling)

    return filled


def _zero_filled(F: Any, text: Column, width: int) -> Column | None:
    if width > _WIDEST:
        return None
    zeros = F.repeat(F.lit("0"), _lacking(F, text, width))
    signed = F.rlike(text, F.lit("\\A[+-]"))
    after = F.concat(F.substring(text, 1, 1), zeros, F.substr(text, F.lit(2)))
    return F.when(signed, after).otherwise(F.concat(zeros, text))


def _encoded(F: Any, text: Column, encoding: str = "utf-8") -> Column | None:
    return F.encode(text, "UTF-8") if encoding.lower() in ("utf-8", "utf8") else None


_changed = partial(method, STRING, may_fail=True, cost=entry.shown)
_asked = partial(method, BOOLEAN, may_fail=True)
_split_up = partial(method, Array(STRING), cost=entry.per_character())
_parted_at = partial(method, Tuple((STRING,) * 3), KNOWN_TEXT)
_filled = partial(method, STRING, KNOWN_WHOLE, cost=entry.width)
TEXT_MEMBERS: Members = {
    "capitalize": _changed(column=_in_ascii(_capital)),
    "casefold": _changed(column=_in_ascii(lambda F, text: F.lower(text))),
    "center": _filled(_MAYBE, column=padded("both")),
    "count": method(LONG, KNOWN_TEXT, *_FROM_TO, column=_counted),
    "encode": method(BINARY, _MAYBE, _MAYBE, column=_encoded, cost=entry.shown),
    "endswith": method(BOOLEAN, TEXTS, *_FROM_TO, column=_any_of("endswith")),
    "expandtabs": method(STRING, optional(WHOLE), cost=entry.cost_of_size(_expanded)),
    "find": method(LONG, TEXT, *_FROM_TO, column=_found),
    "index": method(LONG, TEXT, *_FROM_TO, column=_there(_found), may_fail=True),
    **{f"is{kind}": _kind(f"is{kind}") for kind in _KINDS},
    "isascii": _kind("isascii", "*"),
    "isidentifier": _asked(column=_fits("[A-Za-z_][A-Za-z0-9_]*")),
    "islower": _asked(column=_fits("[^A-Z]*[a-z][^A-Z]*")),
    "isprintable": _kind("isprintable", "*"),
    "istitle": method(BOOLEAN),
    "isupper": _asked(column=_fits("[^a-z]*[A-Z][^a-z]*")),
    "join": method(
        _joined, MANY, column=_glued, may_fail=True, cost=entry.cost_of_size(_glued_length)
    ),
    "ljust": _filled(_MAYBE, column=padded("right")),
    "lower": _changed(column=_cased("lower")),
    "lstrip": method(STRING, _MAYBE, column=_stripped("ltrim")),
    "partition": _parted_at(column=_parted(_found, last=False)),
    "removeprefix": method(STRING, KNOWN_TEXT, column=_without(end=False)),
    "removesuffix": method(STRING, KNOWN_TEXT, column=_without(end=True)),
    "replace": method(
        *(STRING, KNOWN_TEXT, TEXT, optional(WHOLE)),
        column=_replaced,
        cost=entry.cost_of_size(_with_replacements),
    ),
    "rfind": method(LONG, TEXT, *_FROM_TO, column=_found_last),
    "rindex": method(LONG, TEXT, *_FROM_TO, column=_there(_found_last), may_fail=True),
    "rjust": _filled(_MAYBE, column=padded("left")),
    "rpartition": _parted_at(column=_parted(_found_last, last=True)),
    "rsplit": _split_up(_MAYBE, optional(WHOLE)),
    "rstrip": method(STRING, _MAYBE, column=_stripped("rtrim")),
    "split": _split_up(_MAYBE, optional(KNOWN_WHOLE), column=_split),
    "splitlines": _split_up(optional(WHOLE)),
    "startswith": method(BOOLEAN, TEXTS, *_FROM_TO, column=_any_of("startswith")),
    "strip": method(STRING, _MAYBE, column=_stripped("btrim")),
    "swapcase": _changed(
        column=_in_ascii(lambda F, text: F.translate(text, _LOWER + _UPPER, _UPPER + _LOWER))
    ),
    "title": _changed(column=_in_ascii(_titled)),
    "upper": _changed(column=_cased("upper")),
    "zfill": _filled(column=_zero_filled),
}
BYTES_MEMBERS: Members = {
    **several("count find index", method(LONG, _BYTES, *_FROM_TO)),
    "decode": method(STRING, optional(TEXT), optional(TEXT), cost=entry.shown),
    **several("endswith startswith", method(BOOLEAN, ANYTHING, *_FROM_TO)),
    "hex": method(
        *(STRING, optional(ANYTHING), optional(WHOLE)),
        column=lambda F, found: F.lower(F.hex(found)),
    ),
}
OF_TEXTS: Members = {
    "str": Operation(STRING, (optional(ANYTHING),) * 3, str, cost=entry.shown, nulls="own")
}
