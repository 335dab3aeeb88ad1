"""Places in an order as columns that are compared, and how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal as DecimalValue
from math import floor
from typing import Any

from pyspark.sql import Column

from hydro_core.catalog.nearest import TIMES, place_type
from hydro_core.spark.frames.dry import F
from hydro_core.spark.lower.items.columns import convert, named
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import DATE, DOUBLE, UNKNOWN, Decimal, ItemType, is_integer

_DAY = 24 * 3600 * 10**6


@dataclass(frozen=True, slots=True)
class ComparedPlaces:
    """The places of the rows of two sides, which are compared as items of one type.

    A time is a long of microseconds.
    """

    columns: tuple[str, str]
    items: tuple[ItemType, ItemType]
    type: ItemType

    def at(self, row: Column) -> Column:
        """The place of a left row."""
        return self._place(row, 0)

    def since(self, row: Column) -> Column:
        """The place of a right row."""
        return self._place(row, 1)

    def _place(self, row: Column, side: int) -> Column:
        column, of = named(row, self.items[side], self.columns[side])
        if of == DATE:
            return F.unix_date(column).cast("long") * F.lit(_DAY)
        if of in TIMES:
            return F.unix_micros(column.cast("timestamp"))
        found = convert(column, of, self.type)
        # both zeros are one place
        return found + F.lit(0.0) if self.type == DOUBLE else found

    def distance(self, one: Column, other: Column) -> Column:
        """How far two places are from each other; NaN, which is beyond all, from what is none."""
        if self.type == DOUBLE:
            apart = F.when(F.isnan(one) | F.isnan(other), F.lit(float("nan")))
            return F.when(one == other, 0.0).otherwise(apart.otherwise(F.abs(one - other)))
        if is_integer(self.type):
            one, other = (place.cast("decimal(20,0)") for place in (one, other))
        return F.abs(one - other)

    def is_within(self, distance: Column, within: Any) -> Column:
        """Whether a distance is no longer than another, exactly."""
        match self.type:
            case Decimal(_, scale):
                unit = 10**scale
                most = F.lit(DecimalValue(floor(DecimalValue(within) * unit)) / unit)
            case _ if isinstance(within, timedelta):
                most = F.lit(within // timedelta(microseconds=1))
            case _ if is_integer(self.type):
                most = F.lit(DecimalValue(min(floor(within), 10**20)))
            case _:
                most = F.lit(float(within))
        return distance <= most


def places_of(step: Step) -> ComparedPlaces:
    """The places that a join of two sides compares."""
    names = (step.arg("at"), step.arg("since"))
    left, right = (side.item for side in step.inputs)
    types = [
        named(F.lit(None), item, name)[1] for item, name in zip((left, right), names, strict=True)
    ]
    return ComparedPlaces(names, (left, right), place_type(*types) or UNKNOWN)
