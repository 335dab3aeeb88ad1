"""Ticks that are computed again as they had been read: where another program takes over.

A deployment changes what is computed, and not what had arrived. So every tick has the rows then
that it has in the tables that serve, and that is compared before they are given up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hydro_core.spark.inputs.miscounted import refuse_unlike
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.input_reads import Counts, InputRead
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.standing import last_read_of, standing_counts


@dataclass(frozen=True, slots=True)
class KeptReads:
    """What ticks are computed again from as they had read it, where a program changes."""

    reads: Mapping[str, InputRead]
    """The inputs that the last tick has read."""
    dormant: Mapping[str, tuple[InputRead, int]]
    """Those that earlier ticks alone have read, with the first tick that has not."""
    base: Mapping[str, Counts] = field(default_factory=dict)
    """How many rows the ticks had that are not computed again, when the tables stood so."""
    unreported: set[str] = field(default_factory=set)
    """Inputs of which nobody can tell any more with which ticks their late rows arrived."""
    without: Mapping[str, Mapping[int, int]] | None = None
    """How many rows fewer each tick has of an input, where rows are to be forgotten; None: a
    program changes, and nothing else.
    """

    late_without: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """How many of these came late, by their own ticks."""

    def recorded(self, read: Mapping[str, InputRead]) -> Mapping[str, InputRead]:
        """What the ledger is to keep of the inputs once the ticks have been computed again.

        How many rows they have of all its ticks, and of which, the ticks' own commits say, unless
        they are others now.

        Args:
            read: what the ticks that were computed again have read.
        """
        nothing = {name: replace(one, rows=None, counts=None) for name, one in self.reads.items()}
        made = nothing if self.without is None else read
        found = {
            name: replace(one, late={}, rows=made[name].rows, counts=made[name].counts)
            for name, one in self.reads.items()
            if name in made
        }
        return {**read, **found}

    def refuse_unlike(self, made: Mapping[str, Counts], serves: Mapping[str, Counts]) -> None:
        """Raises where the ticks have other rows than they have in the tables that serve."""
        for name in sorted({*self.reads, *self.dormant} - self.unreported):
            fewer = (self.without or {}).get(name, {})
            known = {
                tick: None if rows is None else rows - fewer.get(tick, 0)
                for tick, rows in serves.get(name, {}).items()
            }
            for found in (self.base.get(name, {}), made.get(name, {})):
                refuse_unlike(name, known, found)


def kept_since(
    ledger: Ledger, sources: Collection[str], left: tuple[Commit, int] | None = None
) -> KeptReads:
    """What is kept of what the ledger says was read.

    Args:
        ledger: that of the tables that serve.
        sources: the inputs of the program that takes over.
        left: the commit that left the tables that it goes on from, and the last of their ticks that
            stand; None: it has none.
    """
    commits = ledger.commits()
    reads = {read.name: read for read in ledger.last_reads()}
    dormant = {
        name: found
        for name in (() if left is None else sources)
        if name not in reads and (found := last_read_of(commits, name)) is not None
    }
    base = {} if left is None else _counts_at(commits, *left)
    return KeptReads({n: read for n, read in reads.items() if n in sources}, dormant, base)


def _counts_at(commits: Sequence[Commit], left: Commit, last: int) -> Mapping[str, Counts]:
    """How many rows the ticks up to the last one had when a commit left the tables."""
    found = standing_counts([c for c in commits if c.sequence <= left.sequence])
    return {
        name: {tick: rows for tick, rows in counts.items() if tick <= last}
        for name, counts in found.items()
    }
