"""Hashes of keys, equal where the keys are: by columns, without a loop over rows.

What is equal here is what `agreeing` compares as equal. Unequal keys may have one hash, so whoever
goes by hashes finds too many rows, and none too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.spark.store.values import Column, Numbers, comparable

Hashes = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]

_NULL = 0x9E3779B97F4A7C15
_ODD = 0xD6E8FEB86659FD93
_BASE = 0x100000001B3
"""Odd numbers whose bits are spread: sums and products with them are taken modulo 2 ** 64."""
BYTES_AT_ONCE = 1 << 20
"""So many bytes of texts are looked at together, or those of one text."""


def are_hashed(of: pa.DataType) -> bool:
    types: Any = pa.types
    tests = (
        types.is_integer,
        types.is_boolean,
        types.is_floating,
        types.is_decimal128,
        types.is_date32,
        types.is_timestamp,
        types.is_string,
        types.is_binary,
    )
    return any(test(of) for test in tests)


def hashes(columns: Sequence[Column]) -> Hashes:
    """A hash for each combination of values, null among them.

    Args:
        columns: at least one, all of one length, of types that have hashes.
    """
    return (words_of(columns) >> np.uint64(32)).astype(np.uint32)


def words_of(columns: Iterable[Column]) -> Words:
    """The same as a hash of 64 bits; columns are asked for one by one."""
    found: Words = np.zeros(1, np.uint64)
    for column in columns:
        compared = comparable(column)
        words = _mixed(_words(compared))
        if compared.null_count:
            words[~compared.is_valid().to_numpy(zero_copy_only=False)] = np.uint64(_NULL)
        found = _mixed(found * np.uint64(_BASE) + words)
    return found


def _mixed(words: Words) -> Words:
    """Each word with its bits spread over all of it."""
    for _ in range(2):
        words = (words ^ (words >> np.uint64(32))) * np.uint64(_ODD)
    return words ^ (words >> np.uint64(32))


def _words(column: Column) -> Words:
    """A word for each value that has the same where another is equal; of nulls any."""
    of = column.type
    if pa.types.is_string(of) or pa.types.is_binary(of):
        return _of_bytes(column)
    if pa.types.is_decimal(of):
        data = np.frombuffer(column.buffers()[1], np.uint64)
        both = data[2 * column.offset :][: 2 * len(column)].reshape(-1, 2)
        low: Words = _mixed(both[:, 0]) + both[:, 1]
        return low
    if pa.types.is_floating(of):
        return _words_of(column.cast(pa.float64()), 0.0)
    if pa.types.is_boolean(of):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(of):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(of):
        column = column.view(pa.int64())
    return _words_of(column.cast(pa.int64()), 0)


def _words_of(column: Column, instead: float) -> Words:
    filled: Any = pc.fill_null(column, instead)
    words: Words = np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)).view(np.uint64)
    return words


def _of_bytes(column: Column) -> Words:
    """The bytes of each value as digits of one number, and how many they are."""
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(0, np.uint64)
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    # Each byte takes some words on the way, so not all are looked at together.
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], BYTES_AT_ONCE))
    bounds = np.unique(np.concatenate([[0], cuts, [len(column)]])).tolist()
    parts = [_of_digits(held, ends[first : last + 1]) for first, last in pairwise(bounds)]
    return np.concatenate(parts)


def _of_digits(held: npt.NDArray[np.uint8], ends: Numbers) -> Words:
    """The same of the values between these ends."""
    lengths = np.diff(ends)
    read = held[ends[0] : ends[-1]]
    longest = int(lengths.max(initial=0))
    powers = np.cumprod(np.full(longest + 1, _BASE, np.uint64), dtype=np.uint64)
    starts = ends[:-1] - ends[0]
    within = np.arange(len(read)) - np.repeat(starts, lengths)
    digits = (read.astype(np.uint64) + np.uint64(1)) * powers[within]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(digits, dtype=np.uint64)])
    words: Words = sums[starts + lengths] - sums[starts] + lengths.astype(np.uint64)
    return words
