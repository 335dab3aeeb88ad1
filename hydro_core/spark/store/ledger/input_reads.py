"""What a commit has read of an input: the part of the ledger that says what has arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    forgotten: str | None = None
    """The name of the list, beside the ledger, of rows that ticks have read of another flow, and
    that went since that one has forgotten somebody; and of those that it gives in their place.
    """
    is_forgotten_anew: bool = False
    """Whether the other flow has computed ticks again for that: not all of them are somebody's."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists beside the ledger that it names."""
        of_now = self.listing, self.deviations, self.forgotten
        named = *of_now, self.accepted_listing, self.accepted_deviations
        return tuple(name for name in named if name is not None)
