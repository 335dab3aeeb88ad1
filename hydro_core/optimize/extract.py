"""Extraction: the cheapest legal plan of a space, where a shared class is paid once.

A greedy start, then local search: one class changes its node, or two at once where no single change
helps. Legal plans may have cycles, each through a strict input. Deterministic: ties go to the node
that comes first, and effort is counted, not timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hydro_core.optimize.space import ClassId, Space

MAX_EVALUATIONS = 30_000
"""Plans that are looked at in pairs of changes."""
MAX_VISITS = 6_000_000
"""Classes that are visited in looking at plans, all together."""
MAX_ROUNDS = 400
EPSILON = 1e-9

ChosenNodes = dict[ClassId, int]
ChosenStep = tuple[tuple[ClassId, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One node for every class that is used, and what they cost together."""

    choice: Mapping[ClassId, int]
    cost: float
    has_converged: bool = True
    """Whether the search ended by itself, not at a limit."""
    in_changes: frozenset[ClassId] = frozenset()
    """The classes of which nobody wants more than the changes."""


@dataclass(slots=True)
class PlanSearch:
    """The search for a plan: the space in flat arrays, and how much was looked at."""

    roots: tuple[ClassId, ...]
    options: list[tuple[int, ...]]
    costs: Sequence[float]
    now: list[tuple[ClassId, ...]]
    """By node: the inputs on which it depends in the same tick."""
    later: list[tuple[ClassId, ...]]
    """By node: the strict inputs."""
    evaluations: int = 0
    visits: int = 0

    @property
    def is_over(self) -> bool:
        """Whether enough has been looked at."""
        return self.evaluations > MAX_EVALUATIONS or self.visits > MAX_VISITS

    def evaluate(
        self, choice: ChosenNodes, bound: float = math.inf
    ) -> tuple[float, tuple[ClassId, ...]]:
        """A plan's cost and the classes it uses; infinite if it is illegal or above `bound`."""
        self.evaluations += 1
        total = 0.0
        done: dict[ClassId, bool] = {}
        delayed = list(self.roots)
        costs, now, later = self.costs, self.now, self.later
        while delayed:
            root = delayed.pop()
            if root in done:
                continue
            stack: list[tuple[ClassId, int]] = [(root, 0)]
            done[root] = False
            node = choice.get(root, -1)
            if node < 0:
                return math.inf, ()
            total += costs[node]
            delayed += later[node]
            while stack:
                cls, position = stack[-1]
                inputs = now[choice[cls]]
                if position == len(inputs):
                    done[cls] = True
                    stack.pop()
                    continue
                stack[-1] = (cls, position + 1)
                child = inputs[position]
                state = done.get(child)
                if state:
                    continue
                node = choice.get(child, -1)
                if state is False or node < 0:
                    return math.inf, ()
                total += costs[node]
                if total >= bound:
                    self.visits += len(done)
                    return math.inf, ()
                delayed += later[node]
                done[child] = False
                stack.append((child, 0))
        self.visits += len(done)
        return total, tuple(sorted(done))

    def inputs_first(self) -> list[ClassId]:
        """The classes that plans may use, each after what it may read as far as that can be."""
        order: list[ClassId] = []
        seen: set[ClassId] = set()
        stack = [(root, False) for root in reversed(self.roots)]
        while stack:
            cls, finished = stack.pop()
            if finished:
                order.append(cls)
            elif cls not in seen:
                seen.add(cls)
                stack.append((cls, True))
                for node in self.options[cls]:
                    stack += [(c, False) for c in (*self.now[node], *self.later[node])]
        return order


def extract(space: Space, costs: Sequence[float], preferred: Mapping[ClassId, int]) -> Plan:
    """The cheapest plan that the search finds; `preferred` is a legal one to start from, too."""
    search = _search(space, costs)
    trees = _trees(search, lambda node: (*search.now[node], *search.later[node]))
    best, choice = math.inf, {**trees, **preferred}
    # every class has a node in every start: a move may lead anywhere; and one that goes on from
    # the tick before wherever it can reads what it reads of it for free
    going_on = {**choice, **_trees(search, search.now.__getitem__)}
    for candidate in (choice, {**preferred, **trees}, {**preferred, **_sets(search)}, going_on):
        cost, _ = search.evaluate(candidate)
        if cost < best - EPSILON:
            best, choice = cost, candidate
    for _ in range(MAX_ROUNDS):
        step = _single(search, choice, best) or _pair(search, choice, best)
        if step is None:
            break
        choice |= dict(step)
        best, _ = search.evaluate(choice)
    _, used = search.evaluate(choice)
    return Plan({c: choice[c] for c in used}, best, not search.is_over)


def plan_cost(space: Space, costs: Sequence[float], choice: Mapping[ClassId, int]) -> float:
    """The cost of a plan, infinite where it is illegal."""
    return _search(space, costs).evaluate(dict(choice))[0]


def _search(space: Space, costs: Sequence[float]) -> PlanSearch:
    now, later = [], []
    for node in space.nodes:
        flags = tuple(zip(node.inputs, node.shape.strict, strict=True))
        now.append(tuple(dict.fromkeys(c for c, strict in flags if not strict)))
        later.append(tuple(dict.fromkeys(c for c, strict in flags if strict)))
    return PlanSearch(space.roots, _options(space, costs, now, later), costs, now, later)


def _options(
    space: Space,
    costs: Sequence[float],
    now: Sequence[tuple[ClassId, ...]],
    later: Sequence[tuple[ClassId, ...]],
) -> list[tuple[int, ...]]:
    """The nodes of each class, without those that never help: same inputs, but dearer; or reading
    themselves.
    """
    options: list[tuple[int, ...]] = []
    for cls, nodes in enumerate(space.of):
        kept: dict[tuple[frozenset[int], frozenset[int]], int] = {}
        for node in nodes:
            if cls in now[node]:
                continue
            key = (frozenset(now[node]), frozenset(later[node]))
            if key not in kept or costs[node] < costs[kept[key]] - EPSILON:
                kept[key] = node
        options.append(tuple(sorted(kept.values())))
    return options


def _trees(search: PlanSearch, paid: Callable[[int], tuple[ClassId, ...]]) -> ChosenNodes:
    """The cheapest trees, in which a node costs what it is with these of its inputs."""
    found: dict[ClassId, tuple[float, int]] = {}
    order = search.inputs_first()
    changed = True
    while changed:
        changed = False
        for cls in order:
            for node in search.options[cls]:
                inputs = paid(node)
                if not all(c in found for c in inputs):
                    continue
                cost = search.costs[node] + sum(found[c][0] for c in inputs)
                if cls not in found or cost < found[cls][0] - EPSILON:
                    found[cls] = (cost, node)
                    changed = True
    return {c: n for c, (_, n) in found.items()}


def _sets(search: PlanSearch) -> ChosenNodes:
    """The cheapest sets of classes, without cycles."""
    found: dict[ClassId, tuple[float, dict[ClassId, float], int]] = {}
    order = search.inputs_first()
    changed = True
    while changed:
        changed = False
        for cls in order:
            for node in search.options[cls]:
                inputs = (*search.now[node], *search.later[node])
                if not all(c in found for c in inputs):
                    continue
                merged: dict[ClassId, float] = {}
                for c in inputs:
                    merged |= found[c][1]
                if cls in merged:
                    continue
                merged[cls] = search.costs[node]
                cost = sum(merged.values())
                if cls not in found or cost < found[cls][0] - EPSILON:
                    found[cls] = (cost, merged, node)
                    changed = True
    return {c: n for c, (_, _, n) in found.items()}


def _single(search: PlanSearch, choice: ChosenNodes, best: float) -> ChosenStep | None:
    """The best change of one class, if one helps."""
    found: ChosenStep | None = None
    _, used = search.evaluate(choice)
    for cls in used:
        before = choice[cls]
        for node in search.options[cls]:
            if node == before:
                continue
            choice[cls] = node
            cost, _ = search.evaluate(choice, best)
            if cost < best - EPSILON:
                best, found = cost, ((cls, node),)
        choice[cls] = before
        if search.visits > MAX_VISITS:
            break
    return found


def _pair(search: PlanSearch, choice: ChosenNodes, best: float) -> ChosenStep | None:
    """The first change of two classes that helps."""
    _, used = search.evaluate(choice)
    for cls in used:
        before = choice[cls]
        for node in search.options[cls]:
            if node == before:
                continue
            choice[cls] = node
            _, now_used = search.evaluate(choice)
            for other in now_used:
                if other == cls:
                    continue
                kept = choice[other]
                for second in search.options[other]:
                    if second == kept:
                        continue
                    choice[other] = second
                    cost, _ = search.evaluate(choice, best)
                    if cost < best - EPSILON:
                        choice[other], choice[cls] = kept, before
                        return ((cls, node), (other, second))
                choice[other] = kept
                if search.is_over:
                    choice[cls] = before
                    return None
        choice[cls] = before
    return None
