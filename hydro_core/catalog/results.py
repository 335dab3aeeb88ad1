"""Operators that make one result of the items of a key, now or from tick to tick."""

from __future__ import annotations

from typing import assert_never

from hydro_core.catalog.classes import (
    ByKey,
    Ends,
    Linear,
    OpClass,
    OrderedByKey,
    OverTime,
    PerKey,
    PerPosition,
    Product,
    Running,
)
from hydro_core.catalog.variants import Summary


def made_by_key(cls: OpClass) -> ByKey | None:
    """What the operator makes of the items of a key, of all of them or of what is new."""
    match cls:
        case ByKey():
            return cls
        case Running(ByKey() as of):
            return of
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def over_items(cls: OpClass) -> ByKey | OrderedByKey | None:
    """What the operator makes of all items of a key, if it is that."""
    match cls:
        case ByKey() | OrderedByKey():
            return cls
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def aggregates(cls: OpClass) -> bool:
    """Whether the operator makes named aggregates, of items or of what is new."""
    made = made_by_key(cls)
    return made is not None and made.summary is Summary.AGGREGATES
