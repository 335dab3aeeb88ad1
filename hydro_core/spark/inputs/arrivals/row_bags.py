"""Bags of rows compared by their hashes: which are not among others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hydro_core.spark.store.ledger.input_reads import ChangedRange

Mask = npt.NDArray[np.bool_]


def unmatched(rows: Any, others: Any) -> Mask:
    """Which rows, by their hashes, are not among the others: each of these is one row."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    places = np.arange(len(ordered))
    begins = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    rank = places - np.maximum.accumulate(np.where(begins, places, 0))
    keys, counts = np.unique(others, return_counts=True)
    at = np.searchsorted(keys, ordered)
    known = np.append(keys, keys[:1])[at] == ordered if len(keys) else np.zeros(len(rows), np.bool_)
    there = np.where((at < len(keys)) & known, np.append(counts, 0)[at], 0)
    found: Mask = np.empty(len(rows), np.bool_)
    found[order] = rank >= there
    return found


def joined(changes: Iterable[ChangedRange]) -> list[ChangedRange]:
    """The same changes, those of ticks that follow each other as one, and each tick told once."""
    found: list[ChangedRange] = []
    for change in sorted(changes, key=lambda one: (one.first, one.last)):
        last = found[-1] if found else None
        if last is None or change.first > last.last + 1:
            found.append(change)
        elif change != last:
            found[-1] = _both(last, change)
    return found


def _both(one: ChangedRange, other: ChangedRange) -> ChangedRange:
    def total(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return ChangedRange(
        one.first,
        max(one.last, other.last),
        total(one.removed, other.removed),
        total(one.added, other.added),
    )
