"""What is kept of a deletion until it has ended, in files beside the ledger: no values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydro_core.storage.places import write_whole
from hydro_core.storage.remote import DataPlace

_BEGUN, _NAMED = "_forget.json", "_forget_named.json"


@dataclass(frozen=True, slots=True)
class NamedRows:
    """The rows of files that were named, for their owner to take them out: by their hashes, and the
    columns that these are of.
    """

    read_as: str
    hashes: Counter[int]


def versions_begun(directory: DataPlace) -> Mapping[str, int] | None:
    """The versions of the landings before a deletion that has not ended, by input; None: there is
    none.
    """
    known: Mapping[str, int] | None = _read(directory / _BEGUN)
    return known


def note_begun(directory: DataPlace, versions: Mapping[str, int]) -> None:
    """Notes that a deletion has begun."""
    write_whole(directory / _BEGUN, json.dumps(versions))


def named_rows(directory: DataPlace) -> Mapping[str, NamedRows]:
    """The rows that were named since the last deletion has ended, by input."""
    found = _read(directory / _NAMED) or {}
    return {name: NamedRows(one["read_as"], Counter(one["rows"])) for name, one in found.items()}


def note_named(directory: DataPlace, named: Mapping[str, NamedRows]) -> None:
    """Notes rows of files, beside those that were named before."""
    found = dict(named_rows(directory))
    for name, one in named.items():
        known = found.get(name)
        is_as_known = known is not None and known.read_as == one.read_as
        before = known.hashes if known is not None and is_as_known else Counter[int]()
        # Who is named again has the same rows.
        found[name] = NamedRows(one.read_as, before | one.hashes)
    kept = {n: {"read_as": o.read_as, "rows": [*o.hashes.elements()]} for n, o in found.items()}
    write_whole(directory / _NAMED, json.dumps(kept))


def note_ended(directory: DataPlace) -> None:
    """Nothing is noted any more: the deletion has ended."""
    for name in (_NAMED, _BEGUN):
        (directory / name).unlink(missing_ok=True)


def _read(place: DataPlace) -> Any:
    try:
        return json.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return None
