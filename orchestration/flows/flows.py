"""What is known of the flows of a project: what is deployed, committed and landed.

To look makes nothing and starts no Spark. What runs ticks is in `runner`, so that who only looks
does not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, ProgramError
from hydro_core.ir.graph import Endpoint
from hydro_core.machine.faults import faults_as_errors, raise_outage
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.settings import Settings
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import QUARANTINE, WRONG, declared_columns, is_widened

from ..deploy.deployments import Deployments, fitted
from ..project.settings import ProjectSettings
from .readiness import HeldTick, ReadyTicks, held_by, ready

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import Landings, LandingTable
    from hydro_core.spark.inputs.reading import SlicedBatches
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.store.ledger.records import InputRead
    from hydro_core.types.item import ItemType


OneLook = Callable[[], "Landings"]
"""Gives a look at landings, each time the same."""


class Flows:
    """The flows of a project as they are now; opening it costs nothing."""

    def __init__(self, project: ProjectSettings) -> None:
        self.project = project
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.deployments = Deployments(project.pipelines)
        self._pipelines: dict[str, tuple[FlowAsset, Pipeline]] = {}

    @property
    def settings(self) -> Settings:
        """The core's settings as the project changes them."""
        return self.project.core

    def settings_for(self, flow: FlowAsset) -> Settings:
        """The core's settings for a flow, which may have settings of Spark of its own."""
        return self.project.core_with(flow.spark.conf, flow.spark.master)

    def directory(self, flow: FlowAsset) -> DataPlace:
        """Where the flow's tables and ledger are."""
        return self.project.pipelines / flow.name

    def plan(self, flow: FlowAsset) -> TickPlan:
        """The plan by which the flow's ticks run; see `Deployments.plan`."""
        return self.deployments.plan(flow)

    def pipeline(self, flow: FlowAsset) -> Pipeline:
        """The pipeline of the deployment that serves; the first is made where there is none.

        It is opened once, and again when another deployment has taken over, the asset is another
        one, or the same deployment has its state elsewhere, since others have served in between.
        """
        from hydro_core.spark.pipeline.pipeline import pipeline_of, places_in
        from hydro_core.spark.pipeline.publishing import PublishPolicy

        deployed = self.deployments.prepare(flow)
        asset, known = self._pipelines.get(flow.name, (flow, None))
        places = places_in(self.deployments.seen(flow), deployed.name)
        is_same = known is not None and known.fingerprint == deployed.name and asset == flow
        if known is None or not is_same or not _is_at(known, places):
            plan, where = deployed.deployment.plan, self.directory(flow)
            published = PublishPolicy(frozenset(flow.tables), partial(self._going, flow))
            known = pipeline_of(
                where, plan, deployed.name, self.settings_for(flow), places, published
            )
            self._pipelines[flow.name] = flow, known
        return known

    def _going(self, flow: FlowAsset) -> Collection[str]:
        """The outputs of which the program says something else that is not deployed; all of them
        while it cannot be.
        """
        found = self.deployments.undeployed(flow)
        return found.outputs if found.deployable else tuple(self.plan(flow).graph.sinks)

    def asset(self, flow: FlowAsset) -> FlowAsset:
        """What the asset says of the plan that runs; it may be ahead of it."""
        return fitted(flow, self.plan(flow))

    def next_tick(self, flow: FlowAsset) -> int:
        """The first tick that is not committed; the ledger tells, Spark is not needed."""
        last = self.deployments.ledger(flow).last_tick
        return 0 if last is None else last + 1

    def committed_at(self, flow: FlowAsset, tick: int) -> datetime | None:
        """When a tick was committed; None if it is not."""
        commit = self.deployments.ledger(flow).commit_of(tick) if tick >= 0 else None
        return None if commit is None else commit.committed

    def waits_since(self, flow: FlowAsset, tick: int) -> datetime | None:
        """Since when a tick may have been tried: the last commit or decision before it, if any."""
        times = (self.committed_at(flow, tick - 1), self.decided_at(flow))
        return max((time for time in times if time is not None), default=None)

    def decided_at(self, flow: FlowAsset) -> datetime | None:
        """When somebody accepted what came for committed ticks, if that was the last thing done."""
        last = self.deployments.ledger(flow).last
        is_decision = last is not None and last.inputs and not last.ticks
        return last.committed if last is not None and is_decision else None

    def one_look(self, flow: FlowAsset, *, to_tell: bool = False) -> OneLook:
        """Gives the same look at the landings of a flow, however often it is asked.

        It is made when it is first needed: a flow that waits for another looks at nothing.
        """
        return cache(partial(self.landings, flow, to_tell=to_tell))

    def ready(self, flow: FlowAsset, landings: OneLook | None = None) -> ReadyTicks:
        """Which ticks may run now, and what the next one waits for; Spark is not needed.

        Args:
            flow: the flow.
            landings: the look at its landings, if others take it, too.
        """
        one_look = landings or self.one_look(flow, to_tell=True)

        def latest(name: str) -> int | datetime | None:
            return one_look().latest(name)

        def committed(other: str) -> int:
            last = self.deployments.ledger_of(other).last_tick
            return 0 if last is None else last + 1

        serving = self.deployments.active(flow)
        # The asset may be ahead: what the program that serves does not read keeps no tick waiting.
        read = flow if serving is None else fitted(flow, serving.deployment.plan)
        return ready(read, latest, committed, self.now(), partial(self._held, flow, one_look))

    def _held(self, flow: FlowAsset, landings: OneLook) -> HeldTick | None:
        """What the next tick waits for while rows are gone; None: for nothing."""
        tick, ledger = self.next_tick(flow), self.deployments.ledger(flow)
        try:
            with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
                seen = landings().look(tick, ledger.last_reads())
        except (DataError, ProgramError):
            # What is wrong with a landing is told by what runs next.
            return None
        return held_by(flow, seen, tick)

    def reads(self, flow: FlowAsset) -> Mapping[str, InputRead]:
        """What the last ticks that are committed have read of the inputs."""
        return {read.name: read for read in self.deployments.ledger(flow).last_reads()}

    def empty_inputs(self, flow: FlowAsset) -> tuple[str, ...]:
        """The inputs of which the last committed tick had no row; the ledger tells."""
        ledger = self.deployments.ledger(flow)
        reads, last = ledger.last_reads(), ledger.last_tick
        return tuple(read.name for read in reads if last in read.empty)

    def table_of(self, flow: FlowAsset, output: str) -> DataPlace:
        from hydro_core.spark.store.layout import directory_names

        names = directory_names(self.plan(flow).graph.sinks)
        return self.directory(flow) / "tables" / names.get(output, output)

    def behind(self, flow: FlowAsset) -> tuple[str, ...]:
        """The outputs whose tables do not show the last commit."""
        if not flow.tables:
            return ()
        from hydro_core.spark.pipeline.publishing import behind

        return behind(self.directory(flow), self.deployments.commit(flow), flow.tables)

    def landings(self, flow: FlowAsset, *, to_tell: bool = False) -> Landings:
        """A look at what the flow's plan reads, where it lands; no row is read for ticks.

        Args:
            flow: the flow.
            to_tell: it is only told of; else open ticks are read as it was seen, or it is accepted.
        """
        from hydro_core.spark.inputs.looks import Landings, landing_sources

        landings, items = self._where(flow, self.plan(flow))
        spark = lambda: self.pipeline(flow).spark  # noqa: E731
        sources = landing_sources(landings, items, spark, flow.ticks.calendar)
        return Landings(sources, self.directory(flow), to_tell)

    def inputs(
        self, flow: FlowAsset, plan: TickPlan | None = None, names: Iterable[str] | None = None
    ) -> SlicedBatches:
        """The inputs of the flow, or some of a plan's: what lands, to be read by ticks."""
        from hydro_core.spark.inputs.reading import SlicedBatches

        landings, items = self._where(flow, plan or self.plan(flow), names)
        small = self.settings.spark.small_write_rows
        spark = lambda: self.pipeline(flow).spark  # noqa: E731
        return SlicedBatches(
            landings, items, spark, small, flow.ticks.calendar, self.directory(flow)
        )

    def _where(
        self, flow: FlowAsset, plan: TickPlan, names: Iterable[str] | None = None
    ) -> tuple[dict[str, LandingTable], dict[str, ItemType]]:
        """Where the inputs of a plan land, and the types of their items."""
        from hydro_core.spark.inputs.looks import LandingTable

        flow = fitted(flow, plan)
        landings: dict[str, LandingTable] = {}
        items: dict[str, ItemType] = {}
        place: DataPlace
        for name in plan.graph.sources if names is None else names:
            node = plan.graph.sources[name]
            where = flow.inputs[name]
            items[name] = plan.typed.types[Endpoint(node.id)].item
            if isinstance(where, FlowOutput):
                columns = declared_columns(items[name])
                place, committed = self.deployments.output_of(flow, name, columns)
                optional = frozenset[str]()
            else:
                place = self.project.landed(where.path)
                optional, committed = frozenset(where.optional), None
                if is_widened(node.args["schema"]):
                    # What must not be null is asked of the rows that fit.
                    items[name] = node.args["schema"]
                    optional |= frozenset(WRONG)
            numbered = flow.numbered_by(name)
            landings[name] = LandingTable(place, where.column, numbered, optional, committed)
        return landings, items


def _is_at(pipeline: Pipeline, places: Mapping[str, str]) -> bool:
    """Whether the tables of the state are where the ledger says."""
    tables = pipeline.state_tables
    return all(tables[slot].name == name for slot, name in places.items() if slot in tables)


@dataclass(frozen=True, slots=True)
class QuarantineCounts:
    """The rows in quarantine: those that the `last` commit put there, and `all` that are there."""

    last: int
    all: int
    tick: str | None = None
    """The key of the last tick that has some."""


def quarantined(flow: FlowAsset, flows: Flows) -> QuarantineCounts | None:
    """How many rows a flow has in quarantine; None: what serves has none, or nothing serves."""
    try:
        if not flows.next_tick(flow) or QUARANTINE not in flows.plan(flow).graph.sinks:
            return None
        pipeline = flows.pipeline(flow)
        table = pipeline.output_tables[QUARANTINE].name
        run = flows.deployments.ledger(flow).last_run
        last = 0 if run is None else run.rows.get(table, 0)
        found = pipeline.store.row_count(table)
        from hydro_core.spark.store.delta.table import last_tick

        tick = last_tick(pipeline.store.tables[table], flows.next_tick(flow) - 1)
        if tick is None:
            return QuarantineCounts(last, found)
        return QuarantineCounts(last, found, flow.ticks.calendar.window(tick).key)
    except (DataError, ProgramError, OSError) as error:
        raise_outage(error)
        # What is wrong with a pipeline is told by what runs next.
        return None
