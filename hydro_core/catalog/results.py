"""Operators that make one result of the items of a key, now or from tick to tick."""

from __future__ import annotations

from typing import assert_never

from hydro_core.catalog.classes import (
    Before,
    ByKey,
    Commands,
    Distinct,
    Empty,
    Given,
    Growth,
    History,
    Matching,
    OpClass,
    Ordering,
    Output,
    PerItem,
    Positional,
    Product,
    Projection,
    Running,
    Sum,
    Summary,
    Window,
)


def made_by_key(cls: OpClass) -> ByKey | None:
    """What the operator makes of the items of a key, of all of them or of what is new."""
    match cls:
        case ByKey():
            return cls
        case Running(of):
            return of
        case Given() | Empty() | Output() | PerItem() | Projection() | Sum() | Product():
            return None
        case Matching() | Distinct() | Ordering() | Positional() | History() | Window():
            return None
        case Before() | Growth() | Commands():
            return None
        case _:
            assert_never(cls)


def aggregates(cls: OpClass) -> bool:
    """Whether the operator makes named aggregates, of items or of what is new."""
    made = made_by_key(cls)
    return made is not None and made.summary is Summary.AGGREGATES
