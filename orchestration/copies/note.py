"""What a copy of a project says of itself: a file that is written last, and names what counts.

The copy lies in a directory of its own beside that file. Until the file names another one, the one
before is the copy; what it does not name is left by a process that was killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.files.transfer import KeptCopy
from hydro_core.spark.store.stored_format import this_version

NOTE = "copy.json"
MOMENT = "%Y%m%dT%H%M%S.%fZ"
"""The name of the directory of a copy: when it was begun."""
FORMAT = 1
PIPELINES, LANDING, RECORDS = "pipelines", "landing", "dagster"
"""Where in a copy flows, what was landed and Dagster's records are."""


@dataclass(frozen=True, slots=True)
class CopyNote:
    """What is in a copy, by the directory that it lies in."""

    moment: str
    made: str
    """When it was whole."""
    flows: Mapping[str, str]
    """The keys of the last ticks, by the flows' names."""
    landed: tuple[str, ...]
    """The landed tables, by their paths below the landing."""
    records: bool
    """Whether Dagster's records are in it."""
    hashes: Mapping[str, str]
    """The hashes of all files, by their names."""
    hydrotick: str = ""
    """The version that made it."""

    def kept(self, to: Path) -> KeptCopy:
        """The copy, in the directory that was named when it was made."""
        return KeptCopy(to / self.moment, self.hashes)


def note_in(to: Path) -> CopyNote | None:
    """What a directory says of the copy of a project that it has; None: it has none.

    Raises:
        DataError: it cannot be read, or a newer version has made it (code `state`).
    """
    file = to / NOTE
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        made = said.pop("format")
        if made <= FORMAT:
            return CopyNote(**{**said, "landed": tuple(said["landed"])})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        message = f"{file} cannot be read: {problem}"
        cure = "what it speaks of lies beside it: a flow's directory there is a copy of that flow"
        raise DataError.of("state", message, help=cure) from None
    version = said.get("hydrotick") or "of a newer release"
    message = f"the copy in {to} has format {made}, which hydrotick {version} has made; "
    message += f"this is hydrotick {this_version()}, which reads formats up to {FORMAT}"
    cure = f"use hydrotick {version} or a later one; nothing was changed"
    raise DataError.of("state", message, help=cure)


def write_note(to: Path, note: CopyNote) -> None:
    """Has a directory speak of another copy, in one step; all of the copy is on the disk then."""
    part = to / f".{NOTE}"
    with part.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **asdict(note), "hydrotick": this_version()}, file, indent=1)
        file.flush()
        # What was written before it is of many files.
        os.sync()
    part.replace(to / NOTE)


def left_in(to: Path, note: CopyNote | None) -> Iterator[Path]:
    """The directories of copies that do not count: earlier ones, and those that were cut off."""
    for place in to.glob("????????T??????.??????Z"):
        if note is None or place.name != note.moment:
            yield place
