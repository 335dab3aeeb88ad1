"""The directories of tables, from the names of what they hold: two names never share one.

A plain name is its own directory. Of any other its readable part stands before a hash of the whole
of it, and no plain name has the sign between them. File systems may not tell letters by their
case, so of names that differ in nothing else one at most is plain.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping

_UNSAFE = re.compile(r"[^\w.-]+")
_PLAIN = re.compile(r"(?![_.])[\w.-]+(?<![_.])")

_SIGN = "~"

_LONGEST = 100
"""Bytes of a plain name; file systems take 255 for a directory, and files go below it."""

_SHOWN = 40
"""Bytes of the readable part of a name that is not plain."""


def directory_names(names: Collection[str]) -> Mapping[str, str]:
    """A directory for each of the names of one program.

    >>> directory_names(["out", "out_", "Out"])
    {'out': 'out', 'out_': 'out~e009557a73f4', 'Out': 'Out~9a3c5460432b'}
    >>> directory_names(["Out"])
    {'Out': 'Out'}
    """
    alike = Counter(name.casefold() for name in names if _is_plain(name))
    return {
        name: name
        if _is_plain(name) and (alike[name.casefold()] == 1 or name == name.casefold())
        else f"{readable(name, _SHOWN)}{_SIGN}{_digest(name)}"
        for name in names
    }


def readable(name: str, most: int = _LONGEST) -> str:
    """The part of a name that a directory may show, in at most so many bytes; others may share it.

    >>> readable("inputs of [a/b] ")
    'inputs_of_a_b'
    """
    shown = _UNSAFE.sub("_", unicodedata.normalize("NFC", name)).strip("_.")
    return shown.encode()[:most].decode(errors="ignore").strip("_.") or "unnamed"


def _is_plain(name: str) -> bool:
    return (
        _PLAIN.fullmatch(name) is not None
        and unicodedata.is_normalized("NFC", name)
        and len(name.encode()) <= _LONGEST
    )


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
