"""Texts: functions that take them apart and compare them, for work with data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hydro_core.functions.kinds import ExprType, is_open
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    KNOWN_TEXT,
    KNOWN_WHOLE,
    TEXT,
    Budget,
    CallSite,
    Column,
    Library,
    optional,
)
from hydro_core.functions.library.texts import ranges
from hydro_core.types.item import LONG, STRING

WORDING = Library()
_URL_PARTS = ("scheme", "host", "port", "path", "query", "fragment")
_SOUNDS: Mapping[str, str] = {
    letter: str(number)
    for number, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1)
    for letter in letters
}
_WIDEST = 10_000
_NO_PART = "parts are counted from 1, and from −1 backwards"


# the types of calls


def _url_part(site: CallSite) -> ExprType:
    part = site.constant(1)
    if part not in (..., *_URL_PARTS):
        raise site.problem(f"{part!r} is no part of a URL", f"there are {', '.join(_URL_PARTS)}")
    return STRING


def _numbered(site: CallSite) -> ExprType:
    if site.constant(2) == 0:
        raise site.problem(_NO_PART)
    return STRING


def _joined(site: CallSite) -> ExprType:
    if not site.args or site.keywords:
        raise site.problem(f"`{site.name}` takes a separator, and texts")
    for kind in site.args:
        if not is_open(kind) and kind != STRING:
            raise site.problem(f"`{site.name}` takes strings, not {kind}", "`str(x)` makes one")
    return STRING


# Bounds of results of constants.


def _distance(limits: Budget, args: list[Any]) -> None:
    if all(isinstance(a, str) for a in args) and len(args) == 2:
        limits.charge(60 * len(args[0]) * len(args[1]))


# Spark's expressions


def _split_part(F: Any, text: Column, separator: str, number: int) -> Column | None:
    return F.split_part(text, F.lit(separator), F.lit(number)) if number and separator else None


def _substring_index(F: Any, text: Column, separator: str, count: int) -> Column | None:
    """Spark finds overlapping separators, Python does not."""
    overlaps = any(separator.startswith(separator[i:]) for i in range(1, len(separator)))
    return F.substring_index(text, separator, count) if separator and not overlaps else None


def _translate(F: Any, text: Column, letters: str, others: str) -> Column | None:
    """The character 0 ends a text for Spark's `translate`."""
    return F.translate(text, letters, others) if "\0" not in others else None


def _padded(pad: str) -> Any:
    def made(F: Any, text: Column, width: int, fill: str = " ") -> Column | None:
        return getattr(F, pad)(text, width, fill) if fill and 0 <= width <= _WIDEST else None

    return made


@lru_cache
def _large_in_ascii() -> str:
    """The characters beyond ASCII whose upper case is in ASCII, as a class of a pattern."""
    beyond = range(128, sys.maxunicode + 1)
    return ranges(c for c in beyond if any("A" <= large <= "Z" for large in chr(c).upper()))


def _soundex(F: Any, text: Column) -> tuple[Column, Column]:
    """Letters of ASCII alone; Python computes texts with a character whose upper case is in
    ASCII.
    """
    letters = F.regexp_replace(text, F.lit("[^A-Za-z]"), F.lit(""))
    return F.soundex(letters), ~F.rlike(text, F.lit(f"[{_large_in_ascii()}]"))


# Functions that programs call.


@WORDING.strict(_url_part, TEXT, KNOWN_TEXT, cost=entry.content)
def url_part(url: str, part: str) -> Any:
    """`scheme`, `host`, `port`, `path`, `query` or `fragment` of a URL; null where it has none."""
    try:
        found = urlsplit(url)
        value = found.hostname if part == "host" else getattr(found, part)
    except ValueError:
        return None
    return None if value in ("", None) else str(value)


@WORDING.strict(STRING, TEXT, TEXT, cost=entry.content)
def url_param(url: str, name: str) -> str | None:
    """The first value of a parameter in the query of a URL; null where it has none."""
    try:
        return parse_qs(urlsplit(url).query, keep_blank_values=True).get(name, [None])[0]
    except ValueError:
        return None


@WORDING.strict(
    _numbered, TEXT, KNOWN_TEXT, KNOWN_WHOLE, column=_split_part, cost=entry.per_character()
)
def split_part(text: str, separator: str, number: int) -> str:
    """A part between separators: 1 is the first, −1 the last; empty if there is none."""
    if number == 0:
        raise ValueError(_NO_PART)
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


@WORDING.strict(
    STRING, TEXT, KNOWN_TEXT, KNOWN_WHOLE, column=_substring_index, cost=entry.per_character()
)
def substring_index(text: str, separator: str, count: int) -> str:
    """The text before the `count`-th separator; if `count` is negative, the text after it, counted
    from the end.
    """
    if not separator or count == 0:
        return ""
    parts = text.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


@WORDING.strict(
    STRING, TEXT, KNOWN_WHOLE, optional(KNOWN_TEXT), column=_padded("lpad"), cost=entry.width
)
def lpad(text: str, width: int, fill: str = " ") -> str:
    """The text, filled on its left up to a width, and cut off on its right beyond it, as in SQL."""
    return _filling(text, width, fill) + text[: max(0, width)]


@WORDING.strict(
    STRING, TEXT, KNOWN_WHOLE, optional(KNOWN_TEXT), column=_padded("rpad"), cost=entry.width
)
def rpad(text: str, width: int, fill: str = " ") -> str:
    """The text, filled on its right up to a width, and cut off beyond it, as in SQL."""
    return text[: max(0, width)] + _filling(text, width, fill)


def _filling(text: str, width: int, fill: str) -> str:
    lacks = max(0, width - len(text))
    return (fill * (lacks // len(fill) + 1))[:lacks] if fill else ""


@WORDING.strict(STRING, TEXT, cost=entry.shown)
def initcap(text: str) -> str:
    """The text with a capital at the start of each word, after a space, and small letters
    elsewhere.
    """
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


@WORDING.strict(STRING, TEXT, KNOWN_TEXT, KNOWN_TEXT, column=_translate, cost=entry.shown)
def translate(text: str, letters: str, others: str) -> str:
    """The text with letters replaced one by one; letters without a replacement are removed, as in
    SQL.
    """
    pairs: dict[int, str | None] = {}
    for letter, other in zip_longest(letters, others[: len(letters)]):
        pairs.setdefault(ord(letter), other)
    return text.translate(pairs)


@WORDING.own(_joined)
def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """The texts that are not null, joined by a separator; null if that is null."""
    return None if separator is None else separator.join(t for t in texts if t is not None)


@WORDING.strict(LONG, TEXT, TEXT, column=lambda F, a, b: F.levenshtein(a, b), cost=_distance)
def levenshtein(a: str, b: str) -> int:
    """The least number of characters to insert, delete or replace to get from one text to the
    other.
    """
    if len(a) < len(b):
        a, b = b, a
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1]


@WORDING.strict(STRING, TEXT, column=_soundex, cost=entry.content)
def soundex(text: str) -> str:
    """How a word in English sounds: its first letter and three digits, as in the census; a text
    without a letter of ASCII is the empty text.
    """
    letters = [c for c in text.upper() if "A" <= c <= "Z"]
    if not letters:
        return ""
    digits, last = "", _SOUNDS.get(letters[0], "")
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter, "")
        if sound and sound != last:
            digits += sound
        # H and W between two letters are ignored.
        if letter not in "HW":
            last = sound
    return f"{letters[0]}{digits:0<3.3}"
