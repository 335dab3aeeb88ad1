"""An aggregate that is added to the language: its entry and its definition, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from hydro_core.catalog import aggregates
from hydro_core.catalog.aggregates import AggregateSpec, PartialState
from hydro_core.reference.definitions import group as definitions
from hydro_core.reference.definitions.group import GroupValues
from hydro_core.types.item import LONG

RANGE = AggregateSpec(
    "range",
    "the greatest less the smallest",
    lambda types: LONG,
    PartialState(
        parts=("max", "min"),
        of_parts="lambda most, least: None if most is None else most - least",
    ),
    idempotent=True,
)


def add_range(patched: pytest.MonkeyPatch) -> None:
    """Programs may then say `range("v")`, of integers."""

    def definition(group: GroupValues) -> Any:
        return max(group.values) - min(group.values) if group.values else None

    patched.setitem(aggregates._TABLE, RANGE.name, RANGE)
    patched.setitem(aggregates._NAMES, RANGE.name, RANGE.name)
    patched.setitem(definitions.AGGREGATES, RANGE.name, definition)  # type: ignore[attr-defined]
