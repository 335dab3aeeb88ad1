"""Shards side by side in one program: its inputs, outputs and types, and what its streams mean."""

from __future__ import annotations

import pytest

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.compare import ComparedStream, compare
from hydro_core.optimize.optimizer import OptimizedProgram, optimize
from hydro_core.plan.semantic_hash import program_hashes
from hydro_core.shards.program import sharded
from hydro_core.shards.together import ShardedPlan, as_written, side_by_side
from tests.golden.test_shards import PROGRAMS, cut, whole


def best(program: CompiledProgram) -> OptimizedProgram:
    return optimize(program.typed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_has_the_inputs_and_outputs_of_the_whole(name: str) -> None:
    found = cut(name, 3)
    if found is None:
        return
    typed, program = side_by_side(found, optimize=False).typed, whole(name)[0].typed
    assert typed.outputs == program.outputs
    assert list(typed.inputs) == list(program.inputs)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if len(name) % 7 == 0])
def test_a_stream_means_the_same_however_a_shard_is_planned(name: str) -> None:
    """And in the other shard, or in the whole, it means something else."""
    found = cut(name, 2)
    if found is None:
        return
    own = program_hashes(whole(name)[0].typed)
    one, other = (ShardedPlan.of(found, how).hashes(own) for how in (as_written, best))
    both = one.keys() & other.keys()
    assert {n: one[n] for n in both} == {n: other[n] for n in both}
    shards = {n: m for n, m in one.items() if n.endswith(" of shard 1")}
    assert not {*shards.values()} & {m for n, m in one.items() if n not in shards}


def test_a_program_with_a_cycle_is_compared_with_its_shards() -> None:
    program = compile_text(
        """
        start = source("(long, long)")
        e = source("(long, long)")
        edges = e -> persist()
        reach = union() -> unique()
        start -> persist() -> reach
        reach -> join(right=edges) -> map(lambda k, p: (k, p[1])) -> reach
        reach -> delta() -> out
        """
    )
    together = ShardedPlan.of(sharded(program, 2), best).compiled.typed
    assert {"edges of shard 0", "edges of shard 1"} <= {node.id for node in together.graph}
    found = compare([program.typed, together])
    assert found.same(ComparedStream(0, Endpoint("edges")), ComparedStream(0, Endpoint("edges")))
