"""Schemas of stored tables, and values in their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from hydro_core.catalog.forms import Form
from hydro_core.catalog.itemwise import SINK
from hydro_core.errors import ProgramError
from hydro_core.plan.stored_rows import ZERO
from hydro_core.plan.tick_plan import StateSlot, TimeBound
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK, Kind
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.store.layout import readable
from hydro_core.types.arrow import arrow_type
from hydro_core.types.ddl import parse_stored, stored_ddl
from hydro_core.types.item import (
    BOOLEAN,
    LONG,
    Array,
    Decimal,
    Field,
    FieldPath,
    ItemType,
    Order,
    Row,
    Scalar,
    StreamType,
    Tuple,
    Unknown,
    at,
    children,
    is_integer,
)

Column = Any
"""An array of Arrow's."""

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Leaves = Callable[[FieldPath], Column]
"""The leaf that stands at a path in each of some items."""


def places_of(item: ItemType, path: Iterable[str]) -> list[int]:
    """The place of each step of a path among the fields that it is one of."""
    places = []
    for step in path:
        fields = dict(children(item))
        places.append(list(fields).index(step))
        item = fields[step]
    return places


def leaf_of(items: Column, item: ItemType, path: FieldPath) -> Column:
    if path == ZERO:
        return pa.repeat(pa.scalar(0, pa.int64()), len(items))
    places = places_of(item, path)
    return pc.struct_field(items, places) if places else items


def type_of(item: ItemType, path: FieldPath) -> ItemType | None:
    return LONG if path == ZERO else at(item, path)


def are_comparable(one: ItemType | None, other: ItemType | None) -> bool:
    """Whether what the language takes for equal is equal here."""
    if not isinstance(one, Scalar | Decimal) or other is None:
        return False
    return one == other or (is_integer(one) and is_integer(other))


def comparable(column: Column) -> Column:
    """The column with equal values where the language takes them for equal."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))
        nan = pa.scalar(float("nan"), column.type)
        return pc.if_else(pc.is_nan(column), nan, column)
    return column


def in_order(column: Column) -> Column:
    """The column with values that Arrow orders as the language does: NaN is the greatest number,
    the two zeros are one.
    """
    column = comparable(column)
    if not pa.types.is_floating(column.type):
        return column
    # The bits of a number, with those of negative ones turned around, are in its order.
    filled: Any = column.cast(pa.float64()).fill_null(0.0)
    bits = filled.to_numpy(zero_copy_only=False).view(np.int64)
    numbers = np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
    return pa.array(numbers, mask=column.is_null().to_numpy(zero_copy_only=False))


# A state table keeps each item in one column, as the relation that is read from it: `t`, `item`
# and `ord` when it is ordered. An output is for people: `tick`, then the columns of a row, `_1 …
# _n` of a tuple or the `item`, and `position` when it is ordered. A log of changes has a column
# more, `n` in a state table and `copies` in an output: how many copies of the item the tick adds.
# An untyped null is stored as a boolean, which no value ever fills: Parquet has no place for it.


OUTPUT_TICK, POSITION, COPIES = "tick", "position", "copies"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table of a pipeline: what it holds, and how it changes."""

    name: str
    """Its directory within the pipeline's, and its name in the ledger."""
    role: Literal["state", "output"]
    of: str
    """The slot's id, or the output's name."""
    item: ItemType
    ordered: bool
    form: Form
    """GROWTH: each tick adds its rows; VALUES: it replaces them all; CHANGES: it adds changes."""
    kind: Kind
    """How the rows are to be read: those of the tick itself, or those up to it."""
    semantic_hash: str
    """The same in every program that stores the same in it."""
    bound: TimeBound | None = None
    """How long rows of state matter, by a time of theirs; others may be gone."""

    @property
    def forgets(self) -> bool:
        """Whether what it held after earlier ticks may not be told from its rows any more."""
        return self.is_log or self.bound is not None

    @property
    def tick(self) -> str:
        """The name of the column of the tick."""
        return TICK if self.role == "state" else OUTPUT_TICK

    @property
    def place(self) -> str | None:
        """The name of the column that orders the items of a tick."""
        if not self.ordered:
            return None
        return ORD if self.role == "state" else POSITION

    @property
    def is_log(self) -> bool:
        """Whether its rows are changes, which are to be summed up."""
        return self.form is Form.CHANGES

    @property
    def count_column(self) -> str:
        """The name of the column of a log that counts copies."""
        return COUNT if self.role == "state" else COPIES

    @property
    def items(self) -> tuple[tuple[str, ItemType], ...]:
        """The columns of the items."""
        return ((ITEM, self.item),) if self.role == "state" else tuple(flattened(self.item))

    @property
    def columns(self) -> tuple[tuple[str, ItemType], ...]:
        """All columns with their types; what is unknown of an item is unknown here, too."""
        order = ((self.place, LONG),) if self.place else ()
        count = ((self.count_column, LONG),) if self.is_log else ()
        return ((self.tick, LONG), *self.items, *order, *count)

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([(name, arrow_type(stored(item))) for name, item in self.columns])

    @property
    def plain_schema(self) -> pa.Schema:
        """The schema of the rows that are there at a tick."""
        found = self.arrow_schema
        return found.remove(found.names.index(self.count_column)) if self.is_log else found

    @property
    def spark_schema(self) -> spark.StructType:
        fields = [(name, spark_type(stored(item))) for name, item in self.columns]
        return spark.StructType([spark.StructField(name, data) for name, data in fields])

    @property
    def has_unknown(self) -> bool:
        """Whether some part of the item has no type."""
        return stored(self.item) != self.item

    def record(self) -> Mapping[str, Any]:
        """What the ledger keeps of it."""
        return {
            "role": self.role,
            "of": self.of,
            "item": stored_ddl(self.item),
            "ordered": self.ordered,
            "mode": self.form.stored,
            "kind": self.kind.name,
            "meaning": self.semantic_hash,
        }


def recorded_table(name: str, record: Mapping[str, Any]) -> TableSpec:
    """The table that a record of the ledger tells of."""
    return TableSpec(
        name=name,
        role=record["role"],
        of=record["of"],
        item=parse_stored(record["item"]),
        ordered=record["ordered"],
        form=Form.of_stored(record["mode"]),
        kind=Kind[record["kind"]],
        semantic_hash=record["meaning"],
    )


def state_table(slot: StateSlot) -> TableSpec:
    """The table of a state slot; its name has a part of the hash, since ids change hands."""
    return TableSpec(
        name=f"state/{readable(slot.id)}-{slot.semantic_hash[:8]}",
        role="state",
        of=slot.id,
        item=slot.item,
        ordered=slot.ordered,
        form=slot.form,
        kind=slot.kind,
        semantic_hash=slot.semantic_hash,
        bound=slot.bound,
    )


def output_table(
    name: str, directory: str, stream: StreamType, kind: Kind, *, semantic_hash: str = ""
) -> TableSpec:
    """The table of an output; one of general rows is a log of its changes.

    Args:
        name: the output's.
        directory: the one that `directory_names` has for it.
        stream: its items, and whether they have an order.
        kind: how its rows are to be read.
        semantic_hash: the same in every program that stores the same in it.

    Raises:
        ProgramError: two of its columns would have one name (code `type`).
    """
    spec = TableSpec(
        name=f"outputs/{directory}",
        role="output",
        of=name,
        item=stream.item,
        ordered=stream.order is Order.TOTAL,
        form=Form.CHANGES if kind is Kind.G else Form.GROWTH,
        kind=kind,
        semantic_hash=semantic_hash,
    )
    _refuse_clashes(spec)
    return spec


def flattened(item: ItemType) -> Iterator[tuple[str, ItemType]]:
    """The columns that an output has for its items."""
    match item:
        case Row(fields):
            yield from ((field.name, field.type) for field in fields)
        case Tuple(fields):
            yield from ((f"_{i}", field) for i, field in enumerate(fields, start=1))
        case _:
            yield ITEM, item


def stored(item: ItemType) -> ItemType:
    """The type as it is stored: nothing of it is unknown."""
    match item:
        case Unknown():
            return BOOLEAN
        case Tuple(fields):
            return Tuple(tuple(map(stored, fields)))
        case Row(fields):
            return Row(tuple(Field(field.name, stored(field.type)) for field in fields))
        case Array(element):
            return Array(stored(element))
        case _:
            return item


def _refuse_clashes(spec: TableSpec) -> None:
    ours = {spec.tick: "the tick", spec.place: "the position"}
    seen: dict[str, str] = {}
    for name, _ in spec.columns:
        # Delta does not tell names apart by case.
        other = seen.setdefault(name.lower(), name)
        if other is name:
            continue
        theirs = name if other in ours else other
        what = ours.get(other) or ours.get(name)
        problem = (
            f"its column `{theirs}` has the name of the column for {what}"
            if what
            else f"a table cannot tell its columns `{other}` and `{name}` apart"
        )
        raise ProgramError.of(
            "type",
            f"the output `{spec.of}` cannot be stored: {problem}",
            operator=SINK.name,
            help=f'rename it before the output: `rename(my_{theirs.lower()}="{theirs}")`',
        )
