"""The optimizer: a program over all of history becomes one that costs what the new data costs.

The program is loaded into an e-graph, the rules are applied until they find nothing new, and the
cheapest legal plan is extracted. One plan serves every range of ticks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hydro_core.analysis.conditions import bounds_seen
from hydro_core.analysis.identity import without_typed_functions
from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Graph, Node, NodeId, outputs
from hydro_core.optimize.calls import permitted
from hydro_core.optimize.columns import without_dead_columns
from hydro_core.optimize.cost import CostModel, Statistics
from hydro_core.optimize.egraph import ClassId, EGraph, ENode, Problem, Saturation, Space, own_nodes
from hydro_core.optimize.extract import Forms, Plan, extract, plan_cost, values_only, with_forms
from hydro_core.optimize.growth import (
    ChosenPlan,
    Note,
    StatementCost,
    StreamNames,
    notes_of,
    statement_costs,
)
from hydro_core.optimize.load import LoadedProblem, load
from hydro_core.optimize.loop import step_rule, step_shape
from hydro_core.optimize.orders import with_orders
from hydro_core.optimize.proof import MAX_REPLAYED, Derivation, Replay
from hydro_core.optimize.rebuild import rebuild
from hydro_core.optimize.rule import Rule
from hydro_core.optimize.rules.algebra import unfilled_in
from hydro_core.optimize.rules.facts import with_facts
from hydro_core.optimize.rules.selection import introduced, rules_for
from hydro_core.types.item import Order

REBUILT = 1.5
"""A new plan replaces the active one if a tick costs less by at least this factor."""
NO_SATURATION = Saturation(0, 0, True)


@dataclass(frozen=True, slots=True)
class OptimizedProgram:
    """A plan: its program, its costs, and notes about what is not incremental."""

    typed: Typed
    cost_before: float
    cost_after: float
    derivations: tuple[Derivation, ...] = ()
    """The rules that lead to every output's plan, if they were requested."""
    notes: tuple[Note, ...] = ()
    saturation: Saturation = NO_SATURATION
    statistics: Statistics = field(default_factory=Statistics)
    """The statistics that the costs assume."""
    limits: tuple[str, ...] = ()
    """The limits at which the optimizer stopped: the plan is correct, but a better one may
    exist.
    """
    streams: Mapping[NodeId, NodeId] = field(default_factory=dict)
    """By node of the plan: the stream of the program that it computes, maybe without unread
    columns.
    """
    statements: tuple[StatementCost, ...] = ()
    """The cost of each statement of the plan in a tick."""
    bounds: tuple[str, ...] = ()
    """The conditions of joins that bound how far apart matched rows are."""

    @property
    def graph(self) -> Graph:
        return self.typed.graph


def optimize(
    typed: Typed,
    stats: Statistics | None = None,
    *,
    explain: bool = False,
    served_by: Statistics | None = None,
) -> OptimizedProgram:
    """The cheapest plan of a program that the rules find, with the same inputs and outputs.

    Args:
        typed: the program.
        stats: statistics of its data.
        explain: true to add the rules that lead to the plan.
        served_by: the statistics of the active plan. The plan for these is chosen again, with these
            statistics, unless another one is notably cheaper now: another plan has other states,
            which must be recomputed.
    """
    loaded = load(typed)
    if not loaded.problem.roots:
        return OptimizedProgram(typed, 0.0, 0.0)
    known = (stats or Statistics(), served_by)
    search = _Search(*prepare(loaded))
    while True:
        replay, space, saturation = search.saturate(explain=explain)
        chosen, before, statistics = _choose(search.problem, space, *known)
        plan = chosen.plan
        if not search.learns_of_empty(unfilled_in(search.problem, space, plan.choice)):
            break
    named = StreamNames(loaded.origins, space)
    sized = statistics.of_inputs(typed.graph.sources)
    rebuilt, streams = rebuild(loaded, search.problem.payloads, space, plan)
    best = _narrowed(typed, infer(without_typed_functions(rebuilt), typed.schemas))
    verify(best.graph)
    return OptimizedProgram(
        best,
        before,
        plan.cost,
        tuple(replay.derivations(space, plan)) if replay and replay.is_whole else (),
        notes_of(named, plan, chosen.growing(sized), search.problem.payloads),
        saturation,
        statistics,
        tuple(_limits(saturation, plan, replay)),
        streams,
        tuple(statement_costs(named, chosen, sized)),
        tuple(bounds_seen(typed)),
    )


@dataclass(slots=True)
class _Search:
    """A problem with its rules; a chosen plan may add facts to it."""

    problem: Problem
    rules: tuple[Rule, ...]

    def saturate(self, *, explain: bool) -> tuple[Replay | None, Space, Saturation]:
        """The space after saturation, and the replay that explains it, if wanted."""
        egraph = EGraph(self.problem, self.rules, log=explain)
        replay = Replay(egraph) if explain else None
        saturation = replay.saturate() if replay else egraph.saturate()
        return replay, permitted(self.problem, egraph.space()), saturation

    def learns_of_empty(self, empty: Iterable[str]) -> bool:
        """Adds facts about streams that no item reaches; true if one of them is new."""
        told = {("empty", (name,)) for name in empty} - set(self.problem.facts)
        self.problem = replace(self.problem, facts=(*self.problem.facts, *sorted(told)))
        return bool(told)


def _limits(saturation: Saturation, plan: Plan, replay: Replay | None) -> Iterator[str]:
    if not saturation.saturated:
        yield (
            f"the rules stopped early, after {saturation.iterations:,} rounds and at"
            f" {saturation.nodes:,} nodes: a better plan may exist"
        )
    if not plan.has_converged:
        yield "the search among plans stopped at its limit: a better plan may exist"
    if replay and not replay.is_whole:
        yield (
            f"the plan is not explained: its rules were applied more than {MAX_REPLAYED:,} times."
            " Explain a part of the program"
        )


def prepare(loaded: LoadedProblem) -> tuple[Problem, tuple[Rule, ...]]:
    """The problem with the facts and shapes that rules may introduce, and the rules."""
    problem = with_orders(with_facts(loaded), loaded.typed, introduced())
    loops = [s for name in sorted(loaded.steps) if (s := problem.shapes[name]).is_bags]
    steps = {shape.name: shape for shape in map(step_shape, loops)}
    rules, shapes = rules_for(problem.shapes, steps, tuple(map(step_rule, loops)))
    return replace(problem, shapes=shapes), rules


def _choose(
    problem: Problem, space: Space, stats: Statistics, served_by: Statistics | None
) -> tuple[ChosenPlan, float, Statistics]:
    """The cheapest plan, the cost of the program as written, and the statistics of both."""
    start = preferred(problem, space)
    chosen = _cheapest(CostModel(space, problem.payloads, stats), start)
    if served_by is not None and served_by != stats:
        served = _cheapest(CostModel(space, problem.payloads, served_by), start)
        if served.costs(stats).total <= REBUILT * chosen.costs(stats).total:
            chosen, stats = served, served_by
    sizes = CostModel(space, problem.payloads, stats).sizes(tuple(start.values()))
    naive = _as_written(problem)
    written = CostModel(naive, problem.payloads, stats)
    named = {cls: space.named[name] for name, cls in naive.named.items()}
    costs = written.costs([sizes[named[cls]] for cls in range(len(naive.of))])
    return chosen, plan_cost(naive, costs, {i: i for i in range(len(naive.of))}), stats


def _cheapest(model: CostModel, start: Mapping[ClassId, int]) -> ChosenPlan:
    """The cheapest plan, with the representations in which its streams are wanted."""
    sizes = model.sizes(tuple(start.values()))

    def found_in(forms: Forms) -> ChosenPlan:
        costs = [touched.cost for touched in model.touched(sizes, forms)[0]]
        found = extract(forms.space, costs, start)
        return ChosenPlan(model.space, model.payloads, tuple(start.values()), forms, found)

    chosen = found_in(with_forms(model.space, model.payloads))
    free = [0.0] * len(model.space.nodes)
    if plan_cost(model.space, free, chosen.plan.choice) < math.inf:
        return chosen
    # one node may give a stream in two representations, and this merge may close a cycle
    return found_in(values_only(model.space))


def _as_written(problem: Problem) -> Space:
    """The program as a space of one plan, in which each class has the node of its number."""
    ids = {d.name: i for i, d in enumerate(problem.definitions)}
    ids |= {cut: ids[name] for cut, name in problem.cuts.items()}
    nodes = tuple(
        ENode(problem.shapes[d.shape], d.payload, tuple(ids[i] for i in d.inputs), ids[d.name])
        for d in problem.definitions
    )
    named = {d.name: ids[d.name] for d in problem.definitions}
    roots = tuple(ids[r] for r in problem.roots)
    return Space(nodes, tuple((i,) for i in range(len(nodes))), roots, named)


def preferred(problem: Problem, space: Space) -> Mapping[ClassId, int]:
    """The program's own nodes as a choice, where they still exist."""
    choice: dict[ClassId, int] = {}
    for position in own_nodes(problem, space):
        choice.setdefault(space.nodes[position].cls, position)
    return choice


def _narrowed(typed: Typed, plan: Typed) -> Typed:
    """The plan without unread columns, with its types checked; unchanged if that fails."""
    _check_outputs(typed, plan)
    try:
        after = infer(without_dead_columns(plan), typed.schemas)
        _check_outputs(typed, after)
    except (ProgramError, AssertionError):
        return plan
    return after


def _check_outputs(typed: Typed, plan: Typed) -> None:
    """Raises `AssertionError` if an output has another item type or less order than in the
    program.
    """
    for sink in typed.graph.named(SINK.name):
        was = typed.types[sink.inputs[0]]
        now = plan.types[plan.graph[sink.id].inputs[0]]
        weaker = was.order is Order.TOTAL and now.order is not Order.TOTAL
        if was.item != now.item or weaker:
            raise AssertionError(f"the plan gives {sink.id} as {now}, the program as {was}")


class BrokenGraphError(Exception):
    """A graph that no program could mean."""


def verify(graph: Graph) -> Graph:
    """The graph itself; raises `BrokenGraphError` with all problems if it has any."""
    wrong = [f"{node.id}: {problem}" for node in graph for problem in _problems(graph, node)]
    names = [node.args.get("name") for node in graph.named(SOURCE.name)]
    wrong += [
        f"two inputs are called {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if wrong:
        raise BrokenGraphError("; ".join(wrong))
    return graph


def _problems(graph: Graph, node: Node) -> Iterator[str]:
    op, count = node.op, len(node.inputs)
    if graph.nodes.get(node.id) is not node:
        yield "stands under another id"
    missing = [arg.name for arg in node.spec.args if arg.name not in node.args]
    if missing:
        yield f"lacks the argument {missing[0]}"
    fits = count == len(op.inputs) or (op.optional_input and count == 0)
    if not (count >= 1 if op.variadic else fits):
        yield f"has {count} inputs"
    for endpoint in node.inputs:
        if endpoint.node not in graph.nodes:
            yield f"reads {endpoint}, which is not there"
        elif endpoint not in outputs(graph[endpoint.node]):
            yield f"reads {endpoint}, which is no output"
