"""A program cut into shards: the program of each shard, and what its inputs are routed by.

One routing of the inputs serves all operators, or the program is not cut. Each shard's program is
the whole one with an operator behind every input that takes the items of the shard. What depends on
no input is on every shard: where it meets a stream that is cut, each shard takes its part of it,
and what is put out of it is put out by the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.partitioning import (
    On,
    Partitioning,
    choice_of,
    in_words,
    judge,
    partition,
)
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import InputLeaves, Steps, steps_of
from hydro_core.analysis.partition.terms import (
    UNKNOWN,
    FieldAt,
    KeyTerm,
    fields_of,
    opaque_term,
    text_of_choice,
)
from hydro_core.catalog.internal import OF_SHARD
from hydro_core.catalog.spec import Args, OrderRule
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.tree import Expr, Fn, Make, Op, Param, Part, children, with_children
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, behind
from hydro_core.lang.source import no_such_input
from hydro_core.types.item import BOOLEAN, ItemType, Order, StreamType, Tuple, at


@dataclass(frozen=True)
class Spelling:
    """How one writes, where shards are asked for, what cures a refusal."""

    on: str = "`--on`"
    replicate: Callable[[Sequence[str]], str] = field(
        default=lambda names: f"--replicate {' --replicate '.join(names)}"
    )
    without: str = "run it without `--shards`"


@dataclass(frozen=True)
class ShardedProgram:
    """A program cut into shards."""

    count: int
    choice: RoutingTerms
    """What the inputs are routed by; one that is not named, by its whole items."""
    replicated: tuple[str, ...]
    """The inputs that every shard gets whole."""
    first: CompiledProgram
    """The program of the first shard."""
    outputs: Mapping[str, StreamType]
    """The outputs of the whole program."""
    merges: Mapping[str, tuple[Node, ...]]
    """Of an ordered output, the operators that make it of the items of all shards: the one that
    sorts them, then those that change items behind it.
    """

    def of(self, shard: int) -> CompiledProgram:
        """The program of one shard."""
        graph = self.first.graph
        nodes = (
            node.with_(args=node.args.with_(shard=shard)) if node.op is OF_SHARD else node
            for node in graph
        )
        numbered = Graph.of(nodes, graph.name, graph.warnings)
        return CompiledProgram(Typed(numbered, self.first.typed.types), self.first.strata)

    @cached_property
    def described(self) -> str:
        """The routing in a line: `4 shards: orders by user, users by id`."""
        ways = in_words(self.choice) or "each input by its whole items"
        whole = f"; every shard has all of {', '.join(self.replicated)}" if self.replicated else ""
        merged = f"; sorted again: {', '.join(self.merges)}" if self.merges else ""
        return f"{self.count} shards: {ways}{whole}{merged}"


COMMAND = Spelling()


def sharded(
    program: CompiledProgram,
    count: int,
    on: On | None = None,
    replicate: Collection[str] = (),
    spelling: Spelling = COMMAND,
) -> ShardedProgram:
    """Cuts a program into shards.

    Args:
        program: the program.
        count: how many shards.
        on: the fields by which inputs are routed; None: a derived choice is taken.
        replicate: inputs that every shard gets whole.
        spelling: how the one who asks writes what an error proposes.

    Raises:
        ProgramError: it cannot be cut (so), or there is no such input or field.
    """
    if count < 1:
        help_ = "give the number of shards, 1 or more"
        raise ProgramError.of("config", f"there are no {count} shards", help=help_)
    typed = program.typed
    for name in replicate:
        if name not in typed.inputs:
            raise no_such_input(name, typed.inputs)
    steps, whole = steps_of(typed), frozenset(replicate)
    ways = _ways(steps, whole, choice_of(steps, on) if on else None)
    if not ways:
        raise _refusal(typed, on, spelling)
    merges = {name: _merge(typed, name, spelling) for name in _ordered(steps, whole)}
    parts = _program_of_parts(typed, merges)
    cut = _ShardCut(parts, steps_of(parts.typed), whole, count)
    for choice in ways:
        routes = cut.routes(choice)
        if routes is not None:
            first = _compiled(typed, cut.graph(routes))
            replicated = tuple(sorted(whole))
            then = {name: merge.then for name, merge in merges.items()}
            return ShardedProgram(count, choice, replicated, first, typed.outputs, then)
    raise ProgramError.of(
        "config",
        f"{typed.graph.name} cannot be run in shards: a function by which items would be routed "
        "is known by its name only",
        help=f"route by a field: {spelling.on}; or {spelling.without}",
    )


def _ways(
    steps: Steps, replicated: frozenset[str], choice: RoutingTerms | None
) -> list[RoutingTerms]:
    """The choice, if it is right; None given: those that are, the best first."""
    if choice is not None:
        return [] if locate(steps, choice, replicated).failed else [choice]
    sources = {source.name: source for source in steps.sources.values()}
    choices = ChoiceSearch(steps).choices(replicated)
    return sorted(choices, key=lambda way: _badness(way, sources))


def _compiled(typed: Typed, graph: Graph) -> CompiledProgram:
    """What is made of a program; its inputs are as they are in the program."""
    return compile_graph(graph, {n: typed.inputs[n].item for n in graph.sources})


@dataclass(frozen=True)
class _Merge:
    """How an ordered output is made of its parts."""

    parts: Endpoint
    """The stream that each shard gives."""
    then: tuple[Node, ...]


def _ordered(steps: Steps, replicated: frozenset[str]) -> Iterator[str]:
    """The outputs that have an order, and of which each shard has a part."""
    cut, typed = steps.cut(replicated), steps.typed
    for name, stream in typed.outputs.items():
        reads = (sink.inputs[0].node for sink in typed.graph.sinks[name])
        if stream.order is Order.TOTAL and any(node in cut for node in reads):
            yield name


def _merge(typed: Typed, name: str, spelling: Spelling) -> _Merge:
    """How the parts of an ordered output become one: what sorted them sorts them again.

    What follows the sort and keeps the items as they are is done by the shards.

    Raises:
        ProgramError: no single operator gives the order (code `config`).
    """
    (sink,) = typed.graph.sinks[name]
    way = _way_to_sort(typed, sink.inputs[0])
    if way:
        sort, *behind_sort = way
        (parts,) = typed.graph[sort.node].inputs
        item = typed.types[parts].item
        while behind_sort and _keeps_items(typed, behind_sort[0], item):
            parts = behind_sort.pop(0)
        then = tuple(typed.graph[end.node] for end in (sort, *behind_sort))
        if all(len(node.inputs) == 1 and node.op.outputs == "one" for node in then):
            return _Merge(parts, then)
    raise ProgramError.of(
        "config",
        f"{typed.graph.name} cannot be run in shards: no operator can put the parts of "
        f"`{name}` in order again",
        sink.span,
        help=f"sort before `{name}`; or {spelling.without}",
    )


def _way_to_sort(typed: Typed, stream: Endpoint) -> list[Endpoint]:
    """From the stream that a sort gives to one that keeps its order; empty where there is none."""
    way: list[Endpoint] = []
    while stream not in way:
        node = typed.graph[stream.node]
        way.insert(0, stream)
        if node.spec.order is OrderRule.GIVES:
            return way
        if node.spec.order is not OrderRule.KEEPS or not node.inputs:
            return []
        stream = node.inputs[0]
    return []


def _keeps_items(typed: Typed, stream: Endpoint, item: ItemType) -> bool:
    return typed.graph[stream.node].op.lineage is None and typed.types[stream].item == item


def _program_of_parts(typed: Typed, merges: Mapping[str, _Merge]) -> CompiledProgram:
    """The program whose ordered outputs are what is merged of them."""
    graph = typed.graph
    nodes = dict(graph.nodes)
    for name, merge in merges.items():
        (sink,) = graph.sinks[name]
        nodes[sink.id] = sink.with_(inputs=(merge.parts,))
    ends = (n.id for n in nodes.values() if n.op.outputs == "none" or not n.inputs)
    used = behind(nodes, ends)
    kept = (node for node in nodes.values() if node.id in used)
    return _compiled(typed, Graph.of(kept, graph.name, graph.warnings))


Routes = Mapping[tuple[NodeId, int], Args]
"""How the items that enter an operator are routed, where not all of them may be used."""


@dataclass(frozen=True)
class _ShardCut:
    """What every shard does, before it is said by what inputs are routed."""

    program: CompiledProgram
    steps: Steps
    replicated: frozenset[str]
    count: int

    def graph(self, routes: Routes) -> Graph:
        """The program of the first shard."""
        graph = self.program.graph
        nodes: list[Node] = []
        routed: dict[tuple[Endpoint, Args], NodeId] = {}
        for node in graph:
            inputs = list(node.inputs)
            for i, reads in enumerate(inputs):
                taken = routes.get((node.id, i))
                if taken is None:
                    continue
                name = routed.get((reads, taken))
                if name is None:
                    others = sum(end == reads for end, _ in routed)
                    name = f"{reads} routed{f' {others + 1}' if others else ''}"
                    routed[reads, taken] = name
                    nodes.append(Node(name, OF_SHARD, taken, (reads,), node.span))
                inputs[i] = Endpoint(name)
            nodes.append(node.with_(inputs=tuple(inputs)))
        return Graph.of(nodes, graph.name, graph.warnings)

    def routes(self, choice: RoutingTerms) -> Routes | None:
        """What a choice routes; None where a function of it cannot be computed."""
        types = self.program.typed.types
        routes = {}
        for (name, i), term in self._taken_by(choice):
            item = types[self.program.graph[name].inputs[i]].item
            found = arguments(term, item, self.count)
            if found is None:
                return None
            routes[name, i] = found
        return routes

    def _taken_by(
        self, choice: RoutingTerms
    ) -> Iterator[tuple[tuple[NodeId, int], KeyTerm | None]]:
        graph, steps = self.program.graph, self.steps
        whole = steps.of.keys() - steps.cut(self.replicated)
        for node in graph:
            for i, reads in enumerate(node.inputs):
                source = steps.sources.get(reads.node)
                if source is not None and source.name not in self.replicated:
                    yield (
                        (node.id, i),
                        choice.get(source.name)
                        or opaque_term(UNKNOWN, (source.name,), source.leaves),
                    )
                elif node.op.outputs == "none" and reads.node in whole:
                    yield (node.id, i), None
        yield from locate(steps, choice, self.replicated).splits.items()


def arguments(term: KeyTerm | None, item: ItemType, shards: int) -> Args | None:
    """How items are routed by a term; None where a function in it is known by its name only.

    Without a term all go to the first shard.
    """
    parts = [] if term is None else list(_parts(term))
    by = tuple(part.path for part in parts if isinstance(part, FieldAt))
    function = None
    if len(by) < len(parts):
        function = _function(parts, item)
        if function is None:
            return None
        by = ()
    return Args((("by", by), ("f", function), ("shards", shards), ("shard", 0)))


def _badness(choice: RoutingTerms, sources: Mapping[str, InputLeaves]) -> tuple[Any, ...]:
    """By what choices are put in order: the first is taken, where nothing is said of the data.

    Fields are better than functions of them, which have fewer values and are computed apart; what
    has two values only is worst.
    """
    functions = sum(not isinstance(part, FieldAt) for t in choice.values() for part in _parts(t))
    narrow = sum(
        at(sources[name].item, path) == BOOLEAN
        for name, term in choice.items()
        for path in fields_of(term)
    )
    return functions + narrow, narrow, text_of_choice(choice)


def _parts(term: KeyTerm) -> Iterator[KeyTerm]:
    """The values that a term is made of: fields, or functions of them."""
    match term:
        case Make("tuple" | "row"):
            for part in children(term):
                yield from _parts(part)
        case Op(name, (_, *fields)) if name == UNKNOWN:
            yield from fields
        case _:
            yield term


def _function(parts: list[KeyTerm], item: ItemType) -> Fn | None:
    """The function that gives the values, if they can be computed."""
    whole = parts[0] if len(parts) == 1 else Make("tuple", tuple(parts))
    tree = _over_items(whole, item)
    return function_of(tree, (ITEM,)) if is_complete(tree) else None


def _over_items(term: KeyTerm, item: ItemType) -> Expr:
    """The term as an expression of the item; it fails where there is nothing to take a field of."""
    if not isinstance(term, FieldAt):
        return with_children(term, (_over_items(part, item) for part in children(term)))
    found: Expr = Param(ITEM)
    for i, step in enumerate(term.path):
        is_tuple = isinstance(at(item, term.path[:i]), Tuple)
        found = Part(found, int(step) if is_tuple else step)
    return found


def _refusal(typed: Typed, on: On | None, spelling: Spelling) -> ProgramError:
    """Which operators forbid to cut the program, and what would help."""
    answer = judge(typed, on) if on else partition(typed)
    so = " by this choice" if on else ""
    name = typed.graph.name
    if not answer.blockers:
        return ProgramError.of(
            "config",
            f"{name} cannot be cut into shards with these inputs whole on every shard",
            help="leave out inputs that every shard is to have",
        )
    return ProgramError(
        *(
            Diagnostic(
                "config",
                f"{name} cannot be cut into shards{so}: `{blocker.operator}` ({blocker.node}) "
                f"{' '.join((blocker.why, *blocker.details))}",
                blocker.place,
                blocker.operator,
                help=_cure(answer, spelling, by_choice=bool(on)),
            )
            for blocker in answer.blockers
        )
    )


def _cure(answer: Partitioning, spelling: Spelling, *, by_choice: bool) -> str:
    if by_choice:
        return "`hydrotick partition` tells what else to route on"
    whole = [spelling.replicate(p.replicate) for p in answer.partial[:3]]
    return "; or ".join(
        (*(f"`{way}`: every shard has all of it" for way in whole), spelling.without)
    )
