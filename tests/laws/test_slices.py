"""A slice leaves out nothing that matters: judged by running it, against a run over everything.

Random programs run whole, and over the rows that can matter for some rows of an output; those rows
must be the same, with no failure that the whole run does not have. It is counted how often a slice
is everything, where rows could have been left out: what the analysis may be missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from hydro_core.analysis.slices import KnownValues, slice_of
from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import HydroError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import FieldPath, leaves
from hydro_core.types.values import RowItem, canonical
from hydro_core.validation.sliced import SlicedRun, WantedRows
from tests.laws.test_partition import KINDS


def _field(item: Any, path: FieldPath) -> Any:
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item


def _asked(
    rng: Random, program: CompiledProgram, output: str, items: list[Any]
) -> Mapping[FieldPath, KnownValues]:
    """Values of one or two fields, of which some are there."""
    paths = [path for path, _ in leaves(program.typed.outputs[output].item)]
    found = {}
    for path in rng.sample(paths, min(len(paths), rng.randint(1, 2))):
        there = [_field(item, path) for item in items] or [0]
        found[path] = KnownValues.of(
            ".".join(path), rng.sample(there, min(len(there), rng.randint(1, 2)))
        )
    return found


def _sliced(
    program: CompiledProgram,
    ticks: Sequence[TickInput],
    output: str,
    where: Mapping[FieldPath, KnownValues],
    at: tuple[int, int],
) -> SlicedRun:
    def read(wanted: WantedRows) -> Mapping[int, Sequence[Any]]:
        return {n: tick.batches.get(wanted.name, ()) for n, tick in enumerate(ticks)}

    run = SlicedRun(program, slice_of(program.typed, output, where), *at)
    run.load(read)
    return run


def _bag(items: Sequence[Any], where: Mapping[FieldPath, KnownValues]) -> Counter[Any]:
    return Counter(
        canonical(item)
        for item in items
        if all(canonical(_field(item, path)) in known.forms for path, known in where.items())
    )


def _judge(kind: str, seed: int, counts: Counter[str]) -> None:
    rng = Random(f"{kind} {seed}")
    text, program, ticks = KINDS[kind](rng, seed)
    try:
        whole = list(run_ticks(program.typed, program.strata, ticks))
    except HydroError:
        return
    for output in program.typed.outputs:
        last = rng.randrange(len(ticks))
        first = rng.randint(0, last)
        items = [x for tick in whole for x in tick[output]]
        where = _asked(rng, program, output, items)
        run = _sliced(program, ticks, output, where, (first, last))
        found = run.run()
        for number, rows in enumerate(found, first):
            assert _bag(rows, where) == _bag(whole[number][output], where), (
                f"seed {seed}: {output} at {number} where {where} from {run.wanted}\n{text}"
            )
        there = sum(len(b) for t in ticks[: last + 1] for b in t.batches.values())
        kept = sum(len(b) for of in run.rows.values() for t, b in of.items() if t <= last)
        counts["judged"] += 1
        counts["with an answer"] += any(found)
        counts["rows"] += there
        counts["rows in slices"] += kept
        counts["everything"] += bool(there) and kept == there


@pytest.mark.parametrize("kind", KINDS)
def test_slices_answer_as_everything_does(kind: str, record_property: Any) -> None:
    counts = Counter[str]()
    for seed in range(60):
        _judge(kind, seed, counts)
    for name, count in counts.items():
        record_property(name, count)
    assert counts["with an answer"] >= 25
    assert counts["rows in slices"] < 0.8 * counts["rows"]


PASTS = {
    "a -> persist() -> out": True,
    "a -> filter(lambda r: r.v > 1) -> persist() -> unique() -> delta() -> out": True,
    'a -> old() -> aggregate(by="k", n=count(), most=max("v")) -> out': True,
    # What a tick has of a key is one row; it is not that of the ticks before.
    'a -> aggregate(by="k", n=count()) -> persist() -> out': False,
    'a -> unique() -> persist() -> aggregate(by="k", n=count()) -> out': False,
    'a -> join(right=b, on="k", suffix="_r") -> persist() -> out': False,
    # What is said last of a key counts.
    'a -> sort() -> map(lambda r: ("persist" if r.v > 1 else "delete", r.k))\n'
    "  -> persist_mut() -> out": False,
}


@pytest.mark.parametrize("text", PASTS)
def test_the_past_comes_at_once_where_that_is_the_same(text: str) -> None:
    schema = 'source("k string, v long")'
    program = compile_text(f"a = {schema}\nb = {schema}\n{text}")
    rows = [RowItem(k=k, v=v) for k in "xy" for v in (1, 2, 2)]
    ticks = [TickInput({"a": rows[n:] + rows[:1], "b": rows[: n + 1]}) for n in range(6)]
    ticks[4] = TickInput({"a": [RowItem(k="x", v=1)]})
    whole = list(run_ticks(program.typed, program.strata, ticks))
    path = ("k",) if "persist_mut" not in text else ()
    where = {path: KnownValues.of("k", ["x"])}
    for first in range(6):
        run = _sliced(program, ticks, "out", where, (first, 5))
        assert run.slice.past_at_once == PASTS[text]
        for number, found in enumerate(run.run(), first):
            assert _bag(found, where) == _bag(whole[number]["out"], where)
        ran = list(run._outputs(run.rows, lambda node, i, tick, bag: bag))
        assert (len(ran) < 6) == (PASTS[text] and first > 1 + (run.slice.recent or 0))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_slices_of_many_programs_answer_as_everything_does(kind: str, part: int) -> None:
    counts = Counter[str]()
    for seed in range(100):
        _judge(kind, 1000 + part * 100 + seed, counts)
    assert counts["with an answer"] >= 30
