"""What is told of a flow: of its deployment where there is one, else of its program as it is now.

Neither Spark nor Dagster is loaded, and no table is read: the ledger and the logs of tables tell
how much there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydro_core.analysis.partition.answer import partition
from hydro_core.analysis.strata import stratify
from hydro_core.deploy.deployment import Costs, Deployment
from hydro_core.deploy.make import plan_of
from hydro_core.errors import Span
from hydro_core.ir.render import Picture, picture_of
from hydro_core.lang.comments import Comments
from hydro_core.optimize.optimizer import optimize
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import program_of

from ..deployments import Deployments, fitted
from ..programs import texts_of
from ..quality.suites import LAW_CHECKS, declared_checks
from ..shape import FlowShape, shape_of
from .sizes import Size, sizes_of


@dataclass(frozen=True, slots=True)
class Told:
    """A flow as its page tells it."""

    flow: FlowAsset
    about: str
    deployed: int | None
    """The number of the deployment; None: the program as it is now."""
    undeployed: str
    """What of the program is not deployed."""
    texts: Mapping[str, str]
    """The program's files, by their names."""
    plan: TickPlan
    shape: FlowShape
    picture: Picture
    comments: Comments
    costs: Costs
    rules: Mapping[str, str]
    """How each output's plan was found, by the output."""
    notes: tuple[str, ...]
    routing: str
    last: str | None
    """The key of the last committed tick."""
    sizes: Mapping[str, Size]
    """How much there is of each asset's table."""
    checks: Mapping[str, Mapping[str, str]]
    """The checks of each asset, each with what it says."""

    def place(self, name: str) -> Span | None:
        """Where an input is read by the program."""
        return self.plan.graph.sources[name].span


def told(flow: FlowAsset, deployments: Deployments, sample_keys: int) -> Told:
    """What there is to tell of a flow.

    Raises:
        HydroError: its program, or its stored state, is wrong.
    """
    shown = deployments.shown(flow)
    made = _as_it_would_be(flow) if shown is None else _as_deployed(shown.deployment)
    plan, texts, costs, rules, notes, routing = made
    ledger, shape, comments = deployments.ledger(flow), shape_of(plan), Comments(texts)
    flow, last = fitted(flow, plan), ledger.last_tick
    keys = sample_keys if flow.sample_keys is None else flow.sample_keys
    return Told(
        flow=flow,
        about=flow.description or comments.head,
        deployed=None if shown is None else shown.number,
        undeployed=deployments.undeployed(flow).says,
        texts=texts,
        plan=plan,
        shape=shape,
        picture=picture_of(plan.graph, plan.strata.of, plan.typed.types),
        comments=comments,
        costs=costs,
        rules=rules,
        notes=notes,
        routing=routing,
        last=None if last is None else flow.ticks.calendar.window(last).key,
        sizes=sizes_of(ledger),
        checks=_checks(flow, shape, keys),
    )


Made = tuple[TickPlan, Mapping[str, str], Costs, Mapping[str, str], tuple[str, ...], str]


def _as_deployed(made: Deployment) -> Made:
    sinks = {sink.id: name for name, all_ in made.plan.graph.sinks.items() for sink in all_}
    rules = {sinks[node]: text for node, text in made.explanation.items() if node in sinks}
    return made.plan, made.program.texts, made.costs, rules, made.notes, made.routing


def _as_it_would_be(flow: FlowAsset) -> Made:
    """The plan that the first tick would deploy, but for its trial on random ticks."""
    typed = program_of(flow)
    best = optimize(typed, stratify(typed), explain=True)
    plan = plan_of(typed, best)
    sinks = {sink.id: name for name, all_ in plan.graph.sinks.items() for sink in all_}
    rules = {sinks[s.output]: s.render() for s in best.steps if s.output in sinks}
    notes = (*map(str, best.notes), *plan.notes)
    costs = Costs(best.cost_before, best.cost_after)
    return plan, texts_of(flow), costs, rules, notes, str(partition(typed))


def _checks(flow: FlowAsset, shape: FlowShape, keys: int) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {
        output.name: declared_checks(flow.expect.get(output.name, ())) for output in shape.outputs
    }
    if keys:
        says = f"{keys} keys are compared with the program as written, over all that has landed"
        found = {name: {**checks, "as written": says} for name, checks in found.items()}
    return {**found, **{f"state/{state.name}": LAW_CHECKS for state in shape.states}}
