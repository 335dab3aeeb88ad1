"""Items by key: what a function gets of one, the item that a key and its result make; groups.

A null is equal to a null in the language. So Spark joins, and routes, by two columns for each part
of a key: its value, a default in place of null, and whether it is null. Behind a join rows are
grouped by the same two columns: of a group by the part itself Spark would not see that the rows lie
right for it already, and would send them through another exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.classes import Running
from hydro_core.catalog.results import made_by_key
from hydro_core.catalog.type_rules import accumulated
from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import result_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.items.columns import (
    at,
    column_types,
    convert,
    key_fields,
    key_of,
    make_row,
    make_tuple,
    named,
    type_at,
)
from hydro_core.spark.lower.registry import Step
from hydro_core.types.common import type_of
from hydro_core.types.item import Decimal, ItemType, Row, Scalar, is_integer

ACC = "acc"


def rows_go(step: Step) -> bool:
    """Whether rows go again from what results are made of."""
    cls = step.node.cls
    return cls.changes if isinstance(cls, Running) else step.input.kind is Kind.G


def keys_of(step: Step) -> GroupKeys:
    """The key of the input's items; without parts for a result of all items."""
    if result_key(step.node) is None:
        return GroupKeys()
    return group_keys(step.input, step.arg("by"))


def keys_of_results(step: Step) -> GroupKeys:
    """The key of the output's items, in the types of the input's."""
    if result_key(step.node) is None:
        return GroupKeys()
    by = step.arg("by")
    given, made = key_fields(step.input.item, by), key_fields(step.item, by)
    parts = key_of(F.col(ITEM), step.item, by)
    return GroupKeys.of(
        convert(part, own.type, to.type) for part, own, to in zip(parts, made, given, strict=True)
    )


def keyed_value(step: Step) -> tuple[Column, ItemType]:
    """What a function gets of an item: rows whole, of tuples with a key the value."""
    item = step.input.item
    if _is_whole(step) or step.arg("by"):
        return F.col(ITEM), item
    return at(F.col(ITEM), item, 1), type_at(item, 1)


def accumulator_type(step: Step) -> ItemType:
    if _is_whole(step):
        return step.item
    fn, (_, item) = step.arg("f"), keyed_value(step)
    start = item if step.node.args.get("init", item) is item else type_of(step.arg("init"))
    return accumulated(start, fn, item)


def keyed_item(step: Step, acc_type: ItemType) -> Column:
    """The output's item of key columns k0, k1, … and an accumulator: it, `(k, acc)` or a row."""
    acc = F.col(ACC)
    if _is_whole(step):
        return acc
    by = step.arg("by")
    keys = key_fields(step.input.item, by)
    if not by:
        return make_tuple(convert(F.col("k0"), keys[0].type, type_at(step.item, 0)), acc)
    position = {name: i for i, name in enumerate(by)}
    columns = []
    for name, to in column_types(step.item).items():
        if name in position:
            i = position[name]
            columns.append((name, convert(F.col(f"k{i}"), keys[i].type, to)))
        elif isinstance(acc_type, Row):
            columns.append((name, convert(*named(acc, acc_type, name), to)))
        else:
            columns.append((name, convert(acc, acc_type, to)))
    return make_row(columns)


def accumulator_in(step: Step, item: Column, acc: ItemType) -> Column:
    of = step.item
    if _is_whole(step):
        return item
    if not step.arg("by"):
        return convert(at(item, of, 1), type_at(of, 1), acc)
    if isinstance(acc, Row):
        return convert(item, of, acc)
    return convert(*named(item, of, "value"), acc)


def _is_whole(step: Step) -> bool:
    """Whether there is one result of all items, which is the accumulator itself."""
    own = made_by_key(step.node.cls)
    return own is not None and not own.keyed


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
