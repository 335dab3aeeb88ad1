"""Why streams of two programs are the same: the rules that lead from one to the other.

The comparison is done again, on fewer programs and with a log, which is replayed into a closure
that can prove. What was found by induction rests on rules, too: those that bring both streams into
the form in which they are the same equation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hydro_core.analysis.infer import Typed
from hydro_core.ir.graph import Endpoint, Node, NodeId, behind
from hydro_core.optimize.alike import Pair
from hydro_core.optimize.compare import ComparedStream, Shared, Turn, shared
from hydro_core.optimize.proof import TermId
from hydro_core.optimize.replay import KNOWN, Replay

MAX_STEPS = 2_000
"""Steps of one proof that are looked through."""

INDUCTION = "induction over ticks: both follow the same equation from the tick before"
SAME_TEXT = "the same text"
RENAMED = "renamed"
NORMAL_FORM = "functions in normal form"
NARROWED = "dead columns: what nobody reads may be left out"
NOT_ALL = "rules, of which there are too many steps to list them all"

ProvedParts = tuple[tuple[ComparedStream, ComparedStream], ...]
"""The parts of an output, each with the one that it is said to be."""


def proofs(
    programs: Sequence[Typed], wanted: Mapping[str, ProvedParts]
) -> Mapping[str, tuple[str, ...]]:
    """Why streams are equal that `compare` called so, by the keys of `wanted`.

    Args:
        programs: those that were compared.
        wanted: pairs of streams by any key; all pairs of a key have one proof together.
    """
    needed = {s.program for parts in wanted.values() for pair in parts for s in pair}
    found = _found({number: programs[number] for number in sorted(needed)}, wanted)
    missing = {key: parts for key, parts in wanted.items() if key not in found}
    if missing:  # the way leads through the plans
        found |= _found(dict(enumerate(programs)), missing)
    return {key: found.get(key, (NOT_ALL,)) for key in wanted}


def _found(
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


def _proof(of: Shared, turns: Sequence[Turn], parts: ProvedParts) -> tuple[str, ...] | None:
    because = {r.name: r.because for r in of.rules}
    search = _Search(turns, because)
    last = len(turns) - 1
    replay = search.replay(last)
    for one, other in parts:
        a, b = (replay.streams[of.names[s]] for s in (one, other))
        if not replay.closure.same(a, b):
            return None
        search.prove(last, a, b)
    lines = [f"{name}: {because[name]}" for name in search.rules]
    lines += [NARROWED] if search.narrowed else []
    lines += [INDUCTION] if search.inductions else []
    lines += [] if search.whole else [NOT_ALL]
    return tuple(lines) or (without_rules(of.programs, parts),)


class _Search:
    """Collects what takes part in a proof."""

    def __init__(self, turns: Sequence[Turn], because: Mapping[str, str]) -> None:
        self.rules: dict[str, None] = {}
        self.inductions: set[tuple[int, Pair]] = set()
        self.narrowed = False
        self.whole = True
        self._turns = turns
        self._because = because
        self._seen: set[tuple[int, TermId, TermId]] = set()

    def replay(self, number: int) -> Replay:
        """What can prove a turn."""
        found = self._turns[number].replay
        assert found is not None
        return found

    def prove(self, number: int, a: TermId, b: TermId) -> None:
        """Goes through the proof that two terms of a turn are equal, and all that it rests on."""
        todo = [(number, a, b)]
        while todo:
            number, a, b = step = todo.pop()
            if step in self._seen or a == b:
                continue
            self._seen.add(step)
            closure = self.replay(number).closure
            if not closure.same(a, b):  # more was done than was replayed
                self.whole = False
                continue
            steps, whole = closure.prove(a, b, MAX_STEPS)
            self.whole &= whole
            for rewrite in steps:
                todo += ((number, *pair) for pair in rewrite.reason.premises)
                if rewrite.reason.rule == KNOWN:
                    todo += self._by_induction(number, rewrite.before, rewrite.after)
                elif rewrite.reason.rule in self._because:
                    self.rules.setdefault(rewrite.reason.rule)

    def _by_induction(
        self, number: int, a: TermId, b: TermId
    ) -> Iterator[tuple[int, TermId, TermId]]:
        """What the equality of two streams rests on that an earlier turn found."""
        streams = self.replay(number).streams
        for earlier in range(number):
            for one, other in self._turns[earlier].found.equal:
                if {streams[one], streams[other]} == {a, b}:
                    yield from self._supports(earlier, one, other)
                    return
        self.narrowed = True

    def _supports(self, number: int, one: str, other: str) -> Iterator[tuple[int, TermId, TermId]]:
        here, replay = self._turns[number], self.replay(number)
        start = here.space.named[one], here.space.named[other]
        streams = replay.streams
        for name, cls in zip((one, other), start, strict=True):
            yield number, streams[name], here.terms[cls]
        todo = [start]
        while todo:
            pair = todo.pop()
            pair = (min(pair), max(pair))
            if (number, pair) in self.inductions:
                continue
            self.inductions.add((number, pair))
            match = here.found.by[pair]
            for cls, node in zip(pair, match.nodes, strict=True):
                inputs = tuple(here.terms[i] for i in node.inputs)
                term = replay.closure.add(node.shape.name, node.payload, inputs)
                yield number, here.terms[cls], term
            todo += (*match.now, *match.earlier)


def without_rules(programs: Sequence[Typed] | Mapping[int, Typed], parts: ProvedParts) -> str:
    """How streams differ that are one term as soon as they are loaded."""
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
    """The nodes that streams are made of."""
    return {name: typed.graph[name] for name in behind(typed.graph, (end.node for end in ends))}


def _as_written(node: Node, others: Mapping[NodeId, Node]) -> tuple[object, ...]:
    """The node, in which what has no name in the text has none."""
    reads = [(_name(others[e.node]), e.port) for e in node.inputs]
    return (_name(node), node.op.name, node.args, reads)


def _name(node: Node) -> str:
    """The name of a node; only its operator where it is that and a number."""
    return node.op.name if re.fullmatch(rf"{node.op.name}(_\d+)?", node.id) else node.id
