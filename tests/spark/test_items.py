"""Items travel to Spark and back as they are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from hydro_core.spark.frames.leaf import frame_of
from hydro_core.spark.frames.relation import ITEM, TICK
from hydro_core.spark.frames.types import UnsupportedType, item_type, spark_type
from hydro_core.types.arrow import from_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import LONG, UNKNOWN, Array, ItemType, Tuple
from hydro_core.types.values import RowItem, Struct

pytestmark = pytest.mark.spark


def items_of(frame: DataFrame, item: ItemType) -> list[tuple[int, Any]]:
    """The pairs (tick, item) of a DataFrame (item, t), in the order of its rows; runs the job."""
    # Where Spark knows a field to be never null, Arrow refuses it within a struct that is null.
    nullable = F.col(ITEM).cast(spark_type(item)).alias(ITEM)
    table = frame.select(nullable, TICK).toArrow()
    return list(
        zip(from_arrow(table.column(TICK), LONG), from_arrow(table.column(ITEM), item), strict=True)
    )


_ITEMS: list[tuple[str | ItemType, list[Any]]] = [
    ("long", [None, -(2**63), 2**63 - 1, 0]),
    ("double", [float("nan"), float("inf"), -0.0, None, 5e-324]),
    ("float", [1.5, None]),
    ("tinyint", [-128, None]),
    ("string", ["", "\0a", "𝒳é", None]),
    ("binary", [b"", b"\0\xff", None]),
    ("boolean", [True, False, None]),
    ("date", [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    ("timestamp", [dt.datetime(1, 1, 1, tzinfo=dt.UTC), None]),
    ("timestamp", [dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)]),
    ("timestamp_ntz", [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None]),
    ("decimal(38,10)", [Decimal("1.5000000000"), Decimal("-9999999999999999999.9999999999")]),
    ("decimal(3,0)", [Decimal(-7), None]),
    (UNKNOWN, [None, None]),
    (Array(UNKNOWN), [[], [None], None]),
    ("array<long>", [[], [None, 1], None, [3]]),
    ("array<array<string>>", [[[], ["a", None], None], [], None]),
    (
        "(long, struct<_1: string, _2: array<struct<_1: long>>>)",
        [Struct((1, Struct(("a", [Struct((1,)), None])))), None, Struct((None, None))],
    ),
    (
        "a long, b struct<x: timestamp>",
        [
            RowItem(a=1, b=RowItem(x=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))),
            RowItem(a=None, b=None),
        ],
    ),
    (Tuple(()), [Struct(()), None]),
    (Tuple((UNKNOWN,)), [Struct((None,)), None]),
    ("long", []),
]  # fmt: skip


def test_items_come_back_as_they_went(spark: SparkSession) -> None:
    for ddl, items in _ITEMS:
        item = parse_ddl(ddl) if isinstance(ddl, str) else ddl
        pairs = list(enumerate(items))
        frame = frame_of(spark, pairs, item)
        assert item_type(frame.schema["item"].dataType) == item
        # NaN is not itself: compared as printed, which also tells -0.0 from 0.0 and 1 from 1.0.
        assert repr(items_of(frame, item)) == repr(pairs), item


def test_types_come_back_as_they_went() -> None:
    for ddl, _ in _ITEMS:
        item = parse_ddl(ddl) if isinstance(ddl, str) else ddl
        assert item_type(spark_type(item)) == item


def test_maps_are_no_items() -> None:
    maps = spark_types.MapType(spark_types.StringType(), spark_types.LongType())
    with pytest.raises(UnsupportedType, match="map<string,bigint>"):
        item_type(maps)
