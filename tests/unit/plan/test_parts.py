"""Ranges that are cut, because they are long or because a tick in them fails."""

from __future__ import annotations

import pytest

from hydro_core.errors import DataError, Diagnostic
from hydro_core.plan.planner import in_parts, longest_range
from hydro_core.settings import Settings
from tests.unit.plan.test_planner import planned


def failing(bad: int, code: str = "runtime") -> tuple[list[int], list[tuple[int, int]]]:
    """The ticks that were done, and all ranges that were tried."""
    done: list[int] = []
    tried: list[tuple[int, int]] = []

    def run(first: int, last: int) -> None:
        assert first == len(done)
        tried.append((first, last))
        if first <= bad <= last:
            raise DataError(Diagnostic(code, f"tick {bad}, in {first} to {last}", help="mend it"))
        done.extend(range(first, last + 1))

    with pytest.raises(DataError, match=f"tick {bad}, in {0 if code == 'state' else bad}"):
        list(in_parts(0, 9, None, run))
    return done, tried


@pytest.mark.parametrize("code", ["runtime", "input"])
@pytest.mark.parametrize("bad", range(10))
def test_the_ticks_before_one_that_fails_are_done(bad: int, code: str) -> None:
    done, tried = failing(bad, code)
    assert done == list(range(bad))
    assert len(tried) <= 9


def test_what_is_no_fault_of_a_tick_is_not_tried_again() -> None:
    assert failing(5, "state") == ([], [(0, 9)])


def test_a_range_that_fails_as_a_whole_alone_goes_through_in_parts() -> None:
    def run(first: int, last: int) -> tuple[int, int]:
        if last - first > 2:
            raise DataError(Diagnostic("runtime", "too large", help="mend it"))
        return first, last

    found = list(in_parts(3, 12, None, run))
    assert [t for first, last in found for t in range(first, last + 1)] == list(range(3, 13))


def test_plans_that_repeat_rows_run_long_ranges_in_parts() -> None:
    settings = Settings().with_(repeated_ticks=7)
    repeats = planned("a -> persist() -> sort() -> enumerate() -> out")
    assert longest_range(repeats, settings) == 7
    assert longest_range(planned("a -> persist() -> unique() -> out"), settings) is None
