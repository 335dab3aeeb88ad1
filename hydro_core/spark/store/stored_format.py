"""The format of what a pipeline stores: its ledger, tables, deployments and lists of landings.

The directory says it by a number, with the version that wrote it. Every version reads the formats
of the versions before; of a newer one it says so and touches nothing. `hydrotick upgrade` takes a
directory to the format of the version at hand, a number at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from hydro_core.errors import DataError
from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace

FORMAT = 1
"""What this version writes. 0: the same, in directories that do not say it yet."""

NOTE = "_format.json"
"""The file, in a pipeline's directory, that says it."""


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """A format by its number, and the version of hydrotick that wrote it, if that is known."""

    number: int
    version: str = ""


@dataclass(frozen=True, slots=True)
class Migration:
    """How a directory gets to a format from the one before, and what that is, in words.

    What it writes lies beside what is read until the note names the format: ended before that, it
    begins anew.
    """

    says: str
    do: Callable[[DataPlace], None]


def _nothing(_: DataPlace) -> None:
    """The files are the same ones."""


MIGRATIONS: Mapping[int, Migration] = MappingProxyType(
    {1: Migration("the directory says which format it has", _nothing)}
)
"""How each format is reached."""


def format_of(directory: DataPlace) -> StoredFormat:
    """The format of a pipeline's directory.

    Raises:
        DataError: what says it cannot be read (code `state`).
    """
    try:
        said = json.loads((directory / NOTE).read_text(encoding="utf-8"))
        return StoredFormat(int(said["format"]), str(said["hydrotick"]))
    except FileNotFoundError:
        return StoredFormat(0)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        message = f"{directory / NOTE} cannot be read: {problem}"
        cure = "restore it from a copy of the directory"
        raise DataError.of("state", message, help=cure) from None


def refuse_newer(directory: DataPlace) -> None:
    """Refuses a directory that a newer version has written.

    Raises:
        DataError: which version made it, and what to do (code `state`).
    """
    found = format_of(directory)
    if found.number > FORMAT:
        made = f"hydrotick {found.version}" if found.version else "a newer hydrotick"
        message = f"{directory} is stored in format {found.number}, which {made} has written; "
        message += f"this is hydrotick {this_version()}, which reads formats up to {FORMAT}"
        cure = f"run the flow with {made} or a later one; nothing was changed"
        raise DataError.of("state", message, help=cure)


def note_format(directory: DataPlace, number: int = FORMAT) -> None:
    """Has a directory say its format: as a whole, since others may read it meanwhile."""
    told = {"format": number, "hydrotick": this_version()}
    write_whole(directory / NOTE, json.dumps(told) + "\n")


def migrations_of(directory: DataPlace) -> tuple[tuple[int, Migration], ...]:
    """What takes a directory to the format of this version, in order; none where it has it.

    Raises:
        DataError: a newer version has written it (code `state`).
    """
    refuse_newer(directory)
    now = format_of(directory).number
    return tuple((number, MIGRATIONS[number]) for number in range(now + 1, FORMAT + 1))


def migrate(directory: DataPlace) -> None:
    """Takes a directory to the format of this version; who calls it holds the right to write.

    Raises:
        DataError: a newer version has written it (code `state`).
    """
    for number, migration in migrations_of(directory):
        migration.do(directory)
        note_format(directory, number)


def this_version() -> str:
    """The version of hydrotick at hand; empty where it runs from a folder without one."""
    try:
        return version("hydrotick")
    except PackageNotFoundError:
        return ""
