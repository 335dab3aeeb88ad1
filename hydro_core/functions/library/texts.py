"""The methods of texts and of bytes.

Spark counts texts by code point, as Python does. Where Python asks its database of characters and
Spark has no such thing, an expression is that of texts in ASCII, and null for others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from hydro_core.functions.constant_limits import MOST_FORMAT, Budget, LimitError
from hydro_core.functions.kinds import ExprType, is_open
from hydro_core.functions.library.characters import all_of, characters, young
from hydro_core.functions.library.entry import (
    ANYTHING,
    MANY,
    TEXT,
    TEXTS,
    WHOLE,
    CallSite,
    Column,
    Expression,
    Parameter,
    constant,
    members,
    method,
    methods,
    optional,
)
from hydro_core.types.item import BINARY, BOOLEAN, LONG, STRING, Array, Tuple

_WIDEST = 10_000
_MOST_PARTS = 2**31 - 1
_PER_PART = 60
"""Bytes of a short text, as which parts of another one are held."""
_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REGEX_SPECIAL = frozenset("\\.[]{}()<>*+-=!?^$|&#")
_KNOWN = constant(TEXT)
_MAYBE = optional(constant(TEXT))
_FROM_TO = (optional(WHOLE), optional(WHOLE))
_BYTES = Parameter("bytes, or a number", lambda kind: kind == BINARY or WHOLE.fits(kind))


# what is made of a constant at most


def check_form(_: Budget, __: Any, args: list[Any]) -> None:
    """Refuses a long format of times."""
    if any(isinstance(a, str) and len(a) > MOST_FORMAT for a in args):
        raise LimitError(f"has a format of more than {MOST_FORMAT:,} characters")


def _grows(limits: Budget, base: Any, _: list[Any]) -> None:
    limits.foresee_text(base)


def _width(limits: Budget, base: Any, args: list[Any]) -> None:
    tabs = base.count("\t") if isinstance(base, str) else 1
    limits.foresee(4 * max(tabs, 1) * max((a for a in args if isinstance(a, int)), default=8))


def _split_cost(limits: Budget, base: Any, _: list[Any]) -> None:
    limits.foresee(_PER_PART * len(base))


def _replace_cost(limits: Budget, base: Any, args: list[Any]) -> None:
    if isinstance(base, str | bytes) and len(args) > 1:
        limits.foresee((base.count(args[0]) + 1) * limits.weight(args[1]))


def _join_cost(limits: Budget, base: Any, args: list[Any]) -> None:
    if args and isinstance(args[0], list | tuple | set | dict):
        limits.foresee(len(args[0]) * limits.weight(base))


# the types of calls


def _joined(_: ExprType, site: CallSite) -> ExprType:
    element = site.elements()
    if not is_open(element) and element != STRING:
        raise site.problem(
            f"`join` takes strings, not {element}", "make them strings: `str(x) for x in …`"
        )
    return STRING


# Spark's expressions


def _kind(test: str, otherwise: str = "+") -> Expression:
    """Whether all characters are of a kind; `+`: and there is one."""
    return lambda F, text: F.rlike(text, F.lit(f"\\A[{all_of(test)}]{otherwise}\\z"))


def _in_ascii(found: Callable[..., Column]) -> Expression:
    """What is found of a text in ASCII; of others Python is asked."""

    def asked(F: Any, text: Column) -> Column:
        return F.when(F.rlike(text, F.lit("\\A[\\x{0}-\\x{7f}]*\\z")), found(F, text))

    return asked


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
    """The place, null where there is none."""

    def place(F: Any, text: Column, part: Column) -> Column:
        at = found(F, text, part)
        return F.when(at >= 0, at)

    return place


def _counted(F: Any, text: Column, part: str) -> Column | None:
    without = F.length(F.replace(text, F.lit(part), F.lit("")))
    return F.call_function("div", F.length(text) - without, F.lit(len(part))) if part else None


def _replaced(F: Any, text: Column, old: str, new: Column) -> Column | None:
    return F.replace(text, F.lit(old), new) if old else None


def _without(F: Any, text: Column, part: str, *, end: bool) -> Column:
    there = F.endswith(text, F.lit(part)) if end else F.startswith(text, F.lit(part))
    first, length = (F.lit(1), F.length(text) - len(part)) if end else (F.lit(len(part) + 1), None)
    rest = F.substr(text, first) if length is None else F.substr(text, first, length)
    return F.when(there, rest).otherwise(text)


def _parted(find: Callable[..., Column], *, last: bool) -> Expression:
    """`partition` and `rpartition`, by where the part is."""

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
    """How many characters a text lacks of a width."""
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


_PARTED = Tuple((STRING,) * 3)
TEXT_MEMBERS = members(
    method("capitalize", gives=STRING, column=_in_ascii(_capital), may_fail=True, cost=_grows),
    method(
        "casefold",
        gives=STRING,
        column=_in_ascii(lambda F, text: F.lower(text)),
        may_fail=True,
        cost=_grows,
    ),
    method("center", constant(WHOLE), _MAYBE, gives=STRING, column=padded("both"), cost=_width),
    method("count", _KNOWN, *_FROM_TO, gives=LONG, column=_counted),
    method("encode", _MAYBE, _MAYBE, gives=BINARY, column=_encoded, cost=_grows),
    method("endswith", TEXTS, *_FROM_TO, gives=BOOLEAN, column=_any_of("endswith")),
    method("expandtabs", optional(WHOLE), gives=STRING, cost=_width),
    method("find", TEXT, *_FROM_TO, gives=LONG, column=_found),
    method("index", TEXT, *_FROM_TO, gives=LONG, column=_there(_found), may_fail=True),
    method("isalnum", gives=BOOLEAN, column=_kind("isalnum")),
    method("isalpha", gives=BOOLEAN, column=_kind("isalpha")),
    method("isascii", gives=BOOLEAN, column=_kind("isascii", "*")),
    method("isdecimal", gives=BOOLEAN, column=_kind("isdecimal")),
    method("isdigit", gives=BOOLEAN, column=_kind("isdigit")),
    method(
        "isidentifier",
        gives=BOOLEAN,
        column=_in_ascii(lambda F, text: F.rlike(text, F.lit("\\A[A-Za-z_][A-Za-z0-9_]*\\z"))),
        may_fail=True,
    ),
    method(
        "islower",
        gives=BOOLEAN,
        column=_in_ascii(lambda F, text: F.rlike(text, F.lit("\\A[^A-Z]*[a-z][^A-Z]*\\z"))),
        may_fail=True,
    ),
    method("isnumeric", gives=BOOLEAN, column=_kind("isnumeric")),
    method("isprintable", gives=BOOLEAN, column=_kind("isprintable", "*")),
    method("isspace", gives=BOOLEAN, column=_kind("isspace")),
    method("istitle", gives=BOOLEAN),
    method(
        "isupper",
        gives=BOOLEAN,
        column=_in_ascii(lambda F, text: F.rlike(text, F.lit("\\A[^a-z]*[A-Z][^a-z]*\\z"))),
        may_fail=True,
    ),
    method("join", MANY, gives=_joined, column=_glued, may_fail=True, cost=_join_cost),
    method("ljust", constant(WHOLE), _MAYBE, gives=STRING, column=padded("right"), cost=_width),
    method("lower", gives=STRING, column=_cased("lower"), may_fail=True, cost=_grows),
    method("lstrip", _MAYBE, gives=STRING, column=_stripped("ltrim")),
    method("partition", _KNOWN, gives=_PARTED, column=_parted(_found, last=False)),
    method(
        "removeprefix",
        _KNOWN,
        gives=STRING,
        column=lambda F, text, part: _without(F, text, part, end=False),
    ),
    method(
        "removesuffix",
        _KNOWN,
        gives=STRING,
        column=lambda F, text, part: _without(F, text, part, end=True),
    ),
    method(
        "replace",
        _KNOWN,
        TEXT,
        optional(WHOLE),
        gives=STRING,
        column=_replaced,
        cost=_replace_cost,
    ),
    method("rfind", TEXT, *_FROM_TO, gives=LONG, column=_found_last),
    method("rindex", TEXT, *_FROM_TO, gives=LONG, column=_there(_found_last), may_fail=True),
    method("rjust", constant(WHOLE), _MAYBE, gives=STRING, column=padded("left"), cost=_width),
    method("rpartition", _KNOWN, gives=_PARTED, column=_parted(_found_last, last=True)),
    method("rsplit", _MAYBE, optional(WHOLE), gives=Array(STRING), cost=_split_cost),
    method("rstrip", _MAYBE, gives=STRING, column=_stripped("rtrim")),
    method(
        "split",
        _MAYBE,
        optional(constant(WHOLE)),
        gives=Array(STRING),
        column=_split,
        cost=_split_cost,
    ),
    method("splitlines", optional(WHOLE), gives=Array(STRING), cost=_split_cost),
    method("startswith", TEXTS, *_FROM_TO, gives=BOOLEAN, column=_any_of("startswith")),
    method("strip", _MAYBE, gives=STRING, column=_stripped("btrim")),
    method(
        "swapcase",
        gives=STRING,
        column=_in_ascii(lambda F, text: F.translate(text, _LOWER + _UPPER, _UPPER + _LOWER)),
        may_fail=True,
        cost=_grows,
    ),
    method("title", gives=STRING, column=_in_ascii(_titled), may_fail=True, cost=_grows),
    method("upper", gives=STRING, column=_cased("upper"), may_fail=True, cost=_grows),
    method("zfill", constant(WHOLE), gives=STRING, column=_zero_filled, cost=_width),
)
BYTES_MEMBERS = members(
    *methods("count find index", _BYTES, *_FROM_TO, gives=LONG),
    method("decode", optional(TEXT), optional(TEXT), gives=STRING, cost=_grows),
    *methods("endswith startswith", ANYTHING, *_FROM_TO, gives=BOOLEAN),
    method(
        "hex",
        optional(ANYTHING),
        optional(WHOLE),
        gives=STRING,
        column=lambda F, found: F.lower(F.hex(found)),
    ),
)
