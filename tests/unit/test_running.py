from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_flow, run_json
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused

DECLARED = 'a = source("k string, at timestamp, price decimal(4,2), pair (long, long)")\na -> out'


def flow(text: str, *ticks: Mapping[str, Any], **schemas: str) -> list[Mapping[str, list[Any]]]:
    types = {name: parse_ddl(ddl) for name, ddl in schemas.items()}
    return list(run_flow(parse(text), types, ticks, optimize=False))


def test_python_values_and_texts_as_in_json() -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = {"k": "x", "at": at, "price": Decimal("2.50"), "pair": (1, 2)}
    text = {"k": "x", "at": "2024-01-01", "price": "2.5", "pair": [1, 2]}
    assert flow(DECLARED, {"a": [row]}, {"a": [text]}) == [{"out": [row]}, {"out": [row]}]


def test_without_a_schema_the_data_decide() -> None:
    assert flow("a -> map(lambda k, v: v) -> out", {"a": [("x", 1)]}, {"a": [["y", 2.5]]}) == [
        {"out": [1.0]},
        {"out": [2.5]},
    ]


def test_ticks_are_taken_as_they_come() -> None:
    seen = []

    def ticks() -> Iterator[Mapping[str, list[Any]]]:
        for n in range(3):
            seen.append(n)
            yield {"a": [n]}

    outputs = run_flow(
        parse("a -> persist() -> out"), {"a": parse_ddl("long")}, ticks(), optimize=False
    )
    assert next(outputs) == {"out": [0]}
    assert seen == [0]
    assert [*outputs] == [{"out": [0, 1]}, {"out": [0, 1, 2]}]


@pytest.mark.parametrize("row", [{"w": 1}, {"v": None}, {"v": 1, "q": {"x": None}}])
def test_a_null_where_none_may_be(row: dict[str, Any], refused: Refused) -> None:
    text = 'a = source("v long not null, w long, q struct<x: long not null>")\na -> out'
    assert len(flow(text, {"a": [{"v": 1}, {"v": 1, "q": {"x": 2}}]})) == 1
    with refused(HydroError, "input"):
        flow(text, {"a": [row]})
    with refused(HydroError, "input"):
        run_json(parse(text), {}, [{"a": [row]}], Options())


@pytest.mark.parametrize(
    "tick", [{"a": ["x"]}, {"a": 3}, {"b": []}, [], {"a": [2**63]}, {"a": [{1, 2}]}]
)
def test_data_that_is_wrong(tick: Any, refused: Refused) -> None:
    with refused(HydroError, "input"):
        flow("a -> out", tick, a="long")
