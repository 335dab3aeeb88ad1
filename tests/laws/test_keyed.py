"""Where a key is said to tell whose an item is, an output without one value's items is the output
of inputs without that value: judged by the reference interpreter on random programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Any

import pytest

from hydro_core.analysis.partition.locations import keyed_streams
from hydro_core.analysis.partition.terms import is_exact
from hydro_core.compile import CompiledProgram, optimized
from hydro_core.errors import HydroError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.ticks.wanted import field_of
from hydro_core.types.item import FieldPath, leaves
from hydro_core.types.values import canonical
from tests.laws.test_partition import KINDS
from tests.support.shards import Bags, bags

Keys = Mapping[str, FieldPath]


def _keys(program: CompiledProgram) -> Iterator[Keys]:
    """Every choice of one field, of an exact type, of some inputs."""
    ways = []
    for stream in program.typed.inputs.values():
        paths = (path for path, item in leaves(stream.item) if is_exact(item))
        ways.append([None, *paths])
    for chosen in product(*ways):
        named = zip(program.typed.inputs, chosen, strict=True)
        found = {name: path for name, path in named if path is not None}
        if found:
            yield found


def _fields(program: CompiledProgram, keys: Keys) -> Mapping[str, FieldPath | None] | None:
    """The field of each output; None: some output cannot be told apart."""
    sinks = program.typed.graph.sinks
    streams = {name: [sink.inputs[0].node for sink in of] for name, of in sinks.items()}
    found = keyed_streams(program.typed, keys, (node for of in streams.values() for node in of))
    if found.obstacles:
        return None
    fields: dict[str, FieldPath | None] = {}
    for name, nodes in streams.items():
        sets = [found.fields[node] for node in nodes]
        if all(one is None for one in sets):
            fields[name] = None
            continue
        common = frozenset.intersection(*(one or frozenset() for one in sets))
        if not common:
            return None
        fields[name] = min(common)
    return fields


def _judge(kind: str, seed: int) -> int:
    rng = Random(f"{kind} {seed}")
    text, program, ticks = KINDS[kind](rng, seed)
    try:
        whole = list(run_ticks(program.typed, program.strata, ticks))
    except HydroError:
        return 0
    judged = 0
    for keys in _keys(program):
        for typed in (program, optimized(program)):
            fields = _fields(typed, keys)
            values = [value for value in _values(ticks, keys) if value is not None]
            if fields is None or not values:
                continue
            value = rng.choice(values)
            told = f"seed {seed}: {keys} is {value!r}\n{text}"
            assert _without(program, ticks, keys, value) == _left(whole, fields, value), told
            judged += 1
    return judged


def _values(ticks: list[TickInput], keys: Keys) -> Iterator[Any]:
    for tick in ticks:
        for name, path in keys.items():
            yield from (field_of(item, path) for item in tick.batches.get(name, ()))


def _without(program: CompiledProgram, ticks: list[TickInput], keys: Keys, value: Any) -> Bags:
    def left(name: str, items: Any) -> list[Any]:
        return [i for i in items if name not in keys or field_of(i, keys[name]) != value]

    return bags(program, [TickInput({n: left(n, b) for n, b in t.batches.items()}) for t in ticks])


def _left(whole: list[Any], fields: Mapping[str, FieldPath | None], value: Any) -> Bags:
    def stays(name: str, item: Any) -> bool:
        path = fields[name]
        return path is None or field_of(item, path) != value

    return [
        {n: Counter(canonical(i) for i in items if stays(n, i)) for n, items in tick.items()}
        for tick in whole
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_what_the_others_give(kind: str) -> None:
    assert sum(_judge(kind, seed) for seed in range(6)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_of_many_programs_what_is_left_is_what_the_others_give(kind: str, part: int) -> None:
    assert sum(_judge(kind, 1000 + part * 30 + i) for i in range(30)) >= 10
