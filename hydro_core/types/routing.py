"""The routing function: which of n shards has an item, by the values that it is routed by.

It is XXH64 with Spark's seed 42, folded over the values from left to right, so that Spark computes
the same as Python: `pmod(xxhash64(values), n)`. Equal values go to the same shard whatever their
width: an integer is hashed as a long, a float as a double. It must never change: where rows of
earlier ticks are depends on it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hydro_core.types.item import UNKNOWN, Array, ItemType, Row, Tuple, children
from hydro_core.types.item import Decimal as DecimalType

SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_ALL = (1 << 64) - 1
_NAN = 0x7FF8000000000000
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
_LONG_DIGITS = 18
"""Decimals with up to so many digits are hashed as a long, longer ones by their bytes."""


def shard_of(values: Iterable[tuple[Any, ItemType]], shards: int) -> int:
    """The shard of an item with these values; without values, the first.

    >>> from hydro_core.types.item import LONG, STRING
    >>> [shard_of([(n, LONG)], 4) for n in range(8)]
    [0, 2, 1, 3, 3, 1, 2, 1]
    >>> shard_of([("ann", STRING)], 4), shard_of([], 4)
    (3, 0)
    """
    found = list(values)
    if not found:
        return 0
    state = SEED
    for value, item in found:
        state = hashed(value, item, state)
    return _signed(state) % shards


def hashed(value: Any, item: ItemType = UNKNOWN, seed: int = SEED) -> int:
    """The hash of a value; a null leaves the seed, a value with parts is hashed part by part.

    Args:
        value: an item.
        item: its type; only the digits of a decimal depend on it.
        seed: the hash of the values before it.
    """
    match value:
        case None:
            return seed
        case bool() | int():
            return _of_long(int(value), seed)
        case float():
            return _of_long(_bits(value), seed)
        case str() | bytes():
            return bytes_hashed(value.encode() if isinstance(value, str) else value, seed)
        case datetime():
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return _of_long((naive - _EPOCH) // timedelta(microseconds=1), seed)
        case date():
            return _of_long((value - _EPOCH_DAY).days, seed)
        case Decimal():
            return _of_decimal(value, item, seed)
    for part, of in _parts(value, item):
        seed = hashed(part, of, seed)
    return seed


def _parts(value: Any, item: ItemType) -> Iterable[tuple[Any, ItemType]]:
    parts = list(dict.values(value)) if isinstance(value, dict) else value
    match item:
        case Array(element):
            return ((part, element) for part in parts)
        case Tuple() | Row():
            return zip(parts, (of for _, of in children(item)), strict=True)
        case _:
            return ((part, UNKNOWN) for part in parts)


def _bits(value: float) -> int:
    """The bits of a double; all NaN are one, and so are both zeros."""
    if math.isnan(value):
        return _NAN
    (bits,) = struct.unpack("<Q", struct.pack("<d", value + 0.0))
    return int(bits)


def _of_decimal(value: Decimal, item: ItemType, seed: int) -> int:
    digits, scale = (item.precision, item.scale) if isinstance(item, DecimalType) else (38, 0)
    sign, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    size = int("".join(map(str, figures))) * 10 ** max(0, scale + exponent)
    unscaled = (-1 if sign else 1) * (size // 10 ** max(0, -scale - exponent))
    if digits <= _LONG_DIGITS:
        return _of_long(unscaled, seed)
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return bytes_hashed(unscaled.to_bytes(bits // 8 + 1, "big", signed=True), seed)


def _of_long(value: int, seed: int) -> int:
    state = (seed + _P5 + 8) & _ALL
    state ^= (_rotated((value & _ALL) * _P2, 31) * _P1) & _ALL
    return _finished((_rotated(state, 27) * _P1 + _P4) & _ALL)


def bytes_hashed(data: bytes, seed: int) -> int:
    """XXH64 of bytes, not negative."""
    size = len(data)
    state, done = _of_stripes(data, seed) if size >= 32 else (seed + _P5, 0)
    state = (state + size) & _ALL
    while done + 8 <= size:
        (word,) = struct.unpack_from("<Q", data, done)
        state ^= (_rotated(word * _P2, 31) * _P1) & _ALL
        state = (_rotated(state, 27) * _P1 + _P4) & _ALL
        done += 8
    if done + 4 <= size:
        (half,) = struct.unpack_from("<I", data, done)
        state ^= (half * _P1) & _ALL
        state = (_rotated(state, 23) * _P2 + _P3) & _ALL
        done += 4
    for byte in data[done:]:
        state ^= (byte * _P5) & _ALL
        state = (_rotated(state, 11) * _P1) & _ALL
    return _finished(state)


def _of_stripes(data: bytes, seed: int) -> tuple[int, int]:
    """The state after all whole stripes of 32 bytes, and the number of their bytes."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    done = len(data) // 32 * 32
    for words in struct.iter_unpack("<4Q", data[:done]):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    turned = zip(lanes, (1, 7, 12, 18), strict=True)
    state = sum(_rotated(lane, bits) for lane, bits in turned) & _ALL
    for lane in lanes:
        state = ((state ^ _round(0, lane)) * _P1 + _P4) & _ALL
    return state, done


def _round(lane: int, word: int) -> int:
    return (_rotated(lane + word * _P2, 31) * _P1) & _ALL


def _rotated(value: int, bits: int) -> int:
    value &= _ALL
    return ((value << bits) | (value >> (64 - bits))) & _ALL


def _finished(state: int) -> int:
    state ^= state >> 33
    state = (state * _P2) & _ALL
    state ^= state >> 29
    state = (state * _P3) & _ALL
    return state ^ (state >> 32)


def _signed(state: int) -> int:
    return state - (1 << 64) if state >> 63 else state
