"""Random cases are whole, and what makes them smaller keeps them so."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import LONG
from hydro_core.validation.simulation.simulate import Case, Crash, RankedItem, random_case, smaller

TICK = {"a": (RankedItem(0.5, 1), RankedItem(0.1, 2)), "b": (RankedItem(0.3, 3),)}


def whole(case: Case) -> bool:
    ranges = sum(case.ranges) == len(case.ticks) and all(case.ranges)
    return ranges and (case.crash is None or case.crash.range < len(case.ranges))


def test_random_cases_are_whole_and_of_all_kinds() -> None:
    cases = [random_case({"a": LONG}, (), Random(seed)) for seed in range(60)]
    assert all(map(whole, cases))
    assert {case.crash is None for case in cases} == {True, False}
    assert any(len(case.ranges) > 1 for case in cases)
    assert any(max(case.ranges) > 1 for case in cases)
    again = [random_case({"a": LONG}, (), Random(seed)) for seed in range(60)]
    assert again == cases


@pytest.mark.parametrize("seed", range(20))
def test_what_is_smaller_is_whole_and_ends(seed: int) -> None:
    case = random_case({"a": LONG, "b": LONG}, (), Random(seed))
    steps = 0
    while (less := next(smaller(case), None)) is not None:
        assert whole(less)
        size = (less.crash is not None, len(less.ticks), less.rows, -len(less.ranges))
        assert size < (case.crash is not None, len(case.ticks), case.rows, -len(case.ranges))
        case, steps = less, steps + 1
    assert case.rows == 0
    assert len(case.ticks) == 1


def test_a_range_goes_with_its_last_tick() -> None:
    case = Case((TICK,) * 4, (1, 2, 1), Crash(1, 5))
    assert case.without(0) == Case((TICK,) * 3, (2, 1), Crash(0, 5))
    assert case.without(1) == Case((TICK,) * 3, (1, 1, 1), Crash(1, 5))
    assert case.without(3) == Case((TICK,) * 3, (1, 2), Crash(1, 5))
    assert case.until(2) == Case((TICK,) * 2, (1, 1), Crash(1, 5))
    assert case.until(1) == Case((TICK,), (1,), None)
    assert Case((TICK,), (1,), Crash(0, 1)).without(0) == Case((), (), None)


def test_another_order_has_the_same_items() -> None:
    from datetime import UTC, datetime, timedelta

    def window(tick: int) -> TickWindow:
        start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=tick)
        return TickWindow(tick, str(tick), start, start + timedelta(days=1))

    case = Case((TICK, TICK), (2,))
    as_it_is, reordered = case.inputs(window), case.inputs(window, reordered=True)
    assert as_it_is[0].batches == {"a": [1, 2], "b": [3]}
    assert reordered[0].batches == {"a": [2, 1], "b": [3]}
    assert reordered[1].end == datetime(2024, 1, 3, tzinfo=UTC)
