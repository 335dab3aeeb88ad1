"""The routing function: XXH64 as it is published, and values that are equal go to one shard."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from hydro_core.types.item import DOUBLE, LONG, STRING, Scalar
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.routing import hashed, shard_of
from hydro_core.types.values import RowItem, Struct


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        # of the reference implementation's own checks
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_it_is_xxh64(text: bytes, seed: int, expected: int) -> None:
    assert hashed(text, seed=seed) == expected


def test_a_long_is_hashed_as_its_bytes() -> None:
    for value in (0, 1, -1, 2**63 - 1, -(2**63)):
        assert hashed(value) == hashed(value.to_bytes(8, "little", signed=True))


def test_equal_values_go_to_one_shard() -> None:
    east = timezone(timedelta(hours=2))
    same = [
        (0.0, -0.0),
        (float("nan"), -float("nan")),
        (
            datetime(2024, 1, 1, tzinfo=UTC),
            datetime(2024, 1, 1, 2, tzinfo=east),
        ),
        (Struct((1, "a")), RowItem(k=1, name="a")),
        (date(1970, 1, 2), 1),
    ]
    for one, other in same:
        assert hashed(one) == hashed(other)
    cents = DecimalType(10, 2)
    assert hashed(Decimal("1.5"), cents) == hashed(Decimal("1.50"), cents) == hashed(150)


def test_a_null_is_a_value() -> None:
    assert shard_of([(None, LONG)], 7) == shard_of([(None, STRING)], 7)
    assert hashed([None, 1]) == hashed([1, None]) == hashed(1)


def test_shards_are_about_as_large_as_each_other() -> None:
    numbers = range(3000)
    kinds = {LONG: numbers, STRING: [*map(str, numbers)], DOUBLE: [n / 4 for n in numbers]}
    for item, values in kinds.items():
        for shards in (2, 3, 8):
            found = Counter(shard_of([(value, item)], shards) for value in values)
            assert max(found.values()) < 1.2 * 3000 / shards


def test_what_has_no_values_goes_to_the_first() -> None:
    assert shard_of([], 5) == 0
    assert shard_of([(True, Scalar("boolean"))], 5) == shard_of([(1, LONG)], 5)
