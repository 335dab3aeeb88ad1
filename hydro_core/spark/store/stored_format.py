"""The format of a stored pipeline: its ledger, tables, deployments and lists of landings.

The pipeline's directory says it by a number, with the version that wrote it, before anything else
is written there. A version reads its own format; of a directory of another one it says so, and
touches nothing. A later version that reads this format, too, begins here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from hydro_core.errors import DataError
from hydro_core.machine.faults import raise_outage
from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace

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
