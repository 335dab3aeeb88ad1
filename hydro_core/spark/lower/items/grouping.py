"""Keys to group by, so that rows which a join has brought together stay where they are.

A null is equal to a null in the language. So Spark joins, and routes, by two columns for each part
of a key: its value, a default in place of null, and whether it is null. Behind a join rows are
grouped by the same two columns: of a group by the part itself Spark would not see that the rows lie
right for it already, and would send them through another exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.items.columns import key_fields, key_of
from hydro_core.types.item import Decimal, ItemType, Scalar, is_integer


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """The parts of a key; without any, all rows are one group."""

    parts: tuple[Column, ...] = ()
    defaults: tuple[Column | None, ...] = ()
    """In place of a null, of the parts by which a join has brought the rows together."""

    @classmethod
    def of(cls, parts: Iterable[Column]) -> GroupKeys:
        """Of rows that nothing has brought together."""
        found = tuple(parts)
        return cls(found, (None,) * len(found))

    @property
    def names(self) -> list[str]:
        """The names of the parts: k0, k1, …."""
        return [f"k{i}" for i in range(len(self.parts))]

    @property
    def columns(self) -> list[Column]:
        """What rows are grouped by, of their items."""
        found = []
        for name, part, default in zip(self.names, self.parts, self.defaults, strict=True):
            if default is None:
                found.append(part.alias(name))
            else:
                found.append(F.coalesce(part, default).alias(_value(name)))
                found.append(part.isNull().alias(_is_null(name)))
        return found

    @property
    def by(self) -> list[str]:
        """The names of these columns."""
        pairs = zip(self.names, self.defaults, strict=True)
        return [n for name, d in pairs for n in ((name,) if d is None else _both(name))]

    @property
    def back(self) -> list[Column]:
        """The parts, of the columns that rows have been grouped by."""
        found = []
        for name, default in zip(self.names, self.defaults, strict=True):
            part = F.col(name)
            if default is not None:
                part = F.when(~F.col(_is_null(name)), F.col(_value(name)))
            found.append(part.alias(name))
        return found

    def grouped(
        self, frame: DataFrame, other_columns: Sequence[str], results: Sequence[Column]
    ) -> DataFrame:
        """(k0 …, beside, the results) of each group of rows."""
        return self.plainly(
            frame.groupBy(*self.columns, *other_columns).agg(*(results or [F.lit(0)]))
        )

    def plainly(self, frame: DataFrame) -> DataFrame:
        """The frame with the parts, in place of what rows have been grouped by."""
        if self.by == self.names:
            return frame
        others = [name for name in frame.columns if name not in self.by]
        return frame.select(*self.back, *map(F.col, others))


def group_keys(relation: Relation, by: Sequence[str] | None) -> GroupKeys:
    """The key of the relation's items: the columns `by`, or the first field of a tuple."""
    parts = tuple(key_of(F.col(ITEM), relation.item, by))
    fields, partitioned_by = key_fields(relation.item, by), relation.partitioned_by
    plain = GroupKeys.of(parts)
    if (
        partitioned_by is None
        or bool(partitioned_by) != bool(by)
        or not set(partitioned_by) <= set(by or ())
    ):
        return plain
    lie = [not partitioned_by or field.name in partitioned_by for field in fields]
    defaults = tuple(
        _default(f.type) if is_met else None for f, is_met in zip(fields, lie, strict=True)
    )
    # Where Spark looks at a part in another form, it exchanges the rows in any case.
    is_known = all(d is not None for d, is_met in zip(defaults, lie, strict=True) if is_met)
    return GroupKeys(parts, defaults) if is_known else plain


def _both(name: str) -> tuple[str, str]:
    return _value(name), _is_null(name)


def _value(name: str) -> str:
    return f"{name}_value"


def _is_null(name: str) -> str:
    return f"{name}_is_null"


def _default(item: ItemType) -> Column | None:
    """What Spark takes in place of a null of this type, where it compares values as they are."""
    if is_integer(item) or isinstance(item, Decimal):
        return F.lit(0).cast(spark_type(item))
    make = _DEFAULTS.get(item.name) if isinstance(item, Scalar) else None
    return None if make is None else make()


# Not of floating numbers, which Spark first makes equal where they count as equal.
_DEFAULTS: Mapping[str, Callable[[], Column]] = {
    "boolean": lambda: F.lit(False),
    "string": lambda: F.lit(""),
    "binary": lambda: F.lit("").cast("binary"),
    "date": lambda: F.date_from_unix_date(F.lit(0)),
    "timestamp": lambda: F.timestamp_micros(F.lit(0)),
    "timestamp_ntz": lambda: F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"),
}
