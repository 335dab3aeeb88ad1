"""Streams that two programs are said to share are the same on random ticks, whatever was edited.

How many that are the same go unnoticed is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Args
from hydro_core.compile import CompiledProgram, compile_graph, compile_text, optimized
from hydro_core.errors import DataError, ProgramError
from hydro_core.ir.graph import Endpoint, Graph, Node, outputs
from hydro_core.optimize.compare import ComparedStream, Comparison, compare
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.validation.random_ticks import random_ticks, validate
from tests.support.flows import program
from tests.support.selection import mostly_slow

RUNS = 3
IN_PLACE = (("persist", "old"), ("delta", "unique"), ("old", "prev"), ("prev", "identity"))


def edited(graph: Graph, rng: Random) -> Graph:
    """The graph with one node changed: another operator, another input, another number."""
    nodes = dict(graph.nodes)
    inner = [n for n in graph if n.inputs]
    node = rng.choice(inner)
    match rng.randint(0, 3):
        case 0:
            names = [pair for pair in IN_PLACE if node.op.name in pair]
            if names:
                other = set(rng.choice(names)) - {node.op.name}
                node = node.with_(op=operator(other.pop()), args=Args())
        case 1:
            read = list(node.inputs)
            ends = [e for n in graph if n.op.outputs != "none" for e in outputs(n)]
            read[rng.randrange(len(read))] = rng.choice(ends)
            node = node.with_(inputs=tuple(read))
        case 2:
            node = node.with_(inputs=tuple(reversed(node.inputs)))
        case _:
            changed = {
                name: value + 1 for name, value in node.args.entries if isinstance(value, int)
            }
            node = node.with_(args=node.args.with_(**changed))
    nodes[node.id] = node
    return Graph.of(nodes.values())


def claims(found: Comparison) -> Iterator[tuple[Endpoint, Endpoint]]:
    """The pairs of streams, one of each program, that are said to be the same."""
    classes: dict[int, list[Endpoint]] = {}
    for stream, cls in found.classes.items():
        if stream.program == 0:
            classes.setdefault(cls, []).append(stream.endpoint)
    for stream, cls in found.classes.items():
        if stream.program == 1:
            yield from ((mine, stream.endpoint) for mine in classes.get(cls, ()))


def seen(compiled: CompiledProgram, streams: Sequence[Endpoint]) -> CompiledProgram:
    """The program with its streams as outputs, by their places."""
    nodes = [n for n in compiled.graph if n.op.name != "sink"]
    sinks = [
        Node(f"sees {i}", operator("sink"), Args().with_(name=f"sees {i}"), (e,))
        for i, e in enumerate(streams)
    ]
    schemas = {name: t.item for name, t in compiled.typed.inputs.items()}
    return compile_graph(Graph.of([*nodes, *sinks]), schemas)


def done(compiled: CompiledProgram, ticks: Sequence[TickInput]) -> int:
    """How many ticks the program completes; an edit may make a function that fails."""
    count = 0
    try:
        for _ in run_ticks(compiled.typed, compiled.strata, ticks):
            count += 1
    except DataError:
        return count
    return count


def check(one: CompiledProgram, other: CompiledProgram, seed: str) -> int:
    """How many pairs are said to be the same; they are."""
    pairs = list(claims(compare([one.typed, other.typed])))
    if not pairs:
        return 0
    mine = seen(one, [a for a, _ in pairs])
    yours = seen(other, [b for _, b in pairs])
    for number in range(RUNS):
        ticks = random_ticks(mine, Random(f"{seed}/{number}"))
        ticks = ticks[: min(done(mine, ticks), done(yours, ticks))]
        found = validate(yours, mine, ticks)
        if found is not None:
            which = pairs[int(found.output.split()[1])]
            raise AssertionError(f"{which}: {found}\n{shown(one)}\n{shown(other)}")
    return len(pairs)


def shown(compiled: CompiledProgram) -> str:
    return "\n".join(
        f"{n.id} = {n.op.name} {dict(n.args.entries)} {[str(e) for e in n.inputs]}"
        for n in compiled.graph
    )


def check_edits(seed: int) -> tuple[int, int]:
    """How many streams were said to be the same, and how many edits were compared."""
    rng = Random(seed)
    one = compile_text(program(rng, rng.randint(3, 8)))
    said = compared = 0
    for _ in range(3):
        try:
            graph = edited(one.graph, rng)
            for _ in range(rng.randint(0, 1)):
                graph = edited(graph, rng)
            other = compile_graph(graph, {n: t.item for n, t in one.typed.inputs.items()})
        except ProgramError:
            continue  # an edit need not give a program
        said += check(one, other, f"{seed}")
        compared += 1
    return said, compared


@pytest.mark.parametrize("block", mostly_slow(range(5), 1))
def test_what_is_said_to_be_the_same_is_the_same(block: int) -> None:
    found = [check_edits(seed) for seed in range(20 * block, 20 * block + 20)]
    assert sum(compared for _, compared in found) > 25
    assert sum(said for said, _ in found) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_what_is_said_to_be_the_same_is_the_same_a_thousand_times(block: int) -> None:
    found = [check_edits(seed) for seed in range(1000 + 50 * block, 1050 + 50 * block)]
    assert sum(compared for _, compared in found) > 60


def test_a_program_and_its_plan_are_the_same(
    record_property: Callable[[str, object], None],
) -> None:
    """A new optimizer takes the tables over; what it does not notice is made anew."""
    missed = compared = 0
    for seed in range(60):
        rng = Random(seed)
        one = compile_text(program(rng, rng.randint(3, 8)))
        other = optimized(one)
        found = compare([one.typed, other.typed])
        for name, sinks in one.graph.sinks.items():
            streams = [
                (s.inputs[0], o.inputs[0])
                for s, o in zip(sinks, other.graph.sinks[name], strict=True)
            ]
            compared += 1
            missed += not all(
                found.same(ComparedStream(0, a), ComparedStream(1, b)) for a, b in streams
            )
        check(one, other, str(seed))
    record_property("outputs of plans that are not noticed to be the program's", missed)
    assert compared > 60
    assert missed == 0
