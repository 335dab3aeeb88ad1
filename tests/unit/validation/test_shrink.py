"""Leaving out rows of a slice that do not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydro_core.analysis.slices import KnownValues, slice_of
from hydro_core.compile import compile_text
from hydro_core.running import read_ticks
from hydro_core.validation.sliced import ShrunkSlice, SlicedRun, WantedRows, shrink

PAIRS = 'a = source("(string, long)"); b = source("(string, long)")\n'


def shrunk(
    text: str, where: dict[str, Any], ticks: list[dict[str, list[Any]]], seconds: float = 60
) -> ShrunkSlice:
    program = compile_text(PAIRS + text)
    items = list(read_ticks(program.typed, ticks))

    def read(wanted: WantedRows) -> Mapping[int, Sequence[Any]]:
        return {n: tick.batches.get(wanted.name, ()) for n, tick in enumerate(items)}

    known = {tuple(name.split(".")): KnownValues.of(name, [value]) for name, value in where.items()}
    last = len(ticks) - 1
    run = SlicedRun(program, slice_of(program.typed, "out", known), last, last)
    run.load(read)
    return shrink(run, seconds)


def listed(found: ShrunkSlice, name: str) -> dict[int, list[Any]]:
    return {tick: [list(item) for item in items] for tick, items in found.rows[name].items()}


def test_what_a_latest_value_does_not_come_from_is_left_out() -> None:
    found = shrunk(
        "a -> persist() -> reduce_keyed(lambda x, y: max(x, y), commutative=True) -> out\n"
        "b -> null()",
        {"0": "x"},
        [{"a": [["x", n], ["y", n]]} for n in range(20)],
    )
    assert listed(found, "a") == {19: [["x", 19]]}
    assert found.is_least
    assert found.left_out == 19


def test_rows_that_cancel_each_other_out_are_kept() -> None:
    values = [10, 5, 20, -5, 7, 3, -7, -3]
    found = shrunk(
        "a -> persist() -> fold_keyed(0, lambda s, v: s + v, commutative=True) -> out; b -> null()",
        {"0": "x"},
        [{"a": [["x", value]]} for value in values],
    )
    assert [v for of in listed(found, "a").values() for _, v in of] == values
    assert found.is_least


def test_a_row_of_many_on_the_other_side_is_found_in_few_runs() -> None:
    found = shrunk(
        "a -> persist() -> [0]j; b -> persist() -> [1]j\n"
        "j = join() -> map(lambda k, p: (p[0], k)) -> out",
        {"0": 3},
        [{"a": [[f"k{n}", n] for n in range(9)], "b": [[f"k{n}", n] for n in range(100)]}],
    )
    assert listed(found, "a") == {0: [["k3", 3]]}
    assert listed(found, "b") == {0: [["k3", 3]]}
    assert found.runs < 10


def test_without_time_a_superset_is_told() -> None:
    found = shrunk("a -> out; b -> null()", {"0": "x"}, [{"a": [["x", 1], ["x", 2]]}], seconds=0)
    assert listed(found, "a") == {0: [["x", 1], ["x", 2]]}
    assert not found.is_least
