"""The checks of a flow as Dagster knows them.

A tick judges what it wrote before it commits, and logs what was found for its partition. The
checks can also be run by themselves, from the page of an asset: then they judge what is committed.

To Dagster they have no partitions, though what is logged of them names its tick. A launch plans
each check for each of its partitions otherwise, and those that a failed tick left unjudged are
shown as "execution failed", in place of what was found before.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import QUARANTINE

from ..instance.run_tags import PARTITION
from ..project.shape import FlowShape
from ..quality.declared import WARNS, checks_of, landed_checks, landed_verdicts, quarantine_verdicts
from ..quality.suites import CURE, ROWS, Verdict
from ..runner.report import TickReport
from ..runner.runner import TickRunner
from .as_loaded import as_when_launched
from .asset_specs import asset_key, tick_step


class RunEvaluations:
    """What the checks find in one run of ticks: of every tick, and of the run as a whole."""

    def __init__(self, flow: FlowAsset, context: dg.AssetExecutionContext) -> None:
        self._flow = flow
        self._planned = context.job_def.has_node_named(_step(flow))
        self._last: dict[tuple[str, str], tuple[Verdict, TickWindow]] = {}

    def of_tick(self, report: TickReport) -> Iterator[dg.AssetCheckEvaluation]:
        """What was found of a tick, under its partition."""
        for asset, verdict in self._found(report):
            self._last[asset, verdict.check] = verdict, report.window
            yield _evaluation(asset_key(self._flow, asset), verdict, report.window, of_tick=True)

    def of_run(self, before: TickReport | None) -> Iterator[dg.AssetCheckEvaluation]:
        """What was found last of each check, if the run is to tell: its own ticks', or where they
        were not judged what the tick `before` had.
        """
        if not self._planned:
            return
        if before is not None:
            for asset, verdict in self._found(before):
                self._last.setdefault((asset, verdict.check), (verdict, before.window))
        for (asset, _), (verdict, window) in self._last.items():
            yield _evaluation(asset_key(self._flow, asset), verdict, window)

    def _found(self, report: TickReport) -> Iterator[tuple[str, Verdict]]:
        yield from report.verdicts
        if report.was_read:
            yield from landed_verdicts(self._flow, report.empty, report.noticed)
        if report.committed:
            yield from quarantine_verdicts(self._flow, report.window.key, report.rows)


def flow_checks(
    flow: FlowAsset, shape: FlowShape, runner: TickRunner
) -> tuple[dg.AssetChecksDefinition, ...]:
    """The checks by themselves, as one step; none where nothing is declared.

    In a run of ticks the step finds that they have been judged, and lets go on what waits for them.
    """
    sampled = as_when_launched(f"{flow.name}/sampled", lambda: " ".join(runner.sampled(flow)))
    declared = checks_of(flow, shape, sampled.split())
    warns = {**landed_checks(flow), QUARANTINE: WARNS}
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=asset_key(flow, asset),
            description=says,
            blocking=name not in warns.get(asset, ()),
        )
        for asset, checks in declared.items()
        for name, says in checks.items()
    ]
    if not specs:
        return ()
    assets = {asset_key(flow, asset): asset for asset in declared}

    @dg.multi_asset_check(name=_step(flow), specs=specs, can_subset=True)
    def judge_again(
        context: dg.AssetCheckExecutionContext,
    ) -> Iterator[dg.Output[None] | dg.AssetCheckEvaluation]:
        wanted = [spec for spec in specs if spec.key in context.selected_asset_check_keys]
        if not context.job_def.has_node_named(tick_step(flow)):
            window = _asked(flow, runner, context.run.tags.get(PARTITION))
            for key in dict.fromkeys(spec.asset_key for spec in wanted):
                for verdict in runner.judge_again(flow, window, assets[key]):
                    if any(spec.key == dg.AssetCheckKey(key, verdict.check) for spec in wanted):
                        yield _evaluation(key, verdict, window)
        for spec in wanted:
            yield dg.Output(None, spec.get_python_identifier())

    return (judge_again,)


def _asked(flow: FlowAsset, runner: TickRunner, key: str | None) -> TickWindow:
    """The committed tick that a run of checks judges: the one it names, else the last."""
    done = runner.next_tick(flow)
    calendar = flow.ticks.calendar
    window = calendar.window_of(key) if key else calendar.window(done - 1)
    if window.tick >= done or done == 0:
        what = f"{window.key} is not committed" if done else f"no tick of {flow.name} is committed"
        raise dg.Failure(
            f"{what}, so there is nothing to judge: materialize it first", allow_retries=False
        )
    return window


def _step(flow: FlowAsset) -> str:
    return f"{flow.name}__judge_again"


_SEVERITIES = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}


def _evaluation(
    key: dg.AssetKey, verdict: Verdict, window: TickWindow, *, of_tick: bool = False
) -> dg.AssetCheckEvaluation:
    helps = {"what helps": CURE} if verdict.stops and ROWS in verdict.seen else {}
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=verdict.check,
        passed=verdict.passed,
        description=None if verdict.passed else f"broken: {verdict.says}",
        severity=_SEVERITIES[verdict.severity],
        blocking=verdict.severity == "error",
        partition=window.key if of_tick else None,
        metadata={"tick": window.key, **_shown(verdict.seen), **helps},
    )


def _shown(seen: Mapping[str, Any]) -> dict[str, Any]:
    """What a check saw, as metadata: the UI plots numbers over the ticks."""
    shown = dict(seen)
    for name, value in seen.items():
        if name == ROWS:
            shown[name] = dg.MetadataValue.table([dg.TableRecord(row) for row in value])
        elif not isinstance(value, int | float | str):
            shown[name] = dg.MetadataValue.json(value)
    return shown
