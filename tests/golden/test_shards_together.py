"""All programs with expected outputs, their shards beside each other in one program."""

from __future__ import annotations

import pytest

from hydro_core.compile import Compiled, compile_graph
from hydro_core.optimize.optimizer import Optimized, optimize
from hydro_core.plan.meaning import program_meanings
from hydro_core.running import run_items
from hydro_core.shards.program import Sharded
from hydro_core.shards.together import Together
from tests.golden.test_shards import AS_WRITTEN, PROGRAMS, cut, shown, whole


def written(program: Compiled) -> Optimized:
    return Optimized(program.graph, 0.0, 0.0, streams={node.id: node.id for node in program.graph})


def best(program: Compiled) -> Optimized:
    return optimize(program.typed, program.strata)


def together(found: Sharded, *, optimized: bool) -> Together:
    planned = best if optimized else written
    return Together(found, planned(found.first), planned(found.last) if found.last else None)


def compiled(found: Together, program: Compiled) -> Compiled:
    return compile_graph(found.graph, {n: t.item for n, t in program.typed.inputs.items()})


@pytest.mark.parametrize("name", PROGRAMS)
def test_shards_beside_each_other_give_what_the_whole_gives(name: str) -> None:
    found = cut(name, 3)
    if found is None:
        return
    program, items, expected = whole(name)
    # Plans of some of them: to find one takes longer than all else.
    optimized = len(name) % 7 == 0
    shards = together(found, optimized=optimized)
    one = compiled(shards, program)
    assert shown(lambda: run_items(one, items, AS_WRITTEN)) == expected
    assert one.typed.outputs == program.typed.outputs
    assert list(one.typed.inputs) == list(program.typed.inputs)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if len(name) % 7 == 0])
def test_a_stream_means_the_same_however_a_shard_is_planned(name: str) -> None:
    """And in two shards, or in another program, it means something else."""
    found = cut(name, 2)
    if found is None:
        return
    own = program_meanings(whole(name)[0].typed)
    given = [together(found, optimized=how).meanings(own) for how in (False, True)]
    both = given[0].keys() & given[1].keys()
    assert {n: given[0][n] for n in both} == {n: given[1][n] for n in both}
    shards = {n: m for n, m in given[0].items() if n.endswith(" of shard 1")}
    assert not {*shards.values()} & {m for n, m in given[0].items() if n not in shards}
