"""Clock times at the destination become instants.

The data gives an arrival as the clock at the destination shows it (`1504` is 15:04), without its
day. A flight lasts less than a day, so it is the first time after the departure at which that clock
shows it.
"""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

# The data's table of airports has none in Puerto Rico and on the Virgin Islands, and flights go
# there.
_ZONES_NOT_LISTED = {
    "BQN": "America/Puerto_Rico",
    "PSE": "America/Puerto_Rico",
    "SJU": "America/Puerto_Rico",
    "STT": "America/St_Thomas",
}

_HOUR = 3600
_DAY = 24 * _HOUR
_START = int(dt.datetime(2012, 12, 31, tzinfo=dt.UTC).timestamp())
_HOURS = 24 * 368


def instants_of_arrival(
    departure: pa.ChunkedArray,
    clock: pa.ChunkedArray,
    destination: pa.ChunkedArray,
    airports: pa.Table,
) -> pa.Array:
    """The instants of the arrivals, in whole seconds.

    Args:
        departure: instants.
        clock: what the clock at the destination shows, as hhmm.
        destination: codes of airports.
        airports: the landed table, for the time zones.
    """
    zones = dict(
        zip(airports["airport"].to_pylist(), airports["time_zone"].to_pylist(), strict=True)
    )
    zones |= _ZONES_NOT_LISTED
    coded = pa.chunked_array(destination).combine_chunks().dictionary_encode()
    offsets = np.stack([_offsets(zones[airport]) for airport in coded.dictionary.to_pylist()])
    place = coded.indices.to_numpy()

    left = departure.cast(pa.timestamp("s", tz="UTC")).cast(pa.int64()).to_numpy()
    hhmm = clock.to_numpy()
    local_left = left + offsets[place, (left - _START) // _HOUR]
    local_midnight = local_left - local_left % _DAY
    local = local_midnight + (hhmm // 100 * 60 + hhmm % 100) * 60
    local += np.where(local <= local_left, _DAY, 0)
    # The offset at a local time is that of the instant it stands for: a first guess finds it, but
    # in the hour of a clock change, in which no flight of the data lands.
    guess = local - offsets[place, (left - _START) // _HOUR]
    instant = local - offsets[place, (guess - _START) // _HOUR]
    return pa.array(instant).cast(pa.timestamp("s", tz="UTC"))


def _offsets(zone: str) -> np.ndarray:
    """The zone's distance from UTC in seconds, for every hour from the eve of 2013 on."""
    info = ZoneInfo(zone)
    return np.array(
        [_offset(info, _START + hour * _HOUR) for hour in range(_HOURS)], dtype=np.int64
    )


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = dt.datetime.fromtimestamp(instant, tz=zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
