"""What a text may be, and null where it is none: the forms of `int`, `float` and so on that do not
fail.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as DecimalValue
from decimal import InvalidOperation
from typing import Any

from hydro_core.functions.kinds import ExprType
from hydro_core.functions.library import costs
from hydro_core.functions.library.characters import all_of, characters
from hydro_core.functions.library.entry import (
    KNOWN_TEXT,
    KNOWN_WHOLE,
    TEXT,
    CallSite,
    Column,
    Library,
    optional,
)
from hydro_core.functions.library.times import PLAIN_DATE, plain_date, strptime
from hydro_core.types.item import BOOLEAN, DATE, DOUBLE, LONG, TIMESTAMP, Decimal
from hydro_core.types.values import LONG_MAX, LONG_MIN, ValueProblem, conform

PARSING = Library()
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_MOST_DIGITS = 38
_FORM = optional(KNOWN_TEXT)
_DIGITS = optional(KNOWN_WHOLE)


# the types of calls


def _decimal(site: CallSite) -> ExprType:
    precision, scale = (
        site.constant(i) if len(site.args) > i else default for i, default in ((1, 38), (2, 18))
    )
    if not isinstance(precision, int) or not isinstance(scale, int):
        cure = "write them as they are: `try_decimal(text, 10, 2)`"
        raise site.problem("the digits of a decimal are constants", cure)
    if not 1 <= precision <= _MOST_DIGITS or not 0 <= scale <= precision:
        cure = "a decimal has 1 to 38 digits, not more of them after the point"
        raise site.problem(f"there is no decimal({precision},{scale})", cure)
    return Decimal(precision, scale)


# Spark's expressions


def _int(F: Any, text: Column) -> tuple[Column, Column]:
    """A number in plain digits; null of what has none, or anything else than a number has.

    Of underscores, of digits beyond ASCII and of many of them Python knows.
    """
    digits, blanks = all_of("isdecimal"), all_of("isspace")
    plain = F.rlike(text, F.lit("\\A[ \\t\\n]*[+-]?[0-9]{1,18}[ \\t\\n]*\\z"))
    found = F.when(plain, F.btrim(text, F.lit(" \t\n")).try_cast("long"))
    none = ~F.rlike(text, F.lit(f"[{digits}]")) | F.rlike(text, F.lit(f"[^{digits}{blanks}+_-]"))
    return found, plain | none


def _date(F: Any, text: Column, form: str | None = None) -> tuple[Column, Column] | None:
    """A plain date; null of what has another length than dates, or other characters.

    Of weeks, and of dates without hyphens, Python knows.
    """
    if form is not None:
        return None
    plain = F.rlike(text, F.lit(PLAIN_DATE))
    none = ~F.length(text).isin(7, 8, 10) | F.rlike(text, F.lit("[^0-9W-]"))
    return plain_date(F, text), plain | none


def _boolean(F: Any, text: Column) -> tuple[Column, Column]:
    """No letter beyond ASCII is the large one of a letter of these words."""
    word = F.lower(F.btrim(text, F.lit("".join(characters("isspace")))))
    found = F.when(word.isin(*_YES), F.lit(True)).when(word.isin(*_NO), F.lit(False))
    return found, F.lit(True)


# what programs call


@PARSING.strict(LONG, TEXT, column=_int)
def try_int(text: str) -> int | None:
    """The whole number that a text is; null if it is none, or has more than 64 bits."""
    try:
        found = int(text)
    except ValueError:
        return None
    return found if LONG_MIN <= found <= LONG_MAX else None


@PARSING.strict(DOUBLE, TEXT)
def try_float(text: str) -> float | None:
    """The number that a text is; null if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


@PARSING.strict(_decimal, TEXT, _DIGITS, _DIGITS)
def try_decimal(text: str, precision: int = 38, scale: int = 18) -> DecimalValue | None:
    """The decimal that a text is, rounded half to even; null if it is none, or has more digits."""
    try:
        number = DecimalValue(text)
        fits = number.is_finite() and number.adjusted() < _MOST_DIGITS
        found: DecimalValue | None = conform(number, Decimal(precision, scale)) if fits else None
    except (InvalidOperation, ValueProblem):
        return None
    return found


@PARSING.strict(BOOLEAN, TEXT, column=_boolean)
def try_boolean(text: str) -> bool | None:
    """True of `true`, `t`, `yes`, `y`, `1`, false of `false`, `f`, `no`, `n`, `0`; else null."""
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None


@PARSING.strict(DATE, TEXT, _FORM, column=_date, cost=costs.form)
def try_date(text: str, form: str | None = None) -> date | None:
    """The date that a text is, in ISO 8601 or in a form such as `%d.%m.%Y`; null if it is none."""
    try:
        return date.fromisoformat(text) if form is None else strptime(text, form).date()
    except ValueError:
        return None


@PARSING.strict(TIMESTAMP, TEXT, _FORM, cost=costs.form)
def try_timestamp(text: str, form: str | None = None) -> datetime | None:
    """The timestamp that a text is, in ISO 8601 or in a form such as `%d.%m.%Y %H:%M`; null if it
    is none.

    What names no zone is in UTC.
    """
    try:
        found = datetime.fromisoformat(text) if form is None else strptime(text, form)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
