"""Nexmark's stream: people who put things up for auction and bid for them, the same each time.

Of fifty events one is a new person, three are new auctions, the others are bids, as in Nexmark. An
event happens each millisecond. Most bids go to an auction that is hot for a while, the others to
one of the newest; some to one that is yet to open. One event in a hundred lands a tick late.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.judged import Ticks

CYCLE, AUCTIONS = 50, 3
"""Events of a cycle: the first is a person, so many after it are auctions."""
FIRST = 1000
"""The first number of people and of auctions."""
CATEGORIES = 5
OPEN = 100
"""So many of the newest auctions get the bids that no hot one gets."""
HOT_FOR = 20
AHEAD = 10
LATE = 0.01

STATES = {"AZ": "Phoenix", "CA": "Palo Alto", "ID": "Boise", "OR": "Portland", "WA": "Redmond"}
CHANNELS = ("Apple", "Google", "Facebook", "Baidu")


def events(count: int, ticks: int) -> Ticks:
    """So many events in so many ticks of as many events each."""
    rng, number = np.random.default_rng(8), np.arange(count)
    place = number % CYCLE
    arrives = number * ticks // count
    arrives = np.minimum(arrives + (rng.random(count) < LATE), ticks - 1)
    parts = {"person": place == 0, "auction": (place > 0) & (place <= AUCTIONS)}
    parts["bid"] = ~(parts["person"] | parts["auction"])
    made = {"person": _people, "auction": _auctions, "bid": _bids}
    found = {}
    for name, mine in parts.items():
        rows = pa.table(made[name](number[mine], rng)).append_column(
            "tick", pa.array(arrives[mine])
        )
        found[name] = rows.take(np.argsort(arrives[mine], kind="stable"))
    return Ticks(found, ticks)


def _people(at: np.ndarray, rng: np.random.Generator) -> dict[str, object]:
    states = rng.choice(list(STATES), len(at))
    ids = FIRST + at // CYCLE
    return {
        "id": ids,
        "name": [f"person {i}" for i in ids],
        "city": [STATES[state] for state in states],
        "state": states,
        "date_time": at,
    }


def _auctions(at: np.ndarray, rng: np.random.Generator) -> dict[str, object]:
    ids = _auctions_before(at)
    people = at // CYCLE + 1
    first = rng.integers(1, 10_000, len(at))
    return {
        "id": ids,
        "item": [f"item {i % 1000}" for i in ids],
        "initial_bid": first,
        "reserve": first + rng.integers(1, 10_000, len(at)),
        "date_time": at,
        "expires": at + rng.integers(100, 4000, len(at)),
        "seller": FIRST + np.maximum(people - 1 - rng.integers(0, 100, len(at)), 0),
        "category": 10 + rng.integers(0, CATEGORIES, len(at)),
    }


def _bids(at: np.ndarray, rng: np.random.Generator) -> dict[str, object]:
    newest = _auctions_before(at)
    any_ = newest + rng.integers(-OPEN, AHEAD, len(at))
    hot = rng.random(len(at)) < 0.5
    auctions = np.where(hot, newest // HOT_FOR * HOT_FOR, any_)
    people = FIRST + at // CYCLE
    channels = rng.choice(CHANNELS, len(at))
    pages = rng.integers(0, 1000, len(at))
    return {
        "auction": np.maximum(auctions, FIRST),
        "bidder": np.maximum(people - rng.integers(0, 1000, len(at)), FIRST),
        "price": np.rint(100 * 10 ** (6 * rng.random(len(at)))).astype(np.int64),
        "channel": channels,
        "url": [f"https://auctions/{c}/{p % 7}/{p}" for c, p in zip(channels, pages, strict=True)],
        "date_time": at,
    }


def _auctions_before(at: np.ndarray) -> np.ndarray:
    """The number of the newest auction at an event."""
    place = np.minimum(at % CYCLE, AUCTIONS)
    return FIRST + at // CYCLE * AUCTIONS + np.maximum(place - 1, 0)
