"""Streams of several programs that are equal: all in one e-graph, with the proofs.

Inputs of one name and type are one stream. Streams of one class are equal by the rules. Streams
that feed themselves by the same equations are equal by induction (`bisimilar`). Each may reveal
more equal streams to the other, so they take turns until neither finds more.

Some arguments with different texts are equal. Functions that rules construct first test for null
where the program's own would fail; where both have values, these are equal. So a program that does
not fail on the past may replace one that did not either.

A proof is found by a second comparison, of fewer programs and with a log that is replayed into a
closure. Equality by induction rests on rules, too: those that rewrite both streams to the same
equation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from typing import Any

from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.errors import ProgramError
from hydro_core.functions.forms import known_by
from hydro_core.functions.tree import Const, Expr, Fn, IfElse, Op, Part, children, with_children
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, behind
from hydro_core.optimize.calls import FailingCalls, doubtful_in
from hydro_core.optimize.columns import ranks_of, with_columns_in_order, without_dead_columns
from hydro_core.optimize.egraph import (
    ClassId,
    EGraph,
    ENode,
    Problem,
    Saturation,
    Space,
    StreamDefinition,
)
from hydro_core.optimize.load import LoadedProblem, load
from hydro_core.optimize.loop import loop_form
from hydro_core.optimize.optimizer import prepare
from hydro_core.optimize.proof import KNOWN, Replay, TermId
from hydro_core.optimize.rule import CHAIN, UNION, Payload, Rule
from hydro_core.types.item import StreamType

MAX_EQUAL = 10_000
"""The limit of streams found equal by induction; beyond it, the rules do not run again."""


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
    """True if the rules were saturated; else more streams may be equal."""

    failing: FailingCalls | None = None
    """The calls behind the streams that may fail."""

    def same(self, one: ComparedStream, other: ComparedStream) -> bool:
        """True if the streams are proved equal at every tick that both programs complete; as
        sequences if both are ordered.
        """
        known = self.classes.get(one)
        return known is not None and known == self.classes.get(other)

    def fail_alike(self, one: ComparedStream, other: ComparedStream) -> bool:
        """True if both streams fail in the same ticks."""
        return self.failing is not None and self.failing.alike(one, other)


@dataclass(frozen=True, slots=True)
class SharedProblem:
    """Programs by their numbers as one problem, with its rules."""

    programs: Mapping[int, Typed]
    problem: Problem
    rules: tuple[Rule, ...]
    names: Mapping[ComparedStream, str]
    """By stream of a program: the name of its definition."""
    given: tuple[tuple[str, str], ...] = ()
    """Pairs of equal definitions: with and without unread columns, and with columns in another
    order.
    """

    spelled: Mapping[ComparedStream, tuple[str, ...]] = field(default_factory=dict)
    """By stream: its definitions in other forms; the last form calls the fewest functions."""
    doubtful: Mapping[str, bool] = field(default_factory=dict)
    """The definitions that may fail, and whether the items of their functions may be null."""

    def turns(self, *, log: bool = False) -> Iterator[Turn]:
        """Turns of rules and induction, until neither finds more; none if there is nothing to
        compare.
        """
        known = self.given
        # rules advance in all programs at once, so the longest program decides
        longest = max((len(typed.graph.nodes) for typed in self.programs.values()), default=0)
        while self.problem.roots:
            egraph = EGraph(self.problem, self.rules, log=log, equal=known, length=longest)
            replay = Replay(egraph) if log else None
            saturation = replay.saturate() if replay else egraph.saturate()
            space = egraph.space()
            induction = bisimilar(space, self.problem.definitions)
            yield Turn(space, saturation, induction, replay)
            if not induction.equal or len(known) > MAX_EQUAL:
                return
            known = (*known, *induction.equal)


@dataclass(frozen=True)
class Turn:
    """A saturation from the equalities known before it, and the equalities that follow by
    induction.
    """

    space: Space
    saturation: Saturation
    induction: BisimilarStreams
    replay: Replay | None
    """The replay that can prove it, if it was logged."""

    @cached_property
    def terms(self) -> Mapping[ClassId, TermId]:
        """By class: a known term."""
        return self.replay.known() if self.replay else {}


def shared(programs: Mapping[int, Typed]) -> SharedProblem:
    """The programs as one problem, in which equal arguments are one.

    A program with unread columns has a variant without them; a program with named parts in another
    order has a variant with these in the common order.
    """
    variants = dict(_variants(programs))
    together, streams = _together({**programs, **{n: of.typed for n, of in variants.items()}})
    loaded = _loops_alike(load(together))
    if not loaded.problem.roots:
        return SharedProblem(programs, loaded.problem, (), {})
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
    return SharedProblem(programs, alike, rules, of, tuple(given), spelled, doubtful_in(loaded))


@dataclass(frozen=True, slots=True)
class _Variant:
    """A program in another form that no rule of the e-graph gives."""

    of: int
    """The number of the program."""
    typed: Typed
    streams: Mapping[Endpoint, Endpoint]
    """By stream of the program: the stream of the variant, if its items are of the same type."""


def _variants(programs: Mapping[int, Typed]) -> Iterator[tuple[int, _Variant]]:
    """The programs in other forms, by numbers that no program has."""
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
    """A variant of a program with its types; None if it is the program, or has no types."""
    if graph is of.graph:
        return None
    try:
        return infer(graph, of.schemas)
    except ProgramError:
        return None


def compare(programs: Sequence[Typed]) -> Comparison:
    """The streams of the programs that are equal at every tick, whatever the inputs are.

    Sound, not complete: streams of different classes may be equal all the same.
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
    """One program of all, and by stream its endpoint there. Only inputs of one name and type are
    shared.
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
    """The arguments; an input has its type, and inputs and outputs have the names of their
    nodes.
    """
    if node.id in {source.id for source in typed.graph.sources.values()}:
        item = typed.types[Endpoint(node.id)].item
        return node.args.with_(name=names[node.id], schema=item)
    if node.op.outputs == "none" and "name" in node.args:
        return node.args.with_(name=names[node.id])
    return node.args


def _loops_alike(loaded: LoadedProblem) -> LoadedProblem:
    """The problem in which cycles within a tick with the same equations of their inputs have one
    shape.

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
    """The problem in which equal arguments are one."""
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
    """The normal form without the test for null before a field is read."""
    found = with_children(tree, map(_unguarded, children(tree)))
    match found:
        case IfElse(Op("is", (item, Const(None))), Const(None), Part(of, by_name=False) as taken):
            return taken if item == of else found
        case _:
            return found


MAX_PAIRS = 50_000
"""The limit of compared pairs; pairs beyond it count as different."""
MAX_WAYS = 1_000
"""The limit of ways to prove a pair: two sums have the product of their splits."""

Pair = tuple[ClassId, ClassId]
Splitting = tuple[str, int | None]

SUM: Splitting = ("sum", None)


@dataclass(frozen=True, slots=True)
class Match:
    """A way to prove a pair: the pairs that must be equal in the same tick, and in earlier ones."""

    nodes: tuple[ENode, ENode]
    """The operators of both streams: the same one."""
    now: tuple[Pair, ...]
    earlier: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class BisimilarStreams:
    """Streams, by their names, that are proved equal and are not of one class yet."""

    equal: tuple[tuple[str, str], ...]
    by: Mapping[Pair, Match]
    """The proof of each pair, pairs without names included."""


def bisimilar(space: Space, definitions: Sequence[StreamDefinition]) -> BisimilarStreams:
    """The streams that are equal by induction over ticks, given the classes of the rules.

    Two streams that feed themselves through `prev` are equal if each can be computed by the same
    operator from streams that are equal in turn. No two streams may rest on each other within a
    tick: the equality of inputs from the same tick is proved before, and only that of inputs from
    earlier ticks may be assumed. So the pairs are the greatest set in which each pair rests on the
    set a tick earlier, by a least proof within the tick.
    """
    names: dict[ClassId, str] = {}
    for definition in definitions:
        names.setdefault(space.named[definition.name], definition.name)
    by = _proved(_matches(space, sorted(names)))
    named = ((one, other) for one, other in sorted(by) if one in names and other in names)
    return BisimilarStreams(tuple((names[one], names[other]) for one, other in named), by)


def _matches(space: Space, classes: Sequence[ClassId]) -> Mapping[Pair, tuple[Match, ...]]:
    """Every pair that may be equal, with the ways to prove it, and all pairs that these need."""
    by_kind: list[dict[Splitting, list[ENode]]] = [{} for _ in space.of]
    for node in space.nodes:
        by_kind[node.cls].setdefault(_kind(node), []).append(node)
    sharing: dict[Splitting, list[ClassId]] = {}
    for cls in classes:
        for kind in by_kind[cls]:
            sharing.setdefault(kind, []).append(cls)
    found: dict[Pair, tuple[Match, ...]] = {}
    todo = [pair for group in sharing.values() for pair in combinations(group, 2)]
    while todo and len(found) < MAX_PAIRS:
        pair = todo.pop()
        if pair in found:
            continue
        ways = _ways(*(by_kind[cls] for cls in pair))
        found[pair] = matches = tuple(islice(ways, MAX_WAYS))
        todo += [child for match in matches for child in (*match.now, *match.earlier)]
    return found


def _ways(
    one: Mapping[Splitting, Sequence[ENode]], other: Mapping[Splitting, Sequence[ENode]]
) -> Iterator[Match]:
    # A list, not a set: the first way is reported, so it must not depend on a hash seed.
    for kind in one:
        for a in one[kind]:
            for b in other.get(kind, ()):
                yield _match(a, b, b.inputs)
                if kind == SUM:
                    yield _match(a, b, tuple(reversed(b.inputs)))


def _kind(node: ENode) -> Splitting:
    """The kind of a node; only nodes of one kind match. A sum of bags has one kind, in either
    order.
    """
    if node.shape.is_bags and node.shape.name in {UNION, CHAIN}:
        return SUM
    return node.shape.name, node.payload


def _match(a: ENode, b: ENode, others: tuple[ClassId, ...]) -> Match:
    now: list[Pair] = []
    earlier: list[Pair] = []
    for x, y, strict in zip(a.inputs, others, a.shape.strict, strict=True):
        if x != y:
            (earlier if strict else now).append((min(x, y), max(x, y)))
    return Match((a, b), tuple(now), tuple(earlier))


def _proved(matches: Mapping[Pair, tuple[Match, ...]]) -> Mapping[Pair, Match]:
    """The pairs that are equal in a tick if they all were in the ticks before."""
    proofs = _Proofs(matches)
    proofs.prove(matches)
    dropped = {pair for pair in matches if pair not in proofs.by}
    while dropped:
        lost = proofs.drop(dropped)
        proofs.prove(lost)
        dropped = {pair for pair in lost if pair not in proofs.by}
    return proofs.by


class _Proofs:
    """The pairs that are proved in a tick if those that are not dropped were equal before it.

    A dropped pair invalidates only pairs that rest on it, so each match is visited about once.
    """

    def __init__(self, matches: Mapping[Pair, tuple[Match, ...]]) -> None:
        self.by: dict[Pair, Match] = {}
        self._ways = {pair: [_Way(pair, match) for match in of] for pair, of in matches.items()}
        self._now: dict[Pair, list[_Way]] = {}
        self._earlier: dict[Pair, list[_Way]] = {}
        self._chosen: dict[Pair, _Way] = {}
        for way in (way for ways in self._ways.values() for way in ways):
            for child in way.match.now:
                self._now.setdefault(child, []).append(way)
            for child in way.match.earlier:
                self._earlier.setdefault(child, []).append(way)
                way.holds &= child in matches

    def prove(self, pairs: Iterable[Pair]) -> None:
        """Proves each of some pairs that has a proof, and the pairs that rest on them."""
        todo = [way for pair in pairs for way in self._ways[pair] if way.is_proof]
        while todo:
            way = todo.pop()
            if way.pair in self.by or not way.is_proof:
                continue
            self.by[way.pair], self._chosen[way.pair] = way.match, way
            for reader in self._now.get(way.pair, ()):
                reader.open -= 1
                if reader.is_proof:
                    todo.append(reader)

    def drop(self, pairs: Iterable[Pair]) -> set[Pair]:
        """Drops the assumption that some pairs were equal before; returns the pairs that lost their
        proofs.
        """
        failed = [way for pair in pairs for way in self._earlier.get(pair, ())]
        for way in failed:
            way.holds = False
        lost: set[Pair] = set()
        while failed:
            way = failed.pop()
            if self._chosen.get(way.pair) is not way:
                continue
            del self.by[way.pair], self._chosen[way.pair]
            lost.add(way.pair)
            for reader in self._now.get(way.pair, ()):
                reader.open += 1
                failed.append(reader)
        return lost


@dataclass(slots=True, eq=False)
class _Way:
    """A match of a pair, and whether it proves the pair so far."""

    pair: Pair
    match: Match
    open: int = field(init=False)
    """The number of unproved pairs that it needs in the same tick."""
    holds: bool = True
    """True while no pair is dropped that it needs in earlier ticks."""

    def __post_init__(self) -> None:
        self.open = len(self.match.now)

    @property
    def is_proof(self) -> bool:
        """True if the pair follows."""
        return self.holds and not self.open


INDUCTION = "induction over ticks: both follow the same equation from the tick before"
SAME_TEXT = "the same text"
RENAMED = "renamed"
NORMAL_FORM = "functions in normal form"
NARROWED = "dead columns: what nobody reads may be left out"
NOT_ALL = "rules, which were applied too often to list them all"

ProvedParts = tuple[tuple[ComparedStream, ComparedStream], ...]
"""The parts of an output, each with the part that it is claimed to equal."""


def proofs(
    programs: Sequence[Typed], wanted: Mapping[str, ProvedParts]
) -> Mapping[str, tuple[str, ...]]:
    """Proofs of equalities that `compare` found, by the keys of `wanted`.

    Args:
        programs: the programs that were compared.
        wanted: pairs of streams by any key; all pairs of a key have one proof together.
    """
    needed = {s.program for parts in wanted.values() for pair in parts for s in pair}
    found = _proofs_among({number: programs[number] for number in sorted(needed)}, wanted)
    missing = {key: parts for key, parts in wanted.items() if key not in found}
    if missing:  # the proof needs the plans, too
        found |= _proofs_among(dict(enumerate(programs)), missing)
    return {key: found.get(key, (NOT_ALL,)) for key in wanted}


def _proofs_among(
    programs: Mapping[int, Typed], wanted: Mapping[str, ProvedParts]
) -> dict[str, tuple[str, ...]]:
    if not wanted:
        return {}
    of, turns = shared(programs), []
    pairs = [pair for parts in wanted.values() for pair in parts]
    for turn in of.turns(log=True):
        turns.append(turn)
        named = turn.space.named
        if all(named[of.names[a]] == named[of.names[b]] for a, b in pairs):
            break
    found = {key: _proof(of, turns, parts) for key, parts in wanted.items()} if turns else {}
    return {key: proof for key, proof in found.items() if proof is not None}


def _proof(of: SharedProblem, turns: Sequence[Turn], parts: ProvedParts) -> tuple[str, ...] | None:
    search = _ProofSearch(turns)
    last = len(turns) - 1
    replay = search.replay(last)
    for pair in parts:
        a, b = (replay.streams[of.names[stream]] for stream in pair)
        if not replay.closure.same(a, b):
            return None
        search.prove(last, a, b)
    lines = [f"{r.name}: {r.because}" for name in search.rules for r in of.rules if r.name == name]
    lines += [NARROWED] if search.is_narrowed else []
    lines += [INDUCTION] if search.inductions else []
    lines += [] if search.is_whole else [NOT_ALL]
    return tuple(lines) or (without_rules(of.programs, parts),)


class _ProofSearch:
    """Collects the rules and inductions of a proof."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.rules: dict[str, None] = {}
        self.inductions: set[tuple[int, Pair]] = set()
        self.is_narrowed = False
        self.is_whole = True
        self._turns = turns
        self._proved: set[tuple[int, TermId, TermId]] = set()

    def replay(self, number: int) -> Replay:
        """The replay of a turn."""
        replay = self._turns[number].replay
        assert replay is not None
        return replay

    def prove(self, number: int, a: TermId, b: TermId) -> None:
        """Visits the proof that two terms of a turn are equal, and all that it rests on."""
        todo = [(number, a, b)]
        while todo:
            number, a, b = pair = todo.pop()
            if pair in self._proved:
                continue
            self._proved.add(pair)
            closure = self.replay(number).closure
            if not closure.same(a, b):  # the replay has fewer equalities than the e-graph
                self.is_whole = False
                continue
            for step in closure.proof([(a, b)]):
                if step.rule == KNOWN:
                    todo += self._by_induction(number, step.before, step.after)
                else:
                    self.rules.setdefault(step.rule)

    def _by_induction(
        self, number: int, a: TermId, b: TermId
    ) -> Iterator[tuple[int, TermId, TermId]]:
        """The pairs on which an equality rests that an earlier turn found."""
        streams = self.replay(number).streams
        for earlier in range(number):
            for one, other in self._turns[earlier].induction.equal:
                if {streams[one], streams[other]} == {a, b}:
                    yield from self._supports(earlier, one, other)
                    return
        self.is_narrowed = True

    def _supports(self, number: int, one: str, other: str) -> Iterator[tuple[int, TermId, TermId]]:
        turn, replay = self._turns[number], self.replay(number)
        start = turn.space.named[one], turn.space.named[other]
        for name, cls in zip((one, other), start, strict=True):
            yield number, replay.streams[name], turn.terms[cls]
        todo = [start]
        while todo:
            pair = todo.pop()
            pair = (min(pair), max(pair))
            if (number, pair) in self.inductions:
                continue
            self.inductions.add((number, pair))
            match = turn.induction.by[pair]
            for cls, node in zip(pair, match.nodes, strict=True):
                inputs = tuple(turn.terms[i] for i in node.inputs)
                term = replay.closure.add(node.shape.name, node.payload, inputs)
                yield number, turn.terms[cls], term
            todo += (*match.now, *match.earlier)


def without_rules(programs: Sequence[Typed] | Mapping[int, Typed], parts: ProvedParts) -> str:
    """The difference between streams that are one term as soon as they are loaded."""
    sides = [
        _behind(programs[pairs[0].program], [s.endpoint for s in pairs])
        for pairs in zip(*parts, strict=True)
    ]
    texts = [sorted(repr(_as_written(n, side)) for n in side.values()) for side in sides]
    if texts[0] == texts[1]:
        return SAME_TEXT
    spelled = [sorted(repr((n.op.name, n.args)) for n in side.values()) for side in sides]
    return RENAMED if spelled[0] == spelled[1] else NORMAL_FORM


def _behind(typed: Typed, ends: Sequence[Endpoint]) -> Mapping[NodeId, Node]:
    """The nodes that streams are derived from."""
    return {name: typed.graph[name] for name in behind(typed.graph, (end.node for end in ends))}


def _as_written(node: Node, others: Mapping[NodeId, Node]) -> tuple[object, ...]:
    """The node, without names that the program's text does not have."""
    reads = [(_name(others[e.node]), e.port) for e in node.inputs]
    return (_name(node), node.op.name, node.args, reads)


def _name(node: Node) -> str:
    """The name of a node; only its operator if the name is that and a number."""
    return node.op.name if re.fullmatch(rf"{node.op.name}(_\d+)?", node.id) else node.id
