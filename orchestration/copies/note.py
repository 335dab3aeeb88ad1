"""What a copy of a project says of itself: a file that is written last, and names what counts.

The copy lies in a directory of its own beside that file. Until the file names another one, the one
before is the copy; what it does not name is left by a process that was killed.

In a store, who makes a copy says so in the file first; of two who do it at once, the one that said
so before the other does not find the file as it has left it, and its copy does not count.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hydro_core.errors import DataError, TransientError
from hydro_core.files.transfer import KeptCopy
from hydro_core.spark.store.stored_format import this_version
from hydro_core.storage.places import entries_in
from hydro_core.storage.remote import DataPlace, Remote
from hydro_core.types.records import as_record, of_record

NOTE = "copy.json"
MOMENT = "%Y%m%dT%H%M%S.%fZ"
"""The name of the directory of a copy: when it was begun."""
_MOMENT = re.compile(r"\d{8}T\d{6}\.\d{6}Z")
_BEGUN = "begun"
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

    def kept(self, to: DataPlace) -> KeptCopy:
        """The copy, in the directory that was named when it was made."""
        return KeptCopy(to / self.moment, self.hashes)


def note_in(to: DataPlace) -> CopyNote | None:
    """What a directory says of the copy of a project that it has; None: it has none.

    Raises:
        DataError: it cannot be read, or a newer version has made it (code `state`).
    """
    file = to / NOTE
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        made = said.pop("format")
        said.pop(_BEGUN, None)
        if not said:
            return None
        if made <= FORMAT:
            found: CopyNote = of_record(CopyNote, said)
            return found
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


def begin_note(to: DataPlace, moment: str) -> str | None:
    """Says of a copy in a store that another one is being made; gives what the file is known by.

    Raises:
        TransientError: another process does the same (code `state`).
    """
    if not isinstance(to, Remote):
        return None
    place = to / NOTE
    found = place.store.read_marked(place.key)
    said = {"format": FORMAT} if found is None else json.loads(found[0])
    content = json.dumps({**said, _BEGUN: moment}, indent=1).encode()
    return _replaced(place, None if found is None else found[1], content)


def write_note(to: DataPlace, note: CopyNote, begun: str | None = None) -> None:
    """Has a directory speak of another copy, in one step; all of the copy is on the disk then.

    `begun` is what `begin_note` gave.

    Raises:
        TransientError: in a store, another process has begun to copy to it (code `state`).
    """
    text = json.dumps({"format": FORMAT, **as_record(note), "hydrotick": this_version()}, indent=1)
    if isinstance(to, Remote):
        _replaced(to / NOTE, begun, text.encode())
        return
    part = to / f".{NOTE}"
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # What was written before it is of many files.
        os.sync()
    part.replace(to / NOTE)


def _replaced(place: Remote, known: str | None, content: bytes) -> str:
    """Writes a file that nobody else has written since it was known; gives what it is known by."""
    if known is None:
        etag = place.store.write_if_absent(place.key, content)
    else:
        etag = place.store.replace_if(place.key, known, content)
    if etag is None:
        # It may have been written, and the answer got lost.
        there = place.store.read_marked(place.key)
        if there is None or there[0] != content:
            raise copied_meanwhile(place.parent)
        etag = there[1]
    return etag


def copied_meanwhile(to: DataPlace) -> TransientError:
    """The error of who finds that another copies to the same place."""
    message = f"another process copies to {to}"
    return TransientError.of("state", message, help="wait until it has ended")


def left_in(to: DataPlace, note: CopyNote | None) -> Iterator[DataPlace]:
    """The directories of copies that do not count: earlier ones, and those that were cut off."""
    for place in entries_in(to):
        if _MOMENT.fullmatch(place.name) and (note is None or place.name != note.moment):
            yield place
