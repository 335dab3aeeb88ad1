"""What a commit has read of an input: the part of the ledger that says what has arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

Counts = Mapping[int, int | None]
"""How many rows of an input have arrived with each tick; None: nobody has counted."""


@dataclass(frozen=True, slots=True)
class ChangedRange:
    """Committed ticks, `first` to `last`, whose rows in a landing are not what they were.

    `removed` rows are there no more, `added` ones stand in their place; None: how many cannot be
    told.
    """

    first: int
    last: int
    removed: int | None = None
    added: int | None = None


@dataclass(frozen=True, slots=True)
class InputRead:
    """What a commit read of one input: the rows found under `location` at `version`."""

    name: str
    rows: int | None = None
    location: str | None = None
    version: int | None = None
    kind: str | None = None
    """What the input is: a Delta table, or files of which kind; None: not known."""
    empty: tuple[int, ...] = ()
    """The ticks of the commit that no row was of."""
    table: str | None = None
    """The identity of a Delta table: another one in its place has another."""
    listing: str | None = None
    """The name of the list of files that were there, which stands beside the ledger."""
    late: Mapping[int, int] = field(default_factory=dict)
    """How many rows of earlier ticks arrived with the first tick of the commit, by their tick."""
    changed: tuple[ChangedRange, ...] = ()
    """The ticks whose rows in the landing have been found changed, and were not computed again."""
    accepted_version: int | None = None
    """Up to where somebody has accepted what came since `version`, in a row of the ledger that only
    says so.
    """
    accepted_listing: str | None = None
    """The same of files: since `listing`."""
    early: int = 0
    """How many rows are from before the first tick, and so of none; counted with that tick."""
    counts: Mapping[int, int] | None = None
    """How many rows arrived with each tick that was read; None: ticks were read as they had been
    before, or nobody has counted.
    """
    deviations: str | None = None
    """The name of the list, beside the ledger, of what was read otherwise than it is landed."""
    accepted_deviations: str | None = None
    """The same where somebody has accepted what came since."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists beside the ledger that it names."""
        named = self.listing, self.accepted_listing, self.deviations, self.accepted_deviations
        return tuple(name for name in named if name is not None)


INPUT_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("name", pa.string()),
    ("rows", pa.int64()),
    ("location", pa.string()),
    ("version", pa.int64()),
    ("kind", pa.string()),
    ("empty", pa.list_(pa.int64())),
    ("table", pa.string()),
    ("listing", pa.string()),
    ("late", pa.map_(pa.int64(), pa.int64())),
    (
        "changed",
        pa.list_(pa.struct([(name, pa.int64()) for name in ("first", "last", "removed", "added")])),
    ),
    ("accepted_version", pa.int64()),
    ("accepted_listing", pa.string()),
    ("early", pa.int64()),
    ("counts", pa.map_(pa.int64(), pa.int64())),
    ("deviations", pa.string()),
    ("accepted_deviations", pa.string()),
]
"""The fields of an input read, as the ledger has them."""


def row_of(read: InputRead) -> dict[str, Any]:
    """An input read as the ledger has it."""
    counts = None if read.counts is None else sorted(read.counts.items())
    return {**asdict(read), "late": sorted(read.late.items()), "counts": counts}


def read_of(found: Mapping[str, Any]) -> InputRead:
    """An input read from the ledger; one of an earlier version has fewer fields."""
    return InputRead(
        **{
            **found,
            "empty": tuple(found.get("empty") or ()),
            "late": dict(found.get("late") or {}),
            "counts": None if found.get("counts") is None else dict(found["counts"]),
            "early": found.get("early") or 0,
            "changed": tuple(ChangedRange(**change) for change in found.get("changed") or ()),
        }
    )
