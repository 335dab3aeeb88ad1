"""Rows of keys that are computed from stored ones: what the first row of a key has tells the rest.

The rows of a key come one after another, the stored ones as they were given. Places go on from
those of the first row, aggregates from those so far, and what looks back finds the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window, WindowSpec

from hydro_core.catalog.over_functions import aggregate_of, argument
from hydro_core.catalog.parts import merging
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.catalog.tails import given_to_peers, hidden_parts, so_far
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.named import made_of, merged_aggregate, stored_part
from hydro_core.spark.lower.by_key.ordered import (
    KeyWindows,
    column_of,
    numbered,
)
from hydro_core.spark.lower.by_key.places import PLACE, ROW, VALUE, KeyPlaces, order_type, places
from hydro_core.spark.lower.items.columns import column_types, make_row, null, own_columns
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType

STATE = "state"
"""A stored row, as it is stored; null for one that is computed."""
START = "start"
"""The stored row `s` that the first row of the key is, or null, and its place `p`."""
NUMBER = "numbered"
"""The number that a stored row has; of a new one more than any."""
_FIRST, _HERE = Window.unboundedPreceding, Window.currentRow
_UNNUMBERED = 1 << 62


@dataclass(frozen=True, slots=True)
class KeyRows:
    """New and stored rows of keys in their order."""

    step: Step
    places: KeyPlaces
    functions: Sequence[OverFunction]
    """Those of the columns."""
    parts: Sequence[Aggregate]
    """Those that are stored beside."""

    def with_frame(self, frame: DataFrame) -> KeyRows:
        return replace(self, places=replace(self.places, frame=frame))


def key_rows(step: Step, new: DataFrame, stored: DataFrame | None) -> KeyRows:
    """The rows of both, a key's one after another, numbered from the first of them.

    Args:
        step: the operator.
        new: the new rows (item, t).
        stored: the stored ones (item, t), as they are stored.
    """
    args, state_type = step.node.args, spark_type(step.item)
    rows = new.withColumn(STATE, F.lit(None).cast(state_type))
    if stored is not None:
        known = stored.select(base(step).alias(ITEM), TICK, F.col(ITEM).alias(STATE))
        rows = rows.unionByName(known)
    asked = [function for _, function in args["functions"]]
    parts = [OverFunction("running", (one, False)) for _, one in args["parts"]]
    of_rows = step.with_(inputs=(Relation(Kind.E, rows, step.input.item),))
    found, functions = places(of_rows, [*asked, *parts], (STATE,))
    number = F.coalesce(F.col(STATE).getField(args["number"]), F.lit(_UNNUMBERED))
    frame = found.frame.withColumn(NUMBER, number)
    found = replace(found, frame=frame, by_ticks=False, ties=(NUMBER, TICK))
    over = [one for f in functions[len(asked) :] if (one := aggregate_of(f)) is not None]
    return KeyRows(step, numbered(found), functions[: len(asked)], over)


def base(step: Step) -> Column:
    """The row that came, of a stored one."""
    return make_row((n, F.col(ITEM).getField(n)) for n in column_types(step.input.item))


class Continued:
    """The windows by which rows are given their columns, from those that are stored before them."""

    def __init__(self, of: KeyRows) -> None:
        """Finds the first row of each key."""
        first = F.first(F.struct(F.col(STATE).alias("s"), F.col(PLACE).alias("p")))
        until_here = of.places.by_rows().rowsBetween(_FIRST, _HERE)
        frame = of.places.frame.withColumn(START, first.over(until_here))
        self.rows, self.step = of, of.step
        self.windows = KeyWindows(of.step, replace(of.places, frame=frame), order_type(of.step))
        """The windows."""
        leads = F.lead(TICK, of.step.node.args["keep"])
        self.leaves = self.windows.of(leads, of.places.by_rows())
        """The tick of the row with which a row is not among the last of its key any more; or null.
        """
        self._made = self._columns()

    def computed(self) -> DataFrame:
        """The rows with all windows."""
        return self.windows.computed()

    def row(self, *, is_last: Column | None = None) -> Column:
        """A row as it is stored: the stored ones as they were, but for whether they are marked.

        Args:
            is_last: whether a row is marked as one of the last of its key; None: it is not.
        """
        step, tail = self.step, self.step.node.args["tail"]
        types, stored = column_types(step.item), own_columns(step.item, F.col(STATE))
        tail_type = types[tail]
        fresh = {**own_columns(step.input.item, F.col(ROW)), **self._made}
        by = step.node.args["by"]
        key = make_row((k, F.col(ROW).getField(k)) for k in by).cast(spark_type(tail_type))
        mark = null(tail_type) if is_last is None else F.when(is_last, key)
        there = make_row([(n, stored[n] if n != tail else mark) for n in types])
        new = make_row([(n, fresh[n] if n != tail else mark) for n in types])
        of_type = spark_type(step.item)
        return F.when(F.col(STATE).isNotNull(), there.cast(of_type)).otherwise(new.cast(of_type))

    def _columns(self) -> Mapping[str, Column]:
        """What rows are given that are not stored."""
        step, args, work = self.step, self.step.node.args, self.windows
        types = column_types(step.item)
        at, peers = self.rows.places, given_to_peers(args)
        parts = _running_parts(self, at.by_rows().rowsBetween(_FIRST, _HERE), types)
        of_peers = parts
        if peers:
            of_peers = _running_parts(self, at.by_peers().rangeBetween(_FIRST, _HERE), types)
        made: dict[str, Column] = {}
        for (name, function), over in zip(args["functions"], self.rows.functions, strict=True):
            if name in peers:
                made[name] = _running(step, so_far(name), types[name], of_peers)
            elif aggregate_of(function) is not None and argument(function, "rows") is None:
                made[name] = _running(step, name, types[name], parts)
            elif function.function in _GO_ON:
                local = column_of(work, over, types[name])
                made[name] = _GO_ON[function.function](step, name, local)
            else:
                stored = F.col(STATE)
                work.started = F.when(stored.isNotNull(), stored.getField(name)).otherwise(
                    F.col(VALUE)
                )
                made[name] = column_of(work, over, types[name])
        hidden = {name: parts[name][0] for name, _ in hidden_parts(args)}
        number = F.col(ORD).cast("long") + _from_first(args["number"])
        return {**made, **hidden, args["number"]: number}


def _from_first(name: str) -> Column:
    """What a stored column of the first row is more than 1; 0 where that row is new."""
    return F.coalesce(F.col(START).getField("s").getField(name) - 1, F.lit(0))


def _rank(step: Step, name: str, local: Column) -> Column:
    """The rank of the first row stands for those that are equal to it, too."""
    stored = F.col(START).getField("s")
    equal = F.col(START).getField("p").eqNullSafe(F.col(PLACE)) & stored.isNotNull()
    number: str = step.node.args["number"]
    return F.when(equal, stored.getField(name)).otherwise(local + _from_first(number))


_GO_ON: Mapping[str, Callable[[Step, str, Column], Column]] = {
    "row_number": lambda step, name, local: local + _from_first(name),
    "dense_rank": lambda step, name, local: local + _from_first(name),
    "rank": _rank,
}
"""What is not told by the rows themselves, but by those of the first one."""


_Parts = Mapping[str, tuple[Column, ItemType]]


def _running_parts(of: Continued, window: WindowSpec, types: Mapping[str, ItemType]) -> _Parts:
    """The aggregates over rows that are stored, by their names; `window` says of which rows."""
    work, step, over_columns = of.windows, of.step, of.rows.parts
    args = step.node.args
    asked: Sequence[tuple[str, Aggregate]] = args["parts"]
    merges = dict(merging(asked) or ())
    rows = work.places.by_rows()
    found: dict[str, tuple[Column, ItemType]] = {}
    for (name, _), over in zip(asked, over_columns, strict=True):
        merged = merged_aggregate(over, work.places.item, types[name], step.node)
        assert merged is not None
        (partial,) = merged.partials
        own = work.of(partial.of_rows, rows.rowsBetween(0, 0))
        stored = stored_part(F.col(STATE), step.item, name, merges[name])
        is_start = F.col(STATE).isNotNull() & (F.col(ORD) == 1)
        part = F.when(is_start, stored).otherwise(own)
        all_ = work.of_others(partial.merge(part), window)
        found[name] = merged.result([all_]).cast(spark_type(types[name])), types[name]
    return found


def _running(step: Step, name: str, result: ItemType, parts: _Parts) -> Column:
    """A running aggregate of the parts that it is made of, or one of these."""
    aggregate = dict(step.node.args["made"]).get(name)
    if aggregate is None:
        return parts[name][0]
    own = [parts[str(argument)] for argument in aggregate.arguments]
    return made_of(aggregate.function, own, result, step.node).cast(spark_type(result))
