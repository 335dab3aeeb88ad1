"""Registry of lowerings: `@lowers("delta")` on a function from a `Step` to a `Relation`.

A lowering is a function of DataFrames: it starts no job. Its result holds in the range [first,
last] and has the item type of the operator's output; the executor brings it to the kind and order
that the plan asks for. A failure in the data is a column that fails the tick when it is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import Refusal
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.plan.tick_plan import Key, Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.materialize import Materialize, checkpointed
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.functions.apply import python_columns
from hydro_core.spark.session.failures import AS_JSON, MARKER, payload
from hydro_core.types.item import ItemType

# Failures that a lowering finds in the data: a column that fails the tick when it is evaluated.


NUMBER = "\0"
"""The number's position in a refusal."""


def fail(
    node: Node,
    refusal: Refusal,
    item: Column | None = None,
    *,
    fn: Fn | None = None,
    tick: Column | None = None,
    number: Column | None = None,
) -> Column:
    """A column without a value: evaluating it fails the tick, with this item in the message."""
    known = payload(fn, f"`{node.op.called}`", refusal.reason, refusal.cure)
    if known["span"] is None and node.span is not None:
        s = node.span
        known["span"] = (s.file, s.line, s.column, s.end_line, s.end_column, s.text)
    before, named, after = (MARKER + json.dumps(known)[:-1]).partition(json.dumps(NUMBER)[1:-1])
    parts = [F.lit(before)]
    if named and number is not None:
        parts += [number.cast("string"), F.lit(after)]
    parts += [F.lit(', "tick": '), (F.col(TICK) if tick is None else tick).cast("string")]
    if item is not None:
        parts += [F.lit(', "items": '), F.to_json(F.struct(item.alias("_1")), AS_JSON)]
    return F.raise_error(F.concat(*parts, F.lit("}")))


# A step, and the registry of lowerings.


Lowered = Relation | Mapping[str, Relation]
"""One relation, or one for each output port."""

Times = Mapping[int, tuple[datetime | None, datetime | None]]
"""Start and end of the ticks that have them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node, in one range of ticks."""

    node: Node
    inputs: tuple[Relation, ...]
    item: ItemType
    ordered: bool
    kind: Kind
    first: int
    last: int
    spark: SparkSession
    singles: tuple[bool, ...] = ()
    """For each input, True if it has at most one item in each tick."""
    keys: tuple[Key | None, ...] = ()
    """For each input, a key with at most one item for each of its values in a tick."""
    past: DataFrame | None = None
    """The rows of the node's state table: `item, t[, ord]`."""
    log: DataFrame | None = None
    """The stored changelog, rows `item, t, n`; `past` is its sum."""
    source: DataFrame | None = None
    """The batches of a source: rows `item, t`."""
    times: Times = field(default_factory=dict)
    clock: Callable[[], DataFrame] | None = None
    """The rows `t, tick, start, end` of the range where its ticks represent others."""
    form: Form = Form.VALUES
    """The representation of the output."""
    alone: bool = False
    """True if readers need only the rows of the range (of a history), or only the updates."""
    materialize: Materialize = checkpointed
    """Computes a stream once that has several readers."""

    @property
    def input(self) -> Relation:
        """The only input, or the first."""
        return self.inputs[0]

    @property
    def tick(self) -> Column:
        """The tick of a row, for messages; in groups too."""
        return F.lit(self.first) if self.is_tick else F.col(TICK)

    @property
    def is_tick(self) -> bool:
        """True if the range is a single tick."""
        return self.first == self.last

    def arg(self, name: str) -> Any:
        """An argument of the operator."""
        return self.node.args[name]

    def with_(self, **changes: Any) -> Step:
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def as_events(self) -> Step:
        """The same step, every input as batches."""
        return self.with_(inputs=tuple(r.events(self.first, self.last) for r in self.inputs))

    def projected(self, made: Column) -> Relation:
        """The rows of the input with items of the output's type."""
        return self.input.with_items(made, self.item)

    def relation(self, kind: Kind, frame: DataFrame, *, ordered: bool = False) -> Relation:
        """A relation of items of the output's type."""
        return Relation(kind, frame, self.item, ordered)


Lowering = Callable[[Step], Lowered]
LOWERINGS: dict[str, Lowering] = {}
"""The lowerings by the names of all operators."""


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers the function as the lowering of the operators so named."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"`{name}` has a lowering already")
            LOWERINGS[name] = function
        return function

    return register


def per_tick(lowering: Lowering) -> Lowering:
    """A lowering that gets all inputs as batches: exact for every kind, at the cost of rows times
    ticks.
    """
    return lambda step: lowering(step.as_events())


def lower(step: Step) -> Lowered:
    """The node's output in the range, in the kind and order of the plan."""
    with python_columns() as in_python:
        found = LOWERINGS[step.node.op.name](step)
    known: Callable[[Relation], Relation] = _lying_together if in_python.made else lambda r: r
    if isinstance(found, Relation):
        return fitted(known(found), step)
    return {port: fitted(known(relation), step) for port, relation in found.items()}


def _lying_together(relation: Relation) -> Relation:
    """The relation, which Spark knows to be in one partition if it has few rows."""
    changes = relation.changes
    if changes is not None:
        changes = changes.with_(frame=together(changes.frame))
    return replace(relation, frame=together(relation.frame), changes=changes)


def fitted(relation: Relation, step: Step) -> Relation:
    """The relation in the kind and order of the plan."""
    if not step.ordered:
        relation = relation.unordered()
    return as_kind(relation, step.kind, step.first)


def as_kind(relation: Relation, kind: Kind, first: int) -> Relation:
    """The same rows as rows of another kind; every kind can be converted to a changelog stream."""
    if relation.kind is kind:
        return relation
    if kind is Kind.G:
        start = F.greatest(F.col(TICK), F.lit(first)) if relation.kind is Kind.H else F.col(TICK)
        until: Column = F.col(TICK) + 1 if relation.kind is Kind.E else F.lit(FOREVER)
        order = [F.col(ORD)] if relation.ordered else []
        frame = relation.frame.select(
            F.col(ITEM), start.alias(TICK), until.cast("long").alias(UNTIL), *order
        )
        return relation.with_(kind=kind, frame=frame)
    # Only two streams are given as another kind than the plan's: a stream without rows, and pairs
    # that are all new, which are rows of the ticks at which they start.
    if relation.kind is Kind.G:
        return relation.with_(kind=kind, frame=relation.frame.drop(UNTIL))
    return relation.with_(kind=kind)
