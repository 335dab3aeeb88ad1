"""Shards side by side in one program: its inputs, outputs and types, and what its streams mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hydro_core.compile import Compiled, compile_text
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.compare import ComparedStream, compare
from hydro_core.optimize.optimizer import Optimized, optimize
from hydro_core.plan.semantic_hash import program_hashes
from hydro_core.shards.program import sharded
from hydro_core.shards.run import side_by_side
from hydro_core.shards.together import Together, as_written
from tests.golden.test_shards import PROGRAMS, cut, whole

Plan = Callable[[Compiled], Optimized]


def best(program: Compiled) -> Optimized:
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
    one, other = (Together.of(found, how).hashes(own) for how in (as_written, best))
    both = one.keys() & other.keys()
    assert {n: one[n] for n in both} == {n: other[n] for n in both}
    shards = {n: m for n, m in one.items() if n.endswith(" of shard 1")}
    assert not {*shards.values()} & {m for n, m in one.items() if n not in shards}


@pytest.mark.parametrize("planned", [as_written, best], ids=["as written", "planned"])
def test_what_the_last_step_reads_may_be_in_no_shard(planned: Plan) -> None:
    program = compile_text(
        """
        a = source("k string, v long")
        a -> aggregate(by="k", n=count()) -> counted
        nothing = source_iter([], schema="long")
        nothing -> delta() -> sort() -> chain(right=later) -> out
        later = a -> map(lambda r: r.v) -> sort()
        """
    )
    found = sharded(program, 2)
    assert "out" not in found.first.typed.outputs
    assert {*Together.of(found, planned).compiled.typed.outputs} == {"counted", "out"}


def test_a_program_with_a_cycle_is_compared_with_its_shards() -> None:
    program = compile_text(
        """
        e = source("(string, string)")
        edges = e -> persist()
        reach = union() -> unique()
        edges -> reach
        reach -> map(lambda p, q: (q, p)) -> join(right=edges) -> map(lambda k, v: v) -> reach
        reach -> delta() -> out
        """
    )
    together = Together.of(sharded(program, 2), best).compiled.typed
    assert {"reach of shard 0", "reach of shard 1"} <= {node.id for node in together.graph}
    found = compare([program.typed, together])
    assert found.same(ComparedStream(0, Endpoint("edges")), ComparedStream(0, Endpoint("edges")))
