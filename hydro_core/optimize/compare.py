"""Which streams of several programs are the same: all of them in one e-graph.

Inputs of one name and type are one stream. What the rules make one class is equal, and so is what
`bisimilar` finds: streams that feed themselves by the same equations. Each may lead to more of the
other, so they take turns until neither has more to say.

Some arguments that are not written the same may stand for each other. Functions that rules made ask
first whether an item is there, where the program's own would fail: so far as both have values, they
are the same. A program that does not fail on the past may take over from one that did not either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.errors import ProgramError
from hydro_core.functions.forms import known_by
from hydro_core.functions.tree import Const, Expr, Fn, IfElse, Op, Part, children, with_children
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.optimize.alike import Bisimilar, bisimilar
from hydro_core.optimize.calls import FailingCalls, doubtful_in
from hydro_core.optimize.columns import ranks_of, with_columns_in_order, without_dead_columns
from hydro_core.optimize.egraph import ClassId, EGraph, Problem, Saturation, Space, StreamDefinition
from hydro_core.optimize.load import Loaded, load
from hydro_core.optimize.loop import loop_form
from hydro_core.optimize.optimizer import prepare
from hydro_core.optimize.proof import TermId
from hydro_core.optimize.replay import Replay
from hydro_core.optimize.rule import Payload, Rule
from hydro_core.types.item import StreamType

MAX_EQUAL = 10_000
"""Streams that are found equal by their equations; with so many, the rules are not asked again."""


@dataclass(frozen=True, slots=True)
class ComparedStream:
    """A stream of one of the programs, by the program's number."""

    program: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Comparison:
    """The streams of several programs, in classes of proved equals."""

    classes: Mapping[ComparedStream, ClassId]
    complete: bool
    """Whether the rules had nothing more to say; else more may be equal."""

    failing: FailingCalls | None = None
    """What may fail behind the streams."""

    def same(self, one: ComparedStream, other: ComparedStream) -> bool:
        """Whether the streams are proved equal, as sequences if both are ordered: at every tick
        that both programs complete.
        """
        known = self.classes.get(one)
        return known is not None and known == self.classes.get(other)

    def fail_alike(self, one: ComparedStream, other: ComparedStream) -> bool:
        """Whether what makes the one fails in the ticks in which what makes the other does."""
        return self.failing is not None and self.failing.alike(one, other)


@dataclass(frozen=True, slots=True)
class Shared:
    """Programs by their numbers as one problem, and what the rules can do with it."""

    programs: Mapping[int, Typed]
    problem: Problem
    rules: tuple[Rule, ...]
    names: Mapping[ComparedStream, str]
    """The definitions that the streams of the programs are."""
    given: tuple[tuple[str, str], ...] = ()
    """Definitions that are the same: with and without columns that nobody reads, in either order.
    """

    spelled: Mapping[ComparedStream, tuple[str, ...]] = field(default_factory=dict)
    """The definitions that streams are in other words, the last of which says least."""
    doubtful: Mapping[str, bool] = field(default_factory=dict)
    """The definitions that may fail, and whether nulls are among what they are asked about."""

    def turns(self, *, log: bool = False) -> Iterator[Turn]:
        """Rules and induction by turns, until neither has more to say; none where there is nothing
        to compare.
        """
        known = self.given
        # rules go on in the programs side by side
        longest = max((len(typed.graph.nodes) for typed in self.programs.values()), default=0)
        while self.problem.roots:
            egraph = EGraph(self.problem, self.rules, log=log, equal=known, length=longest)
            replay = Replay(egraph) if log else None
            saturation = replay.saturate() if replay else egraph.saturate()
            space = egraph.space()
            found = bisimilar(space, self.problem.definitions)
            yield Turn(space, saturation, found, replay)
            if not found.equal or len(known) > MAX_EQUAL:
                return
            known = (*known, *found.equal)


@dataclass(frozen=True)
class Turn:
    """A saturation with what was known before it, and what follows from it by induction."""

    space: Space
    saturation: Saturation
    found: Bisimilar
    replay: Replay | None
    """What can prove it, if it was logged."""

    @cached_property
    def terms(self) -> Mapping[ClassId, TermId]:
        """A known term for each class."""
        return self.replay.known() if self.replay else {}


def shared(programs: Mapping[int, Typed]) -> Shared:
    """The programs as one problem, in which arguments that may stand for each other are one.

    Each comes once more without columns that nobody reads, if it has such, and then with its named
    parts in one order, if they stand in another.
    """
    variants = dict(_variants(programs))
    together, streams = _together({**programs, **{n: of.typed for n, of in variants.items()}})
    loaded = _loops_alike(load(together))
    if not loaded.problem.roots:
        return Shared(programs, loaded.problem, (), {})
    problem, rules = prepare(loaded)
    names = {}
    for stream, endpoint in streams.items():
        name = loaded.names.get(str(endpoint))
        if name is not None:
            names[stream] = problem.cuts.get(name, name)
    of = {stream: name for stream, name in names.items() if stream.program in programs}
    given: list[tuple[str, str]] = []
    spelled: dict[ComparedStream, tuple[str, ...]] = {s: (name,) for s, name in of.items()}
    for number, variant in variants.items():
        for end, at in variant.streams.items():
            whole, there = ComparedStream(variant.of, end), ComparedStream(number, at)
            if whole not in of or there not in names:
                continue
            spelled[whole] = (*spelled[whole], names[there])
            if variant.typed.types[at] == programs[variant.of].types[end]:
                given.append((names[there], names[whole]))
    alike = arguments_alike(problem)
    return Shared(programs, alike, rules, of, tuple(given), spelled, doubtful_in(loaded))


@dataclass(frozen=True, slots=True)
class _Variant:
    """A program in other words, which are no rules of the e-graph."""

    of: int
    """The number of the program."""
    typed: Typed
    streams: Mapping[Endpoint, Endpoint]
    """Where streams of the program are in it, as far as their items are of the same type."""


def _variants(programs: Mapping[int, Typed]) -> Iterator[tuple[int, _Variant]]:
    """The programs in other words, by numbers that no program has."""
    ranks, free = ranks_of(programs.values()), -1
    for number, typed in programs.items():
        less = _inferred(without_dead_columns(typed, everywhere=True), typed)
        if less is not None:
            yield free, _Variant(number, less, {end: end for end in less.types})
            free -= 1
        ordered = with_columns_in_order(less or typed, ranks)
        made = None if ordered is None else _inferred(ordered[0], typed)
        if ordered is not None and made is not None:
            yield free, _Variant(number, made, ordered[1])
            free -= 1


def _inferred(graph: Graph, of: Typed) -> Typed | None:
    """What is made of a program, with its types; none where it is the same, or has none."""
    if graph is of.graph:
        return None
    try:
        return infer(graph, of.schemas)
    except ProgramError:
        return None


def compare(programs: Sequence[Typed]) -> Comparison:
    """The streams of the programs that are equal at every tick, whatever the inputs are.

    Sound, not complete: streams that are told apart may be equal all the same.
    """
    of = shared(dict(enumerate(programs)))
    turns = deque(of.turns(), maxlen=1)
    if not turns:
        return Comparison({}, complete=True)
    last = turns.pop()
    classes = {stream: last.space.named[name] for stream, name in of.names.items()}
    failing = FailingCalls(of.problem, last.space, of.doubtful, of.spelled)
    return Comparison(classes, last.saturation.saturated, failing)


def _together(programs: Mapping[int, Typed]) -> tuple[Typed, Mapping[ComparedStream, Endpoint]]:
    """One program of all, and where the streams of each are in it; inputs of one name and type are
    shared, and nothing else is.
    """
    nodes: dict[NodeId, Node] = {}
    types: dict[Endpoint, StreamType] = {}
    streams: dict[ComparedStream, Endpoint] = {}
    shared: dict[object, NodeId] = {}
    for number, typed in programs.items():
        names = {node.id: f"{node.id}@{number}" for node in typed.graph}
        for name, source in typed.graph.sources.items():
            item = typed.types[Endpoint(source.id)].item
            names[source.id] = shared.setdefault((name, item), names[source.id])
        for node in typed.graph:
            inputs = tuple(Endpoint(names[e.node], e.port) for e in node.inputs)
            made = node.with_(id=names[node.id], args=_args(node, names, typed), inputs=inputs)
            nodes.setdefault(made.id, made)
        for endpoint, of in typed.types.items():
            there = Endpoint(names[endpoint.node], endpoint.port)
            streams[ComparedStream(number, endpoint)] = there
            types[there] = of
    return Typed(Graph.of(nodes.values()), types), streams


def _args(node: Node, names: Mapping[NodeId, NodeId], typed: Typed) -> Args:
    """The arguments; an input has its type, and inputs and outputs the names of their nodes."""
    if node.id in {source.id for source in typed.graph.sources.values()}:
        item = typed.types[Endpoint(node.id)].item
        return node.args.with_(name=names[node.id], schema=item)
    if node.op.outputs == "none" and "name" in node.args:
        return node.args.with_(name=names[node.id])
    return node.args


def _loops_alike(loaded: Loaded) -> Loaded:
    """Cycles inside a tick that are the same equations of what they read have one shape.

    The least fixpoint is determined by the equations.
    """
    first: dict[object, tuple[str, tuple[int, ...]]] = {}
    definitions: list[StreamDefinition] = []
    for d in loaded.problem.definitions:
        if d.shape in loaded.loops:
            form, order = loop_form(loaded.typed, *loaded.loops[d.shape])
            shape, wanted = first.setdefault(form, (d.shape, order))
            places = [order[wanted.index(i)] for i in range(len(order))]
            definitions.append(replace(d, shape=shape, inputs=tuple(d.inputs[i] for i in places)))
        else:
            definitions.append(d)
    return replace(loaded, problem=replace(loaded.problem, definitions=tuple(definitions)))


def arguments_alike(problem: Problem) -> Problem:
    """The problem in which arguments that may stand for each other are one."""
    first: dict[object, int] = {}
    same = [first.setdefault(_key(p), number) for number, p in enumerate(problem.payloads)]
    definitions = tuple(
        d if d.payload is None else replace(d, payload=same[d.payload]) for d in problem.definitions
    )
    facts = dict.fromkeys(
        (name, tuple(same[a] if isinstance(a, int) else a for a in args))
        for name, args in problem.facts
    )
    return replace(problem, definitions=definitions, facts=tuple(facts))


def _key(value: Any) -> object:
    match value:
        case Payload(args, port, own):
            return (port, own, tuple((name, _key(argument)) for name, argument in args.entries))
        case Fn():
            kind, form, *declared = known_by(value, value.over)
            form = _unguarded(form) if kind == "function" else form
            return (kind, value.over, form, *declared)
        case Aggregate(function, arguments):
            return (Aggregate, function, _key(arguments))
        case tuple():
            return ("tuple", *map(_key, value))
        case _:
            return (type(value).__name__, repr(value))


def _unguarded(tree: Expr) -> Expr:
    """The normal form, without the question whether there is what a field is taken of."""
    found = with_children(tree, map(_unguarded, children(tree)))
    match found:
        case IfElse(Op("is", (item, Const(None))), Const(None), Part(of, by_name=False) as taken):
            return taken if item == of else found
        case _:
            return found
