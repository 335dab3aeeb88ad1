"""Items as columns: fields, keys, coercions, and results of the program's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.classes import RunningResult
from hydro_core.catalog.group import made_by_key
from hydro_core.catalog.type_rules import accumulated
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.plan.tick_plan import Kind, result_key
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import apply
from hydro_core.spark.lower.registry import Step
from hydro_core.types.common import common_type, type_of
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
    is_integer,
)
from hydro_core.types.values import conform

# Items as columns: fields, conversions, and results of the program's functions.


def null(item: ItemType) -> Column:
    return F.lit(None).cast(spark_type(item))


def literal(value: Any, item: ItemType) -> Column:
    """A constant item of this type."""
    value = conform(value, item)
    if value is None:
        return null(item)
    match item:
        case Tuple(fields):
            return make_tuple(*map(literal, value, fields))
        case Row(fields):
            return make_row((f.name, literal(value[f.name], f.type)) for f in fields)
        case Array(element):
            return F.array(*(literal(x, element) for x in value)).cast(spark_type(item))
        case _:
            return F.lit(value).cast(spark_type(item))


def at(column: Column, item: ItemType, position: int) -> Column:
    """The field at a position of a tuple or row; a null item has null fields."""
    match item:
        case Tuple():
            return column.getField(f"_{position + 1}")
        case Row(fields):
            return column.getField(fields[position].name)
        case _:
            return F.lit(None)


def type_at(item: ItemType, position: int) -> ItemType:
    match item:
        case Tuple(fields):
            return fields[position]
        case Row(fields):
            return fields[position].type
        case _:
            return UNKNOWN


def named(column: Column, item: ItemType, name: str) -> tuple[Column, ItemType]:
    """The column `name` of a row, and its type."""
    found = item.column(name) if isinstance(item, Row) else None
    return (F.lit(None), UNKNOWN) if found is None else (column.getField(name), found)


def make_tuple(*parts: Column) -> Column:
    return F.struct(*(part.alias(f"_{i}") for i, part in enumerate(parts, start=1)))


def make_row(fields: Iterable[tuple[str, Column]]) -> Column:
    return F.struct(*(column.alias(name) for name, column in fields))


def column_types(item: ItemType) -> dict[str, ItemType]:
    """The columns of a row type; none of another type."""
    return {f.name: f.type for f in item.fields} if isinstance(item, Row) else {}


def own_columns(item: ItemType, column: Column | None = None) -> dict[str, Column]:
    """The columns of a row, read from the column `item` or the given one; none if it is no row."""
    row = F.col(ITEM) if column is None else column
    return {name: row.getField(name) for name in column_types(item)}


def fn_type(fn: Fn, item: ItemType) -> ItemType:
    """The type of the result of a program's function for an item."""
    return result_type(fn, (item,), spread=True)


def evaluated(fn: Fn, item: ItemType) -> Column:
    """`fn` of the column `item`, in the type of its result."""
    return apply(fn, F.col(ITEM), item, tick=F.col(TICK))


def convert(column: Column, item: ItemType, to: ItemType) -> Column:
    """The items as items of a wider type: columns by name, numbers coerced."""
    if item == to or isinstance(to, Unknown):
        return column
    match item, to:
        case Unknown(), _:
            return column.cast(spark_type(to))
        case Tuple(fields), Tuple(others):
            parts = [
                convert(at(column, item, i), f, o)
                for i, (f, o) in enumerate(zip(fields, others, strict=True))
            ]
            return F.when(column.isNotNull(), make_tuple(*parts))
        case Row(), Row(fields):
            columns = [(f.name, convert(*named(column, item, f.name), f.type)) for f in fields]
            return F.when(column.isNotNull(), make_row(columns))
        case Array(element), Array(other):
            return F.transform(column, lambda x: convert(x, element, other))
        case _:
            return column.cast(spark_type(to))


Side = tuple[Column | None, ItemType]
"""An item, None for a missing one, and its type."""


def row_of_two(
    to: ItemType, on: Sequence[str], key: Callable[[int, ItemType], Column], *sides: Side
) -> Column:
    """The columns `on`, then the left's others, then the right's, named by a row type.

    Args:
        to: the row type.
        on: the columns that both sides have.
        key: gives one of these, by its index, as the given type.
        sides: the left and the right item.
    """
    types = list(column_types(to).values())
    made = [key(i, of) for i, of in enumerate(types[: len(on)])]
    others = [(*side, name) for side in sides for name in column_types(side[1]) if name not in on]
    for of, (column, item, name) in zip(types[len(on) :], others, strict=True):
        made.append(null(of) if column is None else convert(*named(column, item, name), of))
    return make_row(zip(column_types(to), made, strict=True))


def common(one: ItemType, other: ItemType) -> ItemType:
    """The common type in which keys of two types are compared."""
    return common_type(one, other) or one


def key_fields(item: ItemType, by: Sequence[str] | None) -> list[Field]:
    """The names and types of a key: of the columns `by`, or of the first field of a tuple."""
    if by:
        return [Field(name, named(F.lit(None), item, name)[1]) for name in by]
    return [Field("_1", type_at(item, 0))]


def key_of(column: Column, item: ItemType, by: Sequence[str] | None) -> list[Column]:
    """The parts of an item's key."""
    if by:
        return [named(column, item, name)[0] for name in by]
    return [at(column, item, 0)]


def reversed_order(column: Column, item: ItemType) -> Column:
    """A column whose ascending order is the descending order of `column`, at any depth."""
    return F.struct(column.isNull().alias("none"), _reversed(column, item).alias("value"))


def _reversed(column: Column, item: ItemType) -> Column:
    match item:
        case Unknown():
            return F.lit(0)
        case Array(element):
            parts = F.transform(column, lambda x: F.struct(F.lit(0), reversed_order(x, element)))
            end = F.array(F.struct(F.lit(1), reversed_order(null(element), element)))
            return F.concat(parts, end)
        case Tuple() | Row():
            fields = [(at(column, item, i), type_at(item, i)) for i in range(len(item.fields))]
            return make_tuple(*(reversed_order(*field) for field in fields))
        case Decimal():
            return -column
        case Scalar(name):
            return _REVERSED[name](column) if name in _REVERSED else F.bitwise_not(column)


def _complement(column: Column) -> Column:
    """Texts and bytes as complemented digits, with an end mark greater than any digit: so a text
    precedes its own prefixes.
    """
    digits = F.translate(F.hex(column), "0123456789ABCDEF", "FEDCBA9876543210")
    return F.concat(digits, F.lit("G"))


def _opposite(column: Column) -> Column:
    return F.struct(~F.isnan(column), -column)


_REVERSED: Mapping[str, Callable[[Column], Column]] = {
    "boolean": lambda column: ~column,
    "float": _opposite,
    "double": _opposite,
    "string": _complement,
    "binary": _complement,
    "date": lambda column: F.bitwise_not(F.unix_date(column)),
    "timestamp": lambda column: F.bitwise_not(F.unix_micros(column)),
    "timestamp_ntz": lambda column: F.bitwise_not(F.unix_micros(column.cast("timestamp"))),
}


# Keyed items: the argument of a function, the item of a key and its result, and groups.
#
# A null equals a null in the language. So Spark joins, and routes, by two columns for each part of
# a key: its value, with a default for null, and a null flag. Rows after a join are grouped by the
# same two columns: for a group by the part itself, Spark would not see that the rows are already
# partitioned by it, and would add another exchange.


ACC = "acc"


def rows_go(step: Step) -> bool:
    """True if rows that results are computed from may be retracted."""
    cls = step.node.cls
    return cls.changes if isinstance(cls, RunningResult) else step.input.kind is Kind.G


def keys_of(step: Step) -> GroupKeys:
    """The key of the input's items; no parts for a global result."""
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
    """The argument of a keyed function: a row whole, the value of a tuple with a key."""
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
    """The output's item from key columns k0, k1, … and an accumulator: the accumulator, `(k, acc)`
    or a row.
    """
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
    """True for a global result, which is the accumulator itself."""
    own = made_by_key(step.node.cls)
    return own is not None and not own.keyed


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """The parts of a key; without any, all rows are one group."""

    parts: tuple[Column, ...] = ()
    defaults: tuple[Column | None, ...] = ()
    """Defaults for null, of the parts by which a join has partitioned the rows."""

    @classmethod
    def of(cls, parts: Iterable[Column]) -> GroupKeys:
        """The key of rows that no join has partitioned."""
        found = tuple(parts)
        return cls(found, (None,) * len(found))

    @property
    def names(self) -> list[str]:
        """The names of the parts: k0, k1, …."""
        return [f"k{i}" for i in range(len(self.parts))]

    @property
    def columns(self) -> list[Column]:
        """The columns by which rows are grouped."""
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
        """The parts, from the columns by which rows are grouped."""
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
        """(k0 …, the other columns, the results) of each group of rows."""
        return self.plainly(
            frame.groupBy(*self.columns, *other_columns).agg(*(results or [F.lit(0)]))
        )

    def plainly(self, frame: DataFrame) -> DataFrame:
        """The frame with the parts in place of the grouping columns."""
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
    # Where Spark compares a part in another form, it exchanges the rows in any case.
    is_known = all(d is not None for d, is_met in zip(defaults, lie, strict=True) if is_met)
    return GroupKeys(parts, defaults) if is_known else plain


def _both(name: str) -> tuple[str, str]:
    return _value(name), _is_null(name)


def _value(name: str) -> str:
    return f"{name}_value"


def _is_null(name: str) -> str:
    return f"{name}_is_null"


def _default(item: ItemType) -> Column | None:
    """The default for a null of this type in comparisons; None for types that Spark normalizes
    first.
    """
    if is_integer(item) or isinstance(item, Decimal):
        return F.lit(0).cast(spark_type(item))
    make = _DEFAULTS.get(item.name) if isinstance(item, Scalar) else None
    return None if make is None else make()


# Without floating numbers, which Spark normalizes before it compares them.
_DEFAULTS: Mapping[str, Callable[[], Column]] = {
    "boolean": lambda: F.lit(False),
    "string": lambda: F.lit(""),
    "binary": lambda: F.lit("").cast("binary"),
    "date": lambda: F.date_from_unix_date(F.lit(0)),
    "timestamp": lambda: F.timestamp_micros(F.lit(0)),
    "timestamp_ntz": lambda: F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"),
}
