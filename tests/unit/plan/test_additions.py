"""Of which histories only the additions are looked at."""

from __future__ import annotations

import pytest

from hydro_core.plan.streams import additions_only
from tests.unit.plan.test_planner import planned

JOIN = "p = a -> persist(); q = b -> persist(); p -> [0]j; q -> [1]j; j = join()\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("j -> delta() -> out", {"j"}),
        ("j -> changes() -> out", {"j"}),
        ("f = j -> filter(lambda k, p: p[0] > 0); f -> delta() -> out", {"j", "f"}),
        ("j -> out", set()),
        ("j -> delta() -> out; j -> all", set()),
        ("j -> delta() -> out; j -> unique() -> each", set()),
        ("j -> delta() -> out; j -> prev() -> before", set()),
        ("j -> delta() -> out; j -> persist() -> more", set()),
    ],
)
def test_only_additions_are_needed(text: str, wanted: set[str]) -> None:
    found = additions_only(planned(JOIN + text), ())
    assert found & {"j", "f"} == wanted
    assert not found & {"p", "q"}


def test_an_output_that_is_stored_as_a_history_needs_its_additions() -> None:
    plan = planned(JOIN + "j -> out; j -> delta() -> new")
    assert "j" in additions_only(plan, ["out"])
    assert "j" not in additions_only(plan, ["new"])
