"""A person is forgotten: a pipeline is as if the rows that have a value had never landed.

What has landed must not have the rows any more: that is proved by reading it. Then the committed
ticks from the first that had read one of them are corrected, which one row of the ledger makes
count, and the history of all tables goes. Whatever ends the process in between, running the same
again ends it: it looks for what is left, in the landings and in the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hydro_core.errors import DataError, InfrastructureError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.remote import DataPlace

from ..flows.landed_past import LandingReads, look
from ..flows.late_arrivals import noticed
from .correction import Log, overtaken

if TYPE_CHECKING:
    from hydro_core.spark.inputs.differences import Differences

    from .runner import TickRunner

WhoseRows = Mapping[str, tuple[str, Any]]
"""Of inputs the column that tells whose a row is, and the value there."""


@dataclass(frozen=True, slots=True)
class LandedRows:
    """The rows of an input that have the value."""

    files: Mapping[DataPlace, int]
    """How many each file has."""
    is_delta: bool = False
    by_flow: str = ""
    """The flow whose output it is."""
    removed: str = ""
    """The ticks that have lost rows since they were read, in words: these are taken for theirs."""

    @property
    def rows(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What there is of the rows, and what would be done."""

    runner: TickRunner
    flow: FlowAsset
    values: WhoseRows
    done: int
    """So many ticks are committed."""
    landed: Mapping[str, LandedRows]
    stored: Mapping[str, int]
    """How many files of each table hold the value, as far as that can be told."""
    first: int | None = None
    """The first tick that has read rows which have been removed since; None: none has."""
    reading: LandingReads | None = None
    """The landings as they were looked at."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is known to be there."""
        landed = any(one.rows for one in self.landed.values())
        return not landed and not self.stored and self.first is None

    def refuse_landed(self) -> None:
        """Refuses while landed files or outputs of other flows have the rows.

        Raises:
            DataError: which files they are, or which flow is first (code `input`).
        """
        lines, cures = [], []
        for name, one in self.landed.items():
            if one.rows and one.by_flow:
                lines.append(f"  {name}: {one.rows:,} row(s) of the output of `{one.by_flow}`")
                cures.append(f"forget them in `{one.by_flow}` first")
            elif one.rows:
                lines += [f"  {name}: {n:,} row(s) in {file}" for file, n in one.files.items()]
                table = "delete the rows from the Delta table, and vacuum it"
                cures.append(table if one.is_delta else "take the rows out of the files")
        if lines:
            message = "what has landed has the rows, and would bring them back:\n"
            cure = "; ".join(dict.fromkeys(cures)) + "; then run this again. Nothing was changed"
            raise DataError.of("input", message + "\n".join(lines), help=cure)


def forget_plan(runner: TickRunner, flow: FlowAsset, values: WhoseRows) -> ForgetPlan:
    """What a flow has of the rows that have some values; nothing is changed.

    Raises:
        HydroError: a landing or a table cannot be read; or rows are gone of which nobody can tell
            whose they were (code `state`).
    """
    from hydro_core.spark.pipeline.forgetting import ForgottenValue
    from hydro_core.spark.pipeline.rework import first_again

    done, sources = runner.next_tick(flow), runner.landings(flow).sources
    reading = look(runner, flow) if done else None
    lost = {} if reading is None else _lost_rows(runner, flow, reading, values)
    landed, stored = dict[str, LandedRows](), Counter[str]()
    with faults_as_errors(f"the landings of `{flow.name}`", vanished=True):
        for name, (column, value) in values.items():
            source, where = sources[name], flow.inputs[name]
            theirs = ForgottenValue(column, source.columns[column], value)
            scan = None if reading is None else reading.seen[name].scan
            if reading is None and source.is_there:
                scan = source.scan()
            files = {} if scan is None else theirs.landed(scan)
            is_delta = scan is not None and scan.fileset.version is not None
            by_flow = where.flow if isinstance(where, FlowOutput) else ""
            removed = _in_words(flow, lost[name]) if name in lost else ""
            landed[name] = LandedRows(files, is_delta, by_flow, removed)
            stored |= Counter(theirs.stored(runner.directory(flow)))
    firsts = [tick for off in lost.values() for tick in _ticks(off)]
    first = first_again(runner.pipeline(flow), min(firsts)) if firsts else None
    return ForgetPlan(runner, flow, values, done, landed, stored, first, reading)


def forget(plan: ForgetPlan, log: Log) -> int | None:
    """Forgets the rows, and gives the number of the last commit; None: no tick is committed.

    Raises:
        HydroError: what has landed has the rows, a check fails on what is computed again, or
            another writer is at work; then the tables are as they were.
    """
    from hydro_core.spark.pipeline.forgetting import erase

    plan.refuse_landed()
    runner, flow = plan.runner, plan.flow
    pipeline = runner.pipeline(flow)
    if not plan.done:
        if pipeline.ledger.exists:
            with pipeline.lock.at_work("a deletion of rows"):
                # A tick that was killed may have left rows in tables that no commit names.
                pipeline.store.recover(None)
        return None
    with (
        faults_as_errors(f"the pipeline in {pipeline.directory}"),
        pipeline.lock.at_work("a deletion of rows"),
    ):
        now = forget_plan(runner, flow, plan.values)
        now.refuse_landed()
        if (now.first, now.done) != (plan.first, plan.done):
            raise overtaken(flow.name)
        if now.first is not None:
            _correct(now, now.first, log)
        erase(pipeline)
        runner.deployments.forget(flow, timedelta(0), runner.now())
    last = runner.deployments.ledger(flow).last
    return None if last is None else last.sequence


def _correct(plan: ForgetPlan, first: int, log: Log) -> None:
    window = plan.flow.ticks.calendar.window(first)
    *_, report = plan.runner.correct(plan.flow, window, log, plan.reading)
    if not report.committed:
        failed = DataError.of(
            "runtime",
            f"tick {report.window.key} of `{plan.flow.name}` failed when it was computed again "
            f"without the rows: {report.problem}",
            help=f"{report.cure}. What has landed is without the rows; run this again then",
        )
        raise failed if report.judged else InfrastructureError(*failed.diagnostics)


def _lost_rows(
    runner: TickRunner, flow: FlowAsset, reading: LandingReads, values: WhoseRows
) -> Mapping[str, Differences]:
    """By input of those that have the column, what went since it was read: it is taken for theirs.

    Raises:
        DataError: rows went before that, or of other inputs, and would be lost as well (`state`).
    """
    from hydro_core.spark.inputs.differences import saved_differences

    lost: dict[str, Differences] = {}
    others: dict[str, Differences] = {}
    reads = runner.reads(flow)
    for name, view in reading.seen.items():
        if name not in reads or not view.differences.has_removed:
            continue
        if name not in values:
            others[name] = _removed(view.differences)
        elif isinstance(flow.inputs[name], FlowOutput):
            # What another flow gives now is right, whenever it gave something else.
            lost[name] = _removed(view.differences)
        else:
            read, directory = reads[name], runner.directory(flow)
            known = saved_differences(directory, read.acknowledged_differences or read.differences)
            lost[name] = _removed(view.differences, known)
            # Whoever had removed other rows before has not said whether they may go.
            others[name] = _removed(view.differences, lost[name])
    first = min((tick for off in lost.values() for tick in _ticks(off)), default=None)
    for name, off in others.items():
        since = 0 if name in values else first
        ticks = [tick for tick in _ticks(off) if since is not None and tick >= since]
        if ticks:
            key, said = flow.ticks.calendar.window(min(ticks)).key, _in_words(flow, off)
            raise DataError.of(
                "state",
                f"rows of `{name}` that committed ticks of `{flow.name}` have read are not landed "
                f"any more, and whose they were cannot be told: {said}",
                help=f"land them again; or take them out: `hydrotick correct {flow.name} "
                f"--from {key}` computes these ticks without them; then run this again",
            )
    return {name: off for name, off in lost.items() if off.has_removed}


def _removed(differences: Differences, but: Differences | None = None) -> Differences:
    """The removed rows and files, acknowledged or not, without those of other differences."""
    from hydro_core.spark.inputs.differences import (
        NO_DIFFERENCES,
        Differences,
        RowState,
        differing_rows,
    )
    from hydro_core.spark.inputs.snapshot import HashedRows

    but = but or NO_DIFFERENCES
    removed = differences.removed.without(but.removed.hashes)
    rows = differing_rows(HashedRows(removed.ticks, removed.hashes), RowState.REMOVED)
    known = {(file.identity, file.first, file.last) for file in but.files}
    return Differences(
        replace(rows, arrived=removed.arrived),
        files=tuple(
            replace(file, state=RowState.REMOVED)
            for file in differences.files
            if file.is_removed and (file.identity, file.first, file.last) not in known
        ),
    )


def _ticks(off: Differences) -> Sequence[int]:
    """The ticks that have read what is gone."""
    return [*off.removed.arrived.tolist(), *(max(file.first, file.arrived) for file in off.files)]


def _in_words(flow: FlowAsset, off: Differences) -> str:
    return noticed(flow.ticks.calendar, {}, off.changed).says_changed
