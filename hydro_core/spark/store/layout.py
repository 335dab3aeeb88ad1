"""Layout of a pipeline on disk: its format, and the names of directories of tables."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from hydro_core.errors import DataError
from hydro_core.machine.faults import raise_outage
from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace

# The directory says its format by a number, with the version that wrote it, before anything else
# is written there. A version reads its own format; of another one it says so, and touches nothing.


FORMAT = 2
"""The format that this version reads and writes; 0 and 1 are of before any release."""

NOTE = "_format.json"
"""The file, in a pipeline's directory, that says it."""


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """A format by its number, and the version of hydrotick that wrote it, if that is known."""

    number: int
    version: str = ""


def format_of(directory: DataPlace) -> StoredFormat:
    """The format of a pipeline's directory; 0 where it says none.

    Raises:
        DataError: the file that says it cannot be read (code `state`).
    """
    try:
        said = json.loads((directory / NOTE).read_text(encoding="utf-8"))
        return StoredFormat(int(said["format"]), str(said["hydrotick"]))
    except FileNotFoundError:
        return StoredFormat(0)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise_outage(problem, str(directory))
        message = f"{directory / NOTE} cannot be read: {problem}"
        cure = "restore it from a copy of the directory"
        raise DataError.of("state", message, help=cure) from None


def refuse_other_format(directory: DataPlace) -> None:
    """Refuses a directory that is stored in another format than this version's.

    Raises:
        DataError: which version wrote it, and what to do (code `state`).
    """
    stored = format_of(directory)
    if stored.number == FORMAT:
        return
    writer = f"hydrotick {stored.version}" if stored.version else "another hydrotick"
    message = f"{directory} is stored in format {stored.number}, which {writer} has written; "
    message += f"this is hydrotick {this_version()}, which reads format {FORMAT}"
    cure = f"run the flow with {writer} or a later one; nothing was changed"
    if stored.number < FORMAT:
        cure = "`hydrotick reset` and then `hydrotick backfill` compute all of it again from the "
        cure += "landing; nothing was changed"
    raise DataError.of("state", message, help=cure)


def note_format(directory: DataPlace) -> None:
    """Has a directory say its format: as a whole, since others may read it meanwhile."""
    if not (directory / NOTE).is_file():
        told = {"format": FORMAT, "hydrotick": this_version()}
        write_whole(directory / NOTE, json.dumps(told) + "\n")


def this_version() -> str:
    """The version of hydrotick at hand; empty where it runs from a folder without one."""
    try:
        return version("hydrotick")
    except PackageNotFoundError:
        return ""


# A plain name is its own directory. Of any other its readable part stands before a hash of the
# whole of it, and no plain name has the sign between them. File systems may not tell letters by
# their case, so of names that differ in nothing else one at most is plain.


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
