"""Logs of changes are summed up by what the language takes for equal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.snapshots import summed
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl

NAN = float("nan")


@pytest.mark.parametrize(
    ("of", "one", "same", "other"),
    [
        ("double", 0.0, -0.0, None),
        ("double", NAN, -NAN, 0.0),
        ("array<double>", [0.0, NAN], [-0.0, -NAN], [NAN, 0.0]),
        ("(long, array<double>)", (1, [0.0]), (1, [-0.0]), (1, None)),
        ("string", "é", "é", "e\u0301"),
    ],
)
def test_what_came_and_went_is_not_there(of: str, one: Any, same: Any, other: Any) -> None:
    item = parse_ddl(of)
    spec = TableSpec("state/a", "state", "a", item, False, Form.CHANGES, Kind.E, "")
    items: Any = to_arrow([one, same, other], item)
    log = pa.table({"t": [0, 1, 1], "item": items, "n": [1, -1, 1]}).cast(spec.arrow_schema)
    found = summed(log, spec, 1)
    assert found["n"].to_pylist() == [1]
    assert repr(found["item"].to_pylist()) == repr(log["item"].to_pylist()[2:])
