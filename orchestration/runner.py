"""Runs ticks of flows: reads what landed, prepares the tick, judges it, and commits it or not.

One warm Spark session serves all ticks of a process. Nothing here starts it before the first tick
runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assets.spec import FlowAsset
from hydro_core.errors import HydroError
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from orchestration.programs import plan_of
from orchestration.quality.suites import (
    LAW_CHECKS,
    declared_checks,
    laws_frame,
    laws_suite,
    output_suite,
)
from orchestration.quality.validate import Verdict, validate, validate_rows
from orchestration.settings import ProjectSettings
from orchestration.ticks import Window

if TYPE_CHECKING:
    from hydro_core.spark.batches_landing import InputBatches
    from hydro_core.spark.pipeline import Pipeline
    from hydro_core.spark.pipeline_prepared import Prepared

Log = Callable[[str], None]
Verdicts = Sequence[tuple[str, Verdict]]
"""What was found, with the asset that it is about: "state/NAME", or an output's name."""


@dataclass(frozen=True, slots=True)
class TickReport:
    """How a tick ended: its verdicts by asset ("state/NAME" or an output's name), and what to
    show.
    """

    tick: int
    committed: bool
    problem: str = ""
    verdicts: tuple[tuple[str, Verdict], ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that the tick added, by asset; inputs as "landing/NAME"."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Where the table of each asset is."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the UI shows of the tick as a whole."""
        return {"tick": self.tick, "rows read": sum(self._read.values()), **self._read}

    def metadata_of(self, asset: str) -> dict[str, Any]:
        """What the UI shows of one asset of the tick."""
        if asset not in self.tables:
            return self.metadata
        return {
            "tick": self.tick,
            "dagster/row_count": self.rows.get(asset, 0),
            "dagster/table_name": self.tables[asset],
        }

    @property
    def _read(self) -> dict[str, int]:
        return {name: rows for name, rows in self.rows.items() if name.startswith("landing/")}


class TickRunner:
    """The ticks of all flows of a project; opening it costs nothing."""

    def __init__(self, project: ProjectSettings) -> None:
        self.project = project
        self._plans: dict[str, TickPlan] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._reports: dict[str, TickReport] = {}

    @property
    def settings(self) -> Settings:
        """The core's settings as the project changes them."""
        wanted = {"master": self.project.spark_master, "memory": self.project.spark_memory}
        return Settings().with_(**{name: value for name, value in wanted.items() if value})

    def directory(self, flow: FlowAsset) -> Path:
        """Where the flow's tables and ledger are."""
        return self.project.pipelines / flow.name

    def plan(self, flow: FlowAsset) -> TickPlan:
        """The flow's plan, compiled once."""
        if flow.name not in self._plans:
            self._plans[flow.name] = plan_of(flow)
        return self._plans[flow.name]

    def pipeline(self, flow: FlowAsset) -> Pipeline:
        """The flow's pipeline, opened once."""
        from hydro_core.spark.pipeline import Pipeline

        if flow.name not in self._pipelines:
            directory = self.directory(flow)
            self._pipelines[flow.name] = Pipeline(directory, self.plan(flow), self.settings)
        return self._pipelines[flow.name]

    def next_tick(self, flow: FlowAsset) -> int:
        """The first tick that is not committed; the ledger tells, Spark is not needed."""
        from hydro_core.spark.ledger import Ledger

        last = Ledger(self.directory(flow)).last_tick
        return 0 if last is None else last + 1

    def last_report(self, flow: FlowAsset) -> TickReport | None:
        """The report of the tick that this process ran last; None before the first."""
        return self._reports.get(flow.name)

    def warm_up(self) -> None:
        """Starts in the background what the first tick would wait for: the checks' library."""
        threading.Thread(target=partial(__import__, "great_expectations"), daemon=True).start()

    def run(self, flow: FlowAsset, window: Window, log: Log) -> TickReport:
        """Runs the tick of `window`, judges it and commits it; one that is committed is reported
        again.

        What is wrong with the program, the data or the state is a report with a problem; nothing is
        committed then.
        """
        self._reports.pop(flow.name, None)
        report = self._run(flow, window, log)
        self._reports[flow.name] = report
        return report

    def _run(self, flow: FlowAsset, window: Window, log: Log) -> TickReport:
        pipeline = self.pipeline(flow)
        if window.tick < pipeline.next_tick:
            log(f"{window.key} is committed already")
            return self._committed(flow, window)
        try:
            with self._prepare(flow, window) as prepared:
                return self._decide(flow, window, prepared, log)
        except HydroError as error:
            return TickReport(window.tick, committed=False, problem=str(error))

    def _decide(self, flow: FlowAsset, window: Window, prepared: Prepared, log: Log) -> TickReport:
        """Writes the tick ahead of the ledger, judges it, and commits it if nothing is broken."""
        log(f"{window.key}: computed {sum(prepared.rows.values()):,} rows, judging them")
        prepared.write()
        verdicts, facts = self._judge(flow, self.pipeline(flow), prepared)
        broken = [(asset, v) for asset, v in verdicts if not v.passed]
        if not broken:
            commit = prepared.commit({"tables": facts, "passed": _names(verdicts)})
            log(f"{window.key}: committed as tick {commit.last}")
        return self._report(flow, window, prepared, verdicts, _problem(broken) if broken else "")

    def recheck(self, flow: FlowAsset, window: Window, asset: str) -> tuple[Verdict, ...]:
        """Judges a committed tick once more, from the stored tables alone; nothing if it is not
        committed.
        """
        pipeline = self.pipeline(flow)
        if window.tick >= pipeline.next_tick:
            return ()
        kind, _, slot = asset.rpartition("/")
        if kind != "state":
            rows = pipeline.output(asset, as_of=window.tick).to_pandas()
            rows = rows[rows["tick"] == window.tick]
            return validate(output_suite(flow.name, asset, flow.expect.get(asset, ())), rows)
        from orchestration.quality.facts import committed_facts

        facts = committed_facts(pipeline, window.tick, slot)
        if facts is None:
            return ()
        return validate_rows(laws_suite(flow.name), laws_frame([facts]), "table")[slot]

    def _prepare(self, flow: FlowAsset, window: Window) -> Prepared:
        pipeline = self.pipeline(flow)
        pipeline.refuse_unless_next(window.tick)
        times = {window.tick: (window.start, window.end)}
        batches = self._inputs(flow, pipeline).read(window.tick, window.tick, times)
        return pipeline.prepare(window.tick, window.tick, batches, times=times)

    def _inputs(self, flow: FlowAsset, pipeline: Pipeline) -> InputBatches:
        from hydro_core.spark.batches_landing import InputBatches, Landing

        plan = self.plan(flow)
        landings, items = {}, {}
        for name, node in plan.graph.sources.items():
            where = flow.inputs[name]
            landings[name] = Landing(self.project.landing / where.path, where.column)
            items[name] = plan.typed.types[Endpoint(node.id)].item
        small = self.settings.spark.small_write_rows
        return InputBatches(landings, items, lambda: pipeline.spark, small)

    def _judge(
        self, flow: FlowAsset, pipeline: Pipeline, prepared: Prepared
    ) -> tuple[list[tuple[str, Verdict]], Mapping[str, Any]]:
        from orchestration.quality.facts import kept, state_facts

        facts = state_facts(prepared, pipeline.ledger.last)
        laws = validate_rows(laws_suite(flow.name), laws_frame(facts), "table")
        verdicts = [(f"state/{slot}", v) for slot, found in laws.items() for v in found]
        for output, expected in flow.expect.items():
            columns = list(dict.fromkeys(expect.column for expect in expected))
            rows = prepared.outputs[output].arrow()
            there = [column for column in columns if column in rows.column_names]
            suite = output_suite(flow.name, output, expected)
            verdicts += [(output, v) for v in validate(suite, rows.select(there).to_pandas())]
        specs = {slot: written.spec for slot, written in prepared.state.items()}
        return verdicts, kept(facts, specs)

    def _committed(self, flow: FlowAsset, window: Window) -> TickReport:
        commit = self.pipeline(flow).ledger.commit_of(window.tick)
        if commit is None:
            raise LookupError(f"no commit made tick {window.tick}")
        names = {spec.name: _asset(spec.role, spec.of) for spec in self.pipeline(flow).tables}
        rows = {names[name]: count for name, count in commit.rows.items() if name in names}
        rows |= {f"landing/{read.name}": read.rows or 0 for read in commit.inputs}
        verdicts = [
            (asset, Verdict(check, passed=True, says=self._says(flow, asset, check)))
            for asset, checks in commit.checks.get("passed", {}).items()
            for check in checks
        ]
        return TickReport(
            window.tick,
            committed=True,
            verdicts=tuple(verdicts),
            rows=rows,
            tables=self._tables(flow),
        )

    @staticmethod
    def _says(flow: FlowAsset, asset: str, check: str) -> str:
        known = {**LAW_CHECKS, **declared_checks(flow.expect.get(asset, ()))}
        return known.get(check, check)

    def _report(
        self,
        flow: FlowAsset,
        window: Window,
        prepared: Prepared,
        verdicts: list[tuple[str, Verdict]],
        problem: str,
    ) -> TickReport:
        specs = {written.spec.name: written.spec for written in prepared.written.values()}
        rows = {_asset(specs[n].role, specs[n].of): count for n, count in prepared.rows.items()}
        rows |= {f"landing/{read.name}": read.rows or 0 for read in prepared.inputs}
        return TickReport(
            window.tick, not problem, problem, tuple(verdicts), rows, self._tables(flow)
        )

    def _tables(self, flow: FlowAsset) -> dict[str, str]:
        pipeline = self.pipeline(flow)
        return {
            _asset(spec.role, spec.of): str(pipeline.directory / spec.name)
            for spec in pipeline.tables
        }


def _asset(role: str, of: str) -> str:
    return f"state/{of}" if role == "state" else of


def _names(verdicts: Verdicts) -> dict[str, list[str]]:
    """The checks by asset, as the ledger keeps them."""
    found: dict[str, list[str]] = {}
    for asset, verdict in verdicts:
        found.setdefault(asset, []).append(verdict.check)
    return found


def _problem(broken: list[tuple[str, Verdict]]) -> str:
    said = "; ".join(f"`{asset}`: {v.check} ({v.says})" for asset, v in broken)
    return f"{len(broken)} check(s) failed, nothing is committed: {said}"
