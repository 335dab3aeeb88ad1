"""Changes of streams: where they are known, they go through the operators beside the rows."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from hydro_core.catalog.forms import Form
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import coming_and_going, consolidated, since
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.lower.registry import Lowered, Step, as_kind, lower
from hydro_core.types.item import ItemType


def changes_of(relation: Relation, first: int) -> Relation:
    """By how much the multiplicity of each item differs from that of the tick before: (item, t, n).

    An item may have several rows in a tick.
    """
    if relation.changes is not None:
        return relation.changes
    if relation.kind is not Kind.H:
        raise TypeError(f"rows of kind {relation.kind.name} do not tell their changes")
    return as_changes(relation.item, weighed(relation.unordered().new(first).frame, 1))


def weighed(rows: DataFrame, n: int, at: str = TICK) -> DataFrame:
    """The rows as changes (item, t, n), n of each, at the tick in the column `at`."""
    return rows.select(ITEM, F.col(at).alias(TICK), F.lit(n).cast("long").alias(COUNT))


def rows_before(rows: Relation, changes: DataFrame, first: int) -> DataFrame:
    """What general rows were in the tick before a range: (item, t, until).

    They are those of its first tick, without what comes there and with what goes.

    Args:
        rows: the rows, which say nothing of the ticks before the range.
        changes: their changes (item, t, n).
        first: the first tick of the range.
    """
    there = weighed(rows.at(first).frame, 1)
    since = changes.where(F.col(TICK) == first).select(ITEM, TICK, (-F.col(COUNT)).alias(COUNT))
    copies = there.unionByName(since).groupBy(ITEM).agg(F.sum(COUNT).cast("int").alias(COUNT))
    each = F.explode(F.array_repeat(F.lit(first - 1).cast("long"), F.col(COUNT))).alias(TICK)
    found = exploded(copies.where(F.col(COUNT) > 0), [ITEM, each], reads=(COUNT,))
    return found.select(ITEM, TICK, F.lit(first).cast("long").alias(UNTIL))


def rows_or_changes(
    step: Step, rows: Callable[[], Relation], changes: Callable[[], DataFrame]
) -> Relation:
    """What is wanted of a stream that knows its changes: its rows, its changes, or both.

    Args:
        step: who gives the stream.
        rows: makes it.
        changes: makes its changes (item, t, n).
    """
    if step.form is not Form.CHANGES:
        return rows()
    made = as_changes(step.item, changes())
    return _telling(step, made if step.alone else rows(), made)


Others = Callable[[Narrow], DataFrame]
"""Further rows of which the item matters alone, without those that do not matter."""


def of_versions(
    step: Step, versions: DataFrame, others: Others | None = None, *, again: bool = False
) -> Relation:
    """A stream of rows of which it is known how long they are there.

    Args:
        step: who gives the stream.
        versions: all rows (item, t, until) that come or go in the range, at least.
        others: the rows that are there all the time, if there are any.
        again: whether rows may be made again as they were, so that nothing changes.
    """

    def changes() -> DataFrame:
        found = coming_and_going(versions, step.first, step.last)
        return consolidated(found) if again else found

    def rows() -> Relation:
        there = since(versions, step.first)
        return step.relation(Kind.G, there) if others is None else with_others(step, there, others)

    return rows_or_changes(step, rows, changes)


def with_others(step: Step, rows: DataFrame, others: Others) -> Relation:
    """Rows (item, t, until), and the others, which are there all the time."""
    start, until = (F.lit(tick).cast("long") for tick in (step.first, FOREVER))

    def narrowed(narrow: Narrow) -> DataFrame:
        rest = others(narrow).select(ITEM, start.alias(TICK), until.alias(UNTIL))
        return narrow(rows).unionByName(rest)

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)


def changes_by_lookups(
    step: Step, rows: Callable[[], Relation], changes: Callable[[], DataFrame]
) -> Relation:
    """The same of a stream whose changes are made of rows that are looked up.

    Where nothing was before all rows come in the range, so they tell the changes themselves.
    """
    if step.first or step.form is not Form.CHANGES:
        return rows_or_changes(step, rows, changes)
    there = as_kind(rows(), Kind.G, 0)
    if not step.alone:
        there = there.with_(frame=held(there.frame))
    came = held(coming_and_going(there.frame.select(ITEM, TICK, UNTIL), 0, step.last))
    return _telling(step, there, as_changes(step.item, came))


def _telling(step: Step, rows: Relation, changes: Relation) -> Relation:
    """The rows with their changes; none of them where nobody looks at more than these."""
    if step.alone:
        frame = changes.frame.select(ITEM, TICK, F.col(TICK).alias(UNTIL)).where(F.lit(False))
        rows = Relation(Kind.G, frame, step.item)
    return as_kind(rows, Kind.G, step.first).with_(changes=changes.with_(carried=(COUNT,)))


def as_changes(item: ItemType, frame: DataFrame) -> Relation:
    """The rows (item, t, n) as a relation."""
    return Relation(Kind.E, frame, item, carried=(COUNT,))


def handed_on(step: Step) -> Lowered:
    """What an operator gives that does the same with the changes of its inputs as with them."""
    inputs = tuple(changes_of(relation, step.first) for relation in step.inputs)
    changes = lower(step.with_(inputs=inputs, kind=Kind.E))
    rows = changes if step.alone else lower(step)
    if isinstance(rows, Relation) and isinstance(changes, Relation):
        return _telling(step, rows, changes)
    if isinstance(rows, Relation) or isinstance(changes, Relation):
        raise TypeError("an operator with one output or several, by what it gets")
    return {port: _telling(step, rows[port], one) for port, one in changes.items()}
