"""Reports of plans to deploy, for people and as JSON: what `hydrotick plan` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydro_core.artifact.deployment import WrittenDeployment
from hydro_core.errors import in_a_line
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.report import assumed_of
from hydro_core.program_change.difference import ChangedOutput, ChangedState
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.item import Row

from ..flows.landed_past import rows_read
from .planning import DeployPlan

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline

    from ..runner.runner import TickRunner


@dataclass(frozen=True, slots=True)
class TableReport:
    """An output or a state: in words, and as JSON."""

    says: str
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """The report of a plan to deploy a flow."""

    flow: str
    active: int | None
    """The number of the active deployment."""
    target: WrittenDeployment
    after: str | None
    """The last committed tick."""
    head: tuple[str, ...]
    """The first lines; all of them where there is nothing to deploy."""
    outputs: Mapping[str, TableReport]
    states: Mapping[str, TableReport]
    costs: tuple[float, float]
    """Rows that a tick costs: the first is called `was`."""
    was: str = ""
    notes: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The report as `--format json` prints it."""
        return {
            "flow": self.flow,
            "deployed": self.active,
            "next": self.target.number,
            "after": self.after,
            "outputs": {name: table.record for name, table in self.outputs.items()},
            "states": {name: table.record for name, table in self.states.items()},
            "cost": {"before": self.costs[0], "after": self.costs[1]},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        sections = self._sections() if self.was else ()
        return "\n".join([*self.head, *sections, *self.foot]) + "\n"

    def _sections(self) -> Iterator[str]:
        yield ""
        yield from _section("outputs", _aligned(self.outputs))
        yield from _section("states", _aligned(self.states) or ["none"])
        made = self.target.deployment
        costs = f"a tick costs about {self.costs[1]:,.0f} rows ({self.was}: {self.costs[0]:,.0f})"
        stats = made.costs.statistics
        # The ledger's statistics, where the plan was chosen by them.
        known = [assumed_of(list(made.plan.graph.sources), Statistics.of(stats))] if stats else []
        yield from _section("cost", [costs, *known])
        if made.sharding is not None:
            yield from _section("shards", [made.sharding.says])
        # They begin with their place, which is stored with the whole path of the file.
        here = f"{Path.cwd()}/"
        notes = [line.removeprefix(here) for note in self.notes for line in note.splitlines()]
        yield from _section("notes", notes or ["all of it is incremental"])


def _section(title: str, rows: list[str]) -> list[str]:
    return [f"  {title if not i else '':<9} {row}" for i, row in enumerate(rows)]


def _aligned(tables: Mapping[str, TableReport]) -> list[str]:
    width = max((len(in_a_line(name)) for name in tables), default=0)
    return [f"{in_a_line(n):<{width}}  {table.says}".rstrip() for n, table in tables.items()]


def report_of_plan(plan: DeployPlan, runner: TickRunner) -> PlanReport:
    """The report that a reviewer reads before saying yes."""
    last, ticks = plan.last.key, plan.commit.last + 1
    head = f"{plan.flow.name}: deployment {plan.active.number} → {plan.target.number}"
    nothing = "  No table changes: it would be deployed without computing anything."
    outputs, states = plan.difference.outputs.items(), plan.difference.states.items()
    return PlanReport(
        flow=plan.flow.name,
        active=plan.active.number,
        target=plan.target,
        after=last,
        head=(f"{head}, after tick {last} ({ticks:,} tick(s))",),
        outputs={name: _output(plan, name, output) for name, output in outputs},
        states={name: _state(plan, runner, name, state) for name, state in states},
        costs=(plan.active.deployment.costs.after, plan.target.deployment.costs.after),
        was="before",
        notes=plan.notes,
        foot=("", nothing) if plan.changes_no_table else (),
    )


def report_of_first(flow: FlowAsset, first: WrittenDeployment) -> PlanReport:
    """The report where no deployment is active yet."""
    made = first.deployment
    head = f"{flow.name}: deployment {first.number}, which its first tick activates:"
    empty = {"change": "empty", "from": [], "rows": 0}
    return PlanReport(
        flow=flow.name,
        active=None,
        target=first,
        after=None,
        head=(head, f"  hydrotick backfill {flow.name}"),
        outputs={name: TableReport("", _output_record("new")) for name in made.plan.graph.sinks},
        states={
            slot.id: TableReport(f"the items of `{slot.stream}`", empty) for slot in made.plan.slots
        },
        costs=(made.costs.before, made.costs.after),
        was="as written",
        notes=made.notes,
    )


def report_of_nothing(flow: FlowAsset, runner: TickRunner) -> PlanReport:
    """The report where the program is the active one."""
    active = runner.deployments.prepare(flow)
    pipeline, ticks = runner.pipeline(flow), runner.next_tick(flow)
    made = active.deployment
    same = TableReport("", _output_record("same", ("the program says the same",)))
    return PlanReport(
        flow=flow.name,
        active=active.number,
        target=active,
        after=flow.ticks.calendar.window(ticks - 1).key if ticks else None,
        head=(f"{flow.name}: nothing to deploy: the program is the active one",),
        outputs=dict.fromkeys(made.plan.graph.sinks, same),
        states={
            slot: TableReport("", _state_record("kept", [f"state/{slot}"], _rows(pipeline, s.name)))
            for slot, s in pipeline.state_tables.items()
        },
        costs=(made.costs.after, made.costs.after),
        notes=made.notes,
    )


def _output_record(
    change: str,
    proof: Iterable[str] = (),
    restated: list[str] | None = None,
    compared: dict[str, int] | None = None,
) -> dict[str, Any]:
    return {"change": change, "proof": list(proof), "restated": restated, "compared": compared}


def _state_record(change: str, tables: list[str], rows: int | None) -> dict[str, Any]:
    return {"change": change, "from": tables, "rows": rows}


def _output(plan: DeployPlan, name: str, output: ChangedOutput) -> TableReport:
    proof = plan.difference.proofs.get(name, ())
    restated, compared = plan.restated(name), plan.compared.get(name)
    record = _output_record(
        output.change,
        proof,
        None if restated is None else [window.key for window in restated],
        None if compared is None else asdict(compared),
    )
    if output.change == "gone":
        return TableReport("gone; its table is there for `hydrotick rollback`", record)
    says: str = output.change
    item = plan.target.deployment.plan.typed.outputs[name].item
    if output.columns and isinstance(item, Row):
        now = {*item.names}
        columns = (f"`{c}` {'added' if c in now else 'dropped'}" for c in output.columns)
        says = f"{output.change}: {', '.join(columns)}"
    # The names of rules, which docs/rules.md lists; the JSON has their reasons.
    proved = f" (proved: {', '.join(step.partition(':')[0] for step in proof)})" if proof else ""
    parts = [f"{says}{proved}"]
    if restated is not None:
        first, last = restated
        parts.append(f"{last.tick - first.tick + 1:,} tick(s) restated, from {first.key}")
    elif name in plan.begun:
        parts.append("starts empty")
    elif name in plan.since:
        parts.append("its past stays as it is")
    if compared is not None:
        parts.append(f"compared: {compared}")
    return TableReport("; ".join(parts), record)


def _state(plan: DeployPlan, runner: TickRunner, name: str, state: ChangedState) -> TableReport:
    if name in plan.empty:
        says = "starts empty: the landed past is not there"
        return TableReport(says, _state_record("empty", [], 0))
    of = {t.name: f"state/{t.of}" if t.role == "state" else t.of for t in plan.difference.tables}
    stored = (state.table,) if state.change == "kept" and state.table else state.tables
    tables = [*(of[table] for table in stored), *(f"landing/{one}" for one in state.inputs)]
    rows = _rows_of_state(runner.pipeline(plan.flow), state)
    counted = "" if rows is None else f", {rows:,} row(s)"
    if state.change == "kept":
        says = f"kept{f', was `{state.was}`' if state.was else ''}{counted}"
    elif state.change == "dropped":
        says = f"dropped{counted}; it is there for `hydrotick rollback`"
    else:
        listed = ", ".join(f"`{table}`" for table in tables)
        says = f"{state.change} from {listed}{f'{counted} read' if counted else ''}"
    return TableReport(says, _state_record(state.change, tables, rows))


def _rows_of_state(pipeline: Pipeline, state: ChangedState) -> int | None:
    """The rows of its table, or those that are read to compute it; None: not known."""
    if state.change in ("kept", "dropped"):
        return _rows(pipeline, state.table) if state.table else 0
    read: Mapping[str, int] = rows_read(pipeline.ledger.commits(), 0) if state.inputs else {}
    if any(name not in read for name in state.inputs):
        return None
    stored = [_rows(pipeline, table) for table in state.tables]
    return sum(stored) + sum(read[name] for name in state.inputs)


def _rows(pipeline: Pipeline, table: str) -> int:
    pipeline.store.check(pipeline.ledger.last)
    return pipeline.store.row_count(table)
