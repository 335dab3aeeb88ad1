"""What is told of a flow: of its deployment where there is one, else of its program as it is now.

Neither Spark nor Dagster is loaded, and no table is read: the ledger and the logs of tables tell
how much there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hydro_core.analysis.descriptions import Described, described
from hydro_core.artifact.deployment import Deployment
from hydro_core.errors import Span
from hydro_core.ir.render import Picture, picture_of
from hydro_core.lang.comments import Comments
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset

from ..project.programs import untried_deployment
from ..project.serving import fitted
from ..project.shape import FlowShape, shape_of
from ..quality.declared import checks_of
from ..runner.runner import TickRunner

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table holds: rows, and the bytes and number of its files."""

    rows: int
    bytes: int
    files: int


def sizes_of(ledger: Ledger) -> Mapping[str, TableSize]:
    """The sizes of a pipeline's tables, by their assets: an output, or "state/NAME".

    What its last commit names is read at the version that it names: it alone has happened.
    """
    from deltalake.exceptions import DeltaError

    from hydro_core.storage.delta import data_files, opened_table

    commit, found = ledger.last, {}
    if commit is None:
        return {}
    for name, record in commit.tables.items():
        try:
            table = opened_table(ledger.directory / name, commit.versions.get(name))
        except DeltaError:
            # A table that is not there is told by what runs next.
            continue
        files = data_files(table, "size_bytes", "num_records")
        size = TableSize(
            sum(file["num_records"] or 0 for file in files),
            sum(file["size_bytes"] for file in files),
            len(files),
        )
        found[f"state/{record['of']}" if record["role"] == "state" else record["of"]] = size
    return found


@dataclass(frozen=True, slots=True)
class FlowPage:
    flow: FlowAsset
    about: str
    deployed: int | None
    """The number of the deployment; None: it would be the first."""
    undeployed: str
    """What of the program is not deployed."""
    deployment: Deployment
    shape: FlowShape
    picture: Picture
    comments: Comments
    columns: Described
    """What is said of the columns of inputs and outputs."""
    last: str | None
    """The key of the last committed tick."""
    sizes: Mapping[str, TableSize]
    """How much there is of each asset's table."""
    checks: Mapping[str, Mapping[str, str]]
    """The checks of each asset, each with what it says."""

    @property
    def plan(self) -> TickPlan:
        return self.deployment.plan

    @property
    def rules(self) -> Mapping[str, str]:
        """How each output's plan was found, by the output."""
        sinks = {sink.id: name for name, all_ in self.plan.graph.sinks.items() for sink in all_}
        explained = self.deployment.explanation.items()
        return {sinks[node]: text for node, text in explained if node in sinks}

    def place(self, name: str) -> Span | None:
        """Where an input is read by the program."""
        return self.plan.graph.sources[name].span


def page_of_flow(flow: FlowAsset, runner: TickRunner) -> FlowPage:
    """What there is to tell of a flow.

    Raises:
        HydroError: its program, or its stored state, is wrong.
    """
    deployments = runner.deployments
    shown = deployments.shown(flow)
    made = untried_deployment(flow) if shown is None else shown.deployment
    plan = made.plan
    ledger, shape, comments = deployments.ledger(flow), shape_of(plan), Comments(made.program.texts)
    flow, last = fitted(flow, plan), ledger.last_tick
    return FlowPage(
        flow=flow,
        about=flow.description or comments.head,
        deployed=None if shown is None else shown.number,
        undeployed=deployments.undeployed(flow).says,
        deployment=made,
        shape=shape,
        picture=picture_of(plan.graph, plan.strata.of, plan.typed.types),
        comments=comments,
        columns=described(made.program.typed, comments),
        last=None if last is None else flow.ticks.calendar.window(last).key,
        sizes=sizes_of(ledger),
        checks=checks_of(flow, shape, runner.sampled(flow)),
    )
