"""What serves and what the ledger says was read are one thing: rows by input and tick, compared.

None of these refusals can be met as long as the code is right, or as long as landed rows stay; but
rows that are lost or doubled unseen are the worst that a pipeline can do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hydro_core.spark.frames.column_names import TICK
from hydro_core.spark.store.ledger.input_reads import Counts, InputRead
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.ticks.tick_range import count_ticks

if TYPE_CHECKING:
    from hydro_core.spark.inputs.arrivals.landings import LandingView

_CURE = (
    "nothing of it counts, and everything is as it was; run it again, and report it with the "
    "pipeline's ledger if it stays so"
)
_GONE = (
    "land again what is missing; or let `hydrotick correct` compute the ticks again without it "
    "first, from the one that is named"
)


def refuse_unlisted(seen: LandingView, read: InputRead, ticks: tuple[int, int]) -> None:
    """Refuses what was read of files where their list says otherwise.

    Raises:
        DataError: which tick has other rows (code `state`).
    """
    listing = seen.now.listing
    listed = None if listing is None else listing.rows_at(range(ticks[0], ticks[1] + 1))
    if listed is not None and read.counts is not None:
        _refuse(read.name, {t: listed[t] for t in read.counts}, read.counts, "are listed", _CURE)


def refuse_miscounted(read: InputRead, rows: pa.Table, ticks: tuple[int, int]) -> InputRead:
    """What the ledger is to keep of a batch, with the number of its rows at each tick.

    Raises:
        DataError: the number that was noted is another (code `state`).
    """
    found = count_ticks(rows[TICK].to_numpy())
    there = {tick: found[tick] for tick in range(ticks[0], ticks[1] + 1)}
    if read.counts is not None:
        _refuse(read.name, read.counts, there, "were counted as they were read", _CURE)
    return replace(read, counts=there)


def refuse_unlike(name: str, known: Counts, found: Mapping[int, int | None]) -> None:
    """Refuses ticks that were read as they had been, where they have other rows by now.

    Args:
        name: the input's.
        known: how many rows its ticks have that serve.
        found: how many they have now.

    Raises:
        DataError: which tick has others (code `state`).
    """
    known = {tick: known.get(tick) for tick in found}
    _refuse(name, known, found, "are in what serves", _GONE)


def refuse_gain(name: str, before: int, after: int, gain: int) -> None:
    """Refuses ticks that were computed again, where rows got lost or came twice.

    Raises:
        DataError: how many (code `state`).
    """
    if after - before != gain:
        raise state_error(
            f"input `{name}`: the ticks that were computed again have {after:,} rows after "
            f"{before:,}, and {gain:+,} have come or gone since",
            _CURE,
        )


def total(counts: Counts, ticks: Collection[int]) -> int | None:
    """How many rows some ticks have together; None: not all are counted."""
    found = [counts[tick] for tick in ticks if tick in counts]
    return None if None in found else sum(n or 0 for n in found)


def _refuse(
    name: str,
    known: Mapping[int, int | None],
    found: Mapping[int, int | None],
    where: str,
    cure: str,
) -> None:
    for tick in sorted(found):
        before, now = known.get(tick), found[tick]
        if before is not None and now is not None and before != now:
            rows = f"{before:,} row(s) of tick {tick} {where}, and {now:,} would be read"
            raise state_error(f"input `{name}`: {rows}", cure)
