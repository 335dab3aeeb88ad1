"""Results along the ticks of functions that Spark has no aggregate for: one pass over each key.

The values of a key are folded in the order of their ticks, and after each tick the accumulator is a
result, which is there until the next one. A commutative function may be given its values so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import FOREVER, TICK, UNTIL
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.udf import scanned_in_python
from hydro_core.spark.lower.aggregates.folds import wrapped
from hydro_core.spark.lower.by_key.merging import STATE
from hydro_core.spark.lower.items.columns import convert
from hydro_core.spark.lower.items.grouping import GroupKeys
from hydro_core.spark.lower.items.keyed import ACC
from hydro_core.types.item import Array, ItemType

VALUE = "w"
"""The column of a value, the only field `x` of a struct; null for none."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """The accumulators of a function after each value."""

    fn: Fn
    value: Column
    of: ItemType
    acc: ItemType
    before: Column | None = None
    """The accumulator in a stored result, in the column `state`; None: none is stored."""
    start: Column | None = None
    """Where a fold starts; a reduction, which has none, starts with its first value."""

    @property
    def resumes(self) -> bool:
        """Whether there may be stored results."""
        return self.before is not None

    def partial(self, keys: GroupKeys, rows: DataFrame) -> DataFrame:
        """(the key, t, w): the values."""
        return rows.select(*keys.columns, TICK, wrapped(self.value).alias(VALUE))

    def of_no_rows(self, rows: DataFrame) -> DataFrame:
        """(w): no value."""
        return rows.where(F.lit(False)).agg(F.first(wrapped(self.value)).alias(VALUE))

    def of_stored(self, keys: GroupKeys, stored: DataFrame, state: Column) -> DataFrame:
        """(the key, state): the stored items."""
        return stored.select(*keys.columns, state)

    def along(self, keys: GroupKeys, parts: DataFrame) -> DataFrame:
        """(the key, t, until, state, acc): the accumulator after each tick of a key."""
        value = F.col(VALUE)
        pair = F.struct(F.col(TICK).alias("at"), value.getField("x").alias("x"))
        pairs = F.sort_array(F.collect_list(F.when(value.isNotNull(), pair))).alias("pairs")
        # What is stored, and the start of what has no values, come without one.
        head = F.min(F.when(value.isNull(), F.col(TICK))).alias("head")
        state = [F.first(STATE, ignorenulls=True).alias(STATE)] if self.resumes else []
        grouped = parts.groupBy(*keys.by).agg(pairs, head, *state)
        values = F.transform("pairs", lambda pair: pair.getField("x"))
        found = grouped.withColumn("accs", self._accumulators(values))
        ats = F.concat(F.array("head"), F.transform("pairs", lambda pair: pair.getField("at")))
        each = F.arrays_zip(
            F.col("accs").alias(ACC),
            ats.alias(TICK),
            F.slice(ats, F.lit(2), F.size(ats)).alias(UNTIL),
        )
        other_columns = [*keys.by, *([STATE] if self.resumes else [])]
        made = F.inline(each).alias(ACC, TICK, UNTIL)
        rows = together(exploded(found, [*other_columns, made], reads=("head", "accs", "pairs")))
        # Of a tick, the accumulator after its last value.
        is_last = F.col(TICK).isNotNull() & ~F.col(TICK).eqNullSafe(F.col(UNTIL))
        return rows.where(is_last).withColumn(UNTIL, F.coalesce(UNTIL, F.lit(FOREVER)))

    def made(self) -> Mapping[str, Column]:
        """The result."""
        return {ACC: F.col(ACC)}

    def _accumulators(self, values: Column) -> Column:
        """The accumulators after no, one, two … of the values; null where there is none."""
        of_type = spark_type(self.acc)
        if self.start is not None:
            rest = scanned_in_python(self.fn, self.acc, self.of, values, self.start)
            return F.concat(F.array(self.start.cast(of_type)), rest)
        none = F.lit(None).cast(of_type)
        first = convert(F.get(values, F.lit(0)), self.of, self.acc).cast(of_type)
        following = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
        if self.before is None:
            rest = scanned_in_python(self.fn, self.acc, self.of, following, first, pairwise=True)
            return F.concat(F.array(none, first), rest)
        known = F.col(STATE).isNotNull()
        start = F.when(known, self.before).otherwise(first)
        values = F.when(known, values).otherwise(following)
        rest = scanned_in_python(self.fn, self.acc, self.of, values, start, pairwise=True)
        no_more = F.array().cast(spark_type(Array(self.acc)))
        one = F.when(known, no_more).otherwise(F.array(first))
        return F.concat(F.array(F.when(known, self.before)), one, rest)
