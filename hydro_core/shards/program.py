"""A program cut into shards: every shard's program, the last step, and what is routed by what.

Each shard's program is the whole one with an operator behind every input that takes the items of
the shard. What depends on no input is on every shard: where it meets a stream that is cut, each
shard takes its part of it, and what is put out of it is put out by the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.answer import On, choice_of, judge, partition
from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.partitioning import Partitioning, in_words
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import InputLeaves, Steps, steps_of
from hydro_core.analysis.partition.terms import (
    UNKNOWN,
    At,
    KeyTerm,
    fields_of,
    opaque_term,
    text_of_choice,
)
from hydro_core.analysis.partition.two_steps import in_two_steps
from hydro_core.catalog.internal import OF_SHARD
from hydro_core.catalog.spec import Args
from hydro_core.compile import Compiled
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.functions.fn import Fn
from hydro_core.functions.fold import children, with_children
from hydro_core.functions.from_tree import function_of, is_complete
from hydro_core.functions.tree import Expr, Make, Op, Param, Part
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.lang.similar import no_such_input
from hydro_core.optimize.statistics import Statistics
from hydro_core.shards.exchange import exchanged, part_of
from hydro_core.types.item import BOOLEAN, ItemType, Tuple, at
from hydro_core.types.stream import StreamType


@dataclass(frozen=True)
class Spelling:
    """How one writes, where shards are asked for, what cures a refusal."""

    on: str = "`--on`"
    replicate: Callable[[Sequence[str]], str] = field(
        default=lambda names: f"--replicate {' --replicate '.join(names)}"
    )
    without: str = "run it without `--shards`"


@dataclass(frozen=True)
class Sharded:
    """A program cut into shards."""

    count: int
    choice: RoutingTerms
    """What the inputs are routed by; one that is not named, by its whole items."""
    replicated: tuple[str, ...]
    """The inputs that every shard gets whole."""
    first: Compiled
    """The program of the first shard."""
    last: Compiled | None
    """The step that makes outputs of what the shards give; None where there is none to do."""
    gathered: tuple[str, ...]
    """What the shards give to the last step, by the names of their outputs and its inputs."""
    outputs: Mapping[str, StreamType]
    """The outputs of the whole program."""
    exchanged: Mapping[str, str | None] = field(default_factory=dict)
    """Inputs of the shards that are none of the program: what all shards give under that name goes
    to other shards; or, where one is named, that input, which is routed in more than one way.
    """

    def of(self, shard: int) -> Compiled:
        """The program of one shard."""
        graph = self.first.graph
        nodes = (
            node.with_(args=node.args.with_(shard=shard)) if node.op is OF_SHARD else node
            for node in graph
        )
        numbered = Graph.of(nodes, graph.name, graph.warnings)
        return Compiled(Typed(numbered, self.first.typed.types), self.first.strata)

    @cached_property
    def described(self) -> str:
        """What is done, in a line: `4 shards, routed by user (orders), id (users)`."""
        ways = in_words(self.choice) or "each input by its whole items"
        whole = f"; every shard has all of {', '.join(self.replicated)}" if self.replicated else ""
        made = [name for name in self.outputs if self.last and name in self.last.typed.outputs]
        last = f"; a last step makes {', '.join(made)}" if made else ""
        moved = [name for name, source in self.exchanged.items() if source is None]
        between = f"; exchanged between them: {', '.join(moved)}" if moved else ""
        return f"{self.count} shards: {ways}{whole}{between}{last}"


COMMAND = Spelling()


def sharded(
    program: Compiled,
    count: int,
    on: On | None = None,
    replicate: Collection[str] = (),
    spelling: Spelling = COMMAND,
    stats: Statistics | None = None,
) -> Sharded:
    """Cuts a program into shards.

    Args:
        program: the program.
        count: how many shards.
        on: the fields by which inputs are routed; None: a derived choice is taken.
        replicate: inputs that every shard gets whole.
        spelling: how the one who asks writes what an error proposes.
        stats: what is known of the inputs, by which exchanges and broadcasts are chosen.

    Raises:
        ProgramError: it cannot be cut (so), or there is no such input or field.
    """
    if count < 1:
        help_ = "give the number of shards, 1 or more"
        raise ProgramError.of("config", f"there are no {count} shards", help=help_)
    for name in replicate:
        if name not in program.typed.inputs:
            raise no_such_input(name, program.typed.inputs)
    whole = frozenset(replicate)
    found = _sharded(program.typed, count, on, whole)
    if found is None and not on:
        # Only what somebody has chosen is to be right as it is.
        parts = exchanged(program.typed, whole, count, stats)
        if parts is not None:
            found = _sharded(parts.typed, count, None, whole | parts.broadcast)
            if found is not None:
                outputs = program.typed.outputs
                found = replace(found, outputs=outputs, exchanged=parts.streams)
    if found is None:
        raise _refusal(program.typed, on, spelling)
    return found


def _sharded(typed: Typed, count: int, on: On | None, whole: frozenset[str]) -> Sharded | None:
    """A program that is cut without exchanges; None where it cannot be."""
    steps = steps_of(typed)
    choice = choice_of(steps, on) if on else None
    parts = in_two_steps(steps, whole)
    if parts is None:
        return None
    steps = steps_of(part_of(typed, parts.cut).typed)
    cut = _Cut(part_of(typed, parts.shards), steps, whole, count)
    taken = cut.taken(choice)
    if taken is None:
        return None
    last = None if parts.last is None else part_of(typed, parts.last)
    first = part_of(typed, cut.graph(taken))
    return Sharded(count, taken, tuple(sorted(whole)), first, last, parts.gathered, typed.outputs)


@dataclass(frozen=True)
class _Cut:
    """What every shard does, before it is said by what inputs are routed."""

    program: Compiled
    steps: Steps
    """What of it must be cut well."""
    replicated: frozenset[str]
    count: int

    def taken(self, choice: RoutingTerms | None) -> RoutingTerms | None:
        """The choice, if it is right; None given: the first of those that are."""
        if choice is None:
            sources = {source.name: source for source in self.steps.sources.values()}
            found = ChoiceSearch(self.steps).choices(self.replicated)
            ways = sorted(found, key=lambda way: _badness(way, sources))
            return next((way for way in ways if self._routes(way) is not None), None)
        failed = locate(self.steps, choice, self.replicated).failed
        return None if failed or self._routes(choice) is None else choice

    def graph(self, choice: RoutingTerms) -> Graph:
        """The program of the first shard."""
        routes = self._routes(choice)
        assert routes is not None
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

    def _routes(self, choice: RoutingTerms) -> Mapping[tuple[NodeId, int], Args] | None:
        """How the items that enter an operator are routed, where not all of them may be used.

        None where a function that they would be routed by cannot be computed.
        """
        terms = dict(self._taken_by(choice))
        types = self.program.typed.types
        routes = {}
        for (name, i), term in terms.items():
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
    by = tuple(part.path for part in parts if isinstance(part, At))
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
    functions = sum(not isinstance(part, At) for t in choice.values() for part in _parts(t))
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
    if not isinstance(term, At):
        return with_children(term, (_over_items(part, item) for part in children(term)))
    found: Expr = Param(ITEM)
    for i, step in enumerate(term.path):
        is_tuple = isinstance(at(item, term.path[:i]), Tuple)
        found = Part(found, int(step) if is_tuple else step)
    return found


def _refusal(typed: Typed, on: On | None, spelling: Spelling) -> ProgramError:
    """Which operators forbid to cut the program, and what would help."""
    found = judge(typed, on) if on else partition(typed)
    so = " by this choice" if on else ""
    name = typed.graph.name
    if found.partitionable:
        return ProgramError(_unmergeable(found, spelling))
    return ProgramError(
        *(
            Diagnostic(
                "config",
                f"{name} cannot be cut into shards{so}: `{blocker.operator}` ({blocker.node}) "
                f"{' '.join((blocker.why, *blocker.details))}",
                blocker.place,
                blocker.operator,
                help=_cure(found, blocker.help, spelling, by_choice=bool(on)),
            )
            for blocker in found.blockers
        )
    )


def _cure(found: Partitioning, help_: str, spelling: Spelling, *, by_choice: bool) -> str:
    if by_choice:
        return "`hydrotick partition` tells what else to route on"
    whole = [spelling.replicate(p.replicate) for p in found.partial[:3]]
    ways = [*([help_] if help_ else []), *(f"`{way}`: every shard has all of it" for way in whole)]
    return "; or ".join(ways) or spelling.without


def _unmergeable(found: Partitioning, spelling: Spelling) -> Diagnostic:
    return Diagnostic(
        "config",
        f"{found.name} cannot be run in shards: what they put out cannot be made one "
        f"({', '.join(found.ordered) or 'a function by which items are routed has no text'})",
        help="sort again behind the operators that need all items, or route by a field: "
        f"{spelling.on}",
    )
