"""Runs a program in shards on the reference interpreter, for any choice and any routing function.

Every shard runs the program over its part of the inputs, tick by tick. Where a stream that all
shards have whole meets one that is cut, each takes its part of it, as the analysis says; what is
put out of such a stream is put out by one shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.partitioning import as_path
from hydro_core.analysis.partition.steps import Steps
from hydro_core.analysis.partition.terms import UNKNOWN, FieldAt, KeyTerm, opaque_term
from hydro_core.catalog.registry import NAMES
from hydro_core.catalog.spec import Args
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.functions.tree import Fn, Op
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import BOOLEAN
from hydro_core.types.values import canonical

Bags = list[dict[str, Counter[Any]]]


@dataclass(frozen=True)
class Routing:
    """Some function from values to shards; equal values go to the same one."""

    shards: int
    seed: int

    def shard(self, term: KeyTerm | None, item: Any) -> int:
        """The shard of an item that is routed by the term; None: any one."""
        if term is None:
            return self.seed % self.shards
        form = f"{self.seed} {canonical(value_of(term, item))!r}"
        return int.from_bytes(blake2b(form.encode(), digest_size=4).digest()) % self.shards


def value_of(term: KeyTerm, item: Any) -> Any:
    """The value of a term of an item; where a function fails, a value of its own."""
    if isinstance(term, FieldAt):
        return _at(item, term.path)
    if isinstance(term, Op) and term.name == UNKNOWN:
        known_by, *fields = term.args
        return [repr(known_by), *(value_of(field, item) for field in fields)]
    *path, step = as_path(term)
    try:
        return eval(step[1:], {"_": _at(item, path)})
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return "fails"


def _at(item: Any, path: Sequence[str]) -> Any:
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if isinstance(item, tuple) else item[step]
    return item


def bags(program: CompiledProgram, ticks: Sequence[TickInput]) -> Bags:
    """What the program puts out, whole."""
    found = run_ticks(program.typed, program.strata, ticks)
    return [{name: Counter(map(canonical, items)) for name, items in t.items()} for t in found]


def bags_of_shards(
    steps: Steps,
    ticks: Sequence[TickInput],
    choice: RoutingTerms,
    routing: Routing,
    replicated: Collection[str] = (),
) -> Bags:
    """What all shards put out together."""
    found: Bags = []
    for shard in range(routing.shards):
        program = _of_shard(steps, choice, routing, replicated, shard)
        part = [_part(steps, tick, choice, routing, replicated, shard) for tick in ticks]
        for number, tick in enumerate(bags(program, part)):
            if shard == 0:
                found.append(tick)
            else:
                for name, bag in tick.items():
                    found[number][name].update(bag)
    return found


def _part(
    steps: Steps,
    tick: TickInput,
    choice: RoutingTerms,
    routing: Routing,
    replicated: Collection[str],
    shard: int,
) -> TickInput:
    batches = dict(tick.batches)
    for source in steps.sources.values():
        if source.name in batches and source.name not in replicated:
            by = choice.get(source.name) or opaque_term(UNKNOWN, (source.name,), source.leaves)
            items = batches[source.name]
            batches[source.name] = [i for i in items if routing.shard(by, i) == shard]
    return TickInput(batches)


def _of_shard(
    steps: Steps, choice: RoutingTerms, routing: Routing, replicated: Collection[str], shard: int
) -> CompiledProgram:
    """What leads to an output; of what every shard has whole a filter takes its part."""
    graph, cut = steps.typed.graph, steps.cut(replicated)
    splits: dict[tuple[str, int], KeyTerm | None] = dict(locate(steps, choice, replicated).splits)
    for sinks in graph.sinks.values():
        splits |= {(sink.id, 0): None for sink in sinks if sink.inputs[0].node not in cut}
    nodes: list[Node] = []
    for node in (node for node in graph if node.id in steps.of):
        inputs = list(node.inputs)
        for i, endpoint in enumerate(inputs):
            if (node.id, i) in splits:
                name = f"{node.id}.{i}"
                by = splits[node.id, i]
                nodes.append(_filter(name, endpoint, by, routing, shard))
                inputs[i] = Endpoint(name)
        nodes.append(node.with_(inputs=tuple(inputs)))
    schemas = {name: stream.item for name, stream in steps.typed.inputs.items()}
    return compile_graph(Graph.of(nodes), schemas)


def _filter(name: str, reads: Endpoint, term: KeyTerm | None, routing: Routing, shard: int) -> Node:
    def is_mine(item: Any) -> bool:
        return routing.shard(term, item) == shard

    fn = Fn(name, f"function#{name}", ("item",), is_mine, returns=BOOLEAN)
    return Node(name, NAMES["filter"], Args((("f", fn),)), (reads,))


def is_right(
    steps: Steps,
    ticks: Sequence[TickInput],
    whole: Bags,
    choice: Mapping[str, KeyTerm],
    routing: Routing,
    replicated: Collection[str] = (),
) -> bool:
    """Whether the shards together put out what the whole does, at every tick."""
    return bags_of_shards(steps, ticks, choice, routing, replicated) == whole
