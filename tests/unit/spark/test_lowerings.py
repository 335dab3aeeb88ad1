"""Every operator that a plan may have runs on Spark."""

from __future__ import annotations

import hydro_core.spark.lower  # noqa: F401 - registers all
from hydro_core.catalog.internal import INTERNAL
from hydro_core.catalog.registry import CATALOG
from hydro_core.spark.lower.registry import LOWERINGS


def test_every_operator_has_a_lowering() -> None:
    assert LOWERINGS.keys() == CATALOG.keys() | INTERNAL.keys()
