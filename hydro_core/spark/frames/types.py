"""Item types as Spark types, and back.

A tuple is a struct with the fields `_1 … _n`, a row a struct with its column names, the unknown
Spark's null type. So a struct that Spark names `_1 … _n` is a tuple, any other one a row: the
translation loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as spark

from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.types.item import (
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
    Unknown,
)

_SCALARS: dict[str, spark.DataType] = {
    "boolean": spark.BooleanType(),
    "byte": spark.ByteType(),
    "short": spark.ShortType(),
    "integer": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
    "date": spark.DateType(),
    "timestamp": spark.TimestampType(),
    "timestamp_ntz": spark.TimestampNTZType(),
}
_NAMES = {type(data): name for name, data in _SCALARS.items()}


class UnsupportedType(ValueError):  # noqa: N818 - it becomes a diagnostic where the data was named
    """A Spark type that no item has (maps, intervals, variants)."""


def spark_type(item: ItemType) -> spark.DataType:
    """The Spark type of items of this type; every position may hold null.

    >>> spark_type(Tuple((Scalar("long"), Scalar("string")))).simpleString()
    'struct<_1:bigint,_2:string>'
    """
    match item:
        case Unknown():
            return spark.NullType()
        case Scalar(name):
            return _SCALARS[name]
        case Decimal(precision, scale):
            return spark.DecimalType(precision, scale)
        case Tuple(fields):
            names = (f"_{i}" for i in range(1, len(fields) + 1))
            return _struct(zip(names, fields, strict=True))
        case Row(fields):
            return _struct((field.name, field.type) for field in fields)
        case Array(element):
            return spark.ArrayType(spark_type(element), containsNull=True)


def rows_type(item: ItemType, *, nullable: bool = True) -> spark.StructType:
    """The type of rows (item, t).

    Where no item is null, Spark may know it: checks for None then cost nothing.
    """
    return spark.StructType(
        [
            spark.StructField(ITEM, spark_type(item), nullable),
            spark.StructField(TICK, spark.LongType()),
        ]
    )


def item_type(data: spark.DataType) -> ItemType:
    """The item type of a Spark type.

    >>> str(item_type(spark_type(Tuple((Scalar("long"),)))))
    '(long)'
    """
    match data:
        case spark.NullType():
            return UNKNOWN
        case spark.DecimalType():
            return Decimal(data.precision, data.scale)
        case spark.ArrayType():
            return Array(item_type(data.elementType))
        case spark.StructType():
            types = tuple(item_type(field.dataType) for field in data.fields)
            if data.names == [f"_{i}" for i in range(1, len(types) + 1)]:
                return Tuple(types)
            return Row(tuple(map(Field, data.names, types)))
        case spark.CharType() | spark.VarcharType():
            return Scalar("string")
    if type(data) not in _NAMES:
        raise UnsupportedType(f"items cannot have the Spark type {data.simpleString()}")
    return Scalar(_NAMES[type(data)])


def _struct(fields: Iterable[tuple[str, ItemType]]) -> spark.StructType:
    return spark.StructType([spark.StructField(name, spark_type(item)) for name, item in fields])
