"""Whether two programs fail in the same ticks: a proof says that they give the same where both do.

Rules speak of streams, as if functions always had a value. A plan may fail less often than its
program, so a rule may ask a function of fewer items; a program that takes the place of another may
not fail less or more, and still be called the same. So what may fail in the one has to be *covered*
by what the other asks, as in `calls.py`, and the other way round.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from hydro_core.analysis.nullness import never_null
from hydro_core.catalog.classes import Projection
from hydro_core.catalog.spec import functions_of
from hydro_core.ir.graph import Endpoint
from hydro_core.ir.walk import reachable
from hydro_core.optimize.calls import CallKey, call_of, covered, may_fail
from hydro_core.optimize.load import Loaded
from hydro_core.optimize.shape import FeedbackShape
from hydro_core.optimize.space import ClassId, ENode, Problem, Space, StreamDefinition, classes_read
from hydro_core.optimize.totality import is_total
from hydro_core.types.item import Row

AskedCall = tuple[CallKey, ClassId]


def doubtful_in(loaded: Loaded) -> Mapping[str, bool]:
    """The streams of the program whose operators may fail on some item, by their names, and whether
    the items that they are asked about may be null.

    Rows of inputs are never null: what has landed has none.
    """
    graph, types = loaded.typed.graph, loaded.typed.types
    rows = [n.id for n in graph.sources.values() if isinstance(types[Endpoint(n.id)].item, Row)]
    there = never_null(graph, rows)
    found = {}
    for by in loaded.problem.definitions:
        node = loaded.origins.get(by.name)
        nullable = node is None or any(end.node not in there for end in node.inputs)
        if _may_fail(loaded.problem, by, there=not nullable):
            found[by.name] = nullable
    return found


def _may_fail(problem: Problem, by: StreamDefinition, *, there: bool) -> bool:
    shape = problem.shapes[by.shape]
    node = ENode(shape, by.payload, tuple(0 for _ in by.inputs), 0)
    total = [by.payload] if by.payload is not None and _is_total(problem, by.payload, there) else []
    if total and isinstance(shape.cls, Projection):
        # a row of values fits its type
        return False
    return may_fail(node, problem.payloads, total)


def _is_total(problem: Problem, payload: int, there: bool) -> bool:
    """Whether the functions have a value for every item, or for those that are not null."""
    fns = tuple(functions_of(problem.payloads[payload].args))
    return bool(fns) and all(
        len(fn.over) == 1 and is_total(fn, fn.over[0], there=there) for fn in fns
    )


@dataclass(slots=True)
class FailingCalls:
    """What may fail behind streams of programs that were loaded together."""

    problem: Problem
    space: Space
    doubtful: Mapping[str, bool]
    """What `doubtful_in` gives, before arguments were made one."""
    spelled: Mapping[Any, Sequence[str]]
    """What is compared: its streams as written, then in other words."""
    definitions: Mapping[str, StreamDefinition] = field(init=False)
    conjuncts: dict[CallKey, tuple[int, ...]] = field(init=False)
    """What is asked in two parts, as it is written: there may be other ways, which ask less."""

    def __post_init__(self) -> None:
        self.definitions = {d.name: d for d in self.problem.definitions}
        self.conjuncts = {}
        for whole, *parts in self.problem.known("conjunct"):
            self.conjuncts.setdefault(whole, tuple(parts))

    def alike(self, one: Hashable, other: Hashable) -> bool:
        """Whether what makes the one fails in the ticks in which what makes the other does.

        Any two ways to write them will do: what nobody reads depends on the rest of the program,
        so the words that say least of the one need not be those of the other.
        """
        ways = product(self._ways_to_write(one), self._ways_to_write(other))
        return any(mine == theirs or self._fail_alike(mine, theirs) for mine, theirs in ways)

    def _fail_alike(self, one: Collection[str], other: Collection[str]) -> bool:
        cycles, calls = zip(*map(self._of, (one, other)), strict=True)
        if cycles[0] != cycles[1]:
            return False
        if calls[0] == calls[1]:
            return True
        return all(
            mine <= covered(self.problem, self.space, theirs)
            for mine, theirs in (calls, calls[::-1])
        )

    def _ways_to_write(self, compared: Hashable) -> Collection[Collection[str]]:
        """What may fail behind it, in all words that leave nothing of it out."""
        written, *others = map(self._doubtful_behind, self.spelled[compared])
        whole = (found for found in others if len(found) == len(written))
        return dict.fromkeys((written, *whole))

    def _doubtful_behind(self, stream: str) -> frozenset[str]:
        found = reachable([stream], lambda name: self._reads(self.definitions[name]))
        return frozenset(name for name in found if name in self.doubtful)

    def _reads(self, by: StreamDefinition) -> Iterator[str]:
        return (self.problem.cuts.get(name, name) for name in by.inputs)

    def _of(self, streams: Collection[str]) -> tuple[frozenset[object], set[AskedCall]]:
        """The cycles within a tick among these, which are compared as they are, and the calls."""
        cycles: set[object] = set()
        calls: set[AskedCall] = set()
        for name in streams:
            by = self.definitions[name]
            inputs = classes_read(self.problem, self.space, by)
            shape = self.problem.shapes[by.shape]
            if isinstance(shape.cls, FeedbackShape):
                cycles.add((by.shape, inputs))
            elif inputs:
                call = call_of(ENode(shape, by.payload, inputs, -1))
                calls |= set(self._in_parts(call, there=not self.doubtful[name]))
        return frozenset(cycles), calls

    def _in_parts(self, call: AskedCall, *, there: bool) -> Iterator[AskedCall]:
        """Two questions in one are the first, and the second where the first holds."""
        todo = [call]
        while todo:
            key, cls = todo.pop()
            parts = self.conjuncts.get(key)
            passing = () if parts is None else self._that_pass(parts[0], cls)
            if parts is not None and passing:
                asked = zip(parts, (cls, passing[0]), strict=True)
                todo += [(p, of) for p, of in asked if not _is_total(self.problem, p, there)]
            else:
                yield key, cls

    def _that_pass(self, key: CallKey, cls: ClassId) -> tuple[ClassId, ...]:
        """The items of a class for which something holds, if there is such a stream."""
        nodes = (n for n in self.space.nodes if n.payload == key and n.inputs == (cls,))
        return tuple(n.cls for n in nodes if n.shape.is_itemwise)
