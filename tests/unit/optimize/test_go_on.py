"""Aggregates of histories that go on from what is stored, whatever stands beside them."""

from __future__ import annotations

import pytest

from hydro_core.catalog.classes import History
from hydro_core.compile import compile_text, optimized

ROWS = 'rows = source("k string, v decimal(15,2), w long")\n'


def resumes(aggregates: str) -> bool:
    """Whether a tick reads no rows of before."""
    made = optimized(
        compile_text(f'{ROWS}rows -> persist() -> aggregate(by="k", {aggregates}) -> out')
    )
    return not any(isinstance(node.cls, History) and not node.cls.before for node in made.graph)


@pytest.mark.parametrize(
    "aggregates",
    [
        'm=avg("v")',
        'm=avg("v"), n=count(), s=sum("v")',
        'd=count_distinct("w"), n=count()',
        'd=count_distinct("w"), m=avg("v")',
    ],
)
def test_they_go_on(aggregates: str) -> None:
    assert resumes(aggregates)


def test_several_counts_of_distinct_values_go_on() -> None:
    assert resumes('d=count_distinct("w"), e=count_distinct("v")')
