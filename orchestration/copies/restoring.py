"""Puts a copy in the place of what is there, after all of it was laid beside and read.

A flow's directory changes places with the one beside it in one step, while the flow's lock is held.
What it replaces stays beside until all flows have been restored. The order is that of copying:
Dagster's records first, then readers before what they read, so what ends the process in between
leaves nothing that is ahead of what it was made of, and restoring again completes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from hydro_core.errors import DataError
from hydro_core.files.transfer import damaged
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.verify import Verified, verify
from hydro_core.spark.store.ledger import state_error
from hydro_core.spark.store.ledger_lock import WriterLock
from hydro_core.spark.store.stored_format import refuse_newer

from ..code_location.records import recorded_tables
from ..instance.copied import restore_records, why_not_copied
from ..instance.opening import open_instance
from ..instance.run_tags import IN_FLIGHT, flow_of
from ..project.settings import ProjectSettings
from ..quality.facts import measure
from .exchanged import exchange
from .note import LANDING, PIPELINES, RECORDS, CopyNote

_BESIDE = ".restored"

_WHO = "hydrotick restore"


@dataclass(frozen=True, slots=True)
class Restorable:
    """What is restored: the flows, readers before what they read, with what a copy has of each."""

    copy: Path
    note: CopyNote | None
    """What the copy says; None: it is the copy of one flow."""
    flows: tuple[FlowAsset, ...]
    whole: bool
    """Whether all that the copy has is restored, Dagster's records among it."""

    def source(self, flow: FlowAsset) -> Path:
        """The copied directory of a flow."""
        if self.note is None:
            return self.copy
        return self.copy / self.note.moment / PIPELINES / flow.name

    @property
    def records(self) -> Path | None:
        """The copied records of Dagster, where they are to be restored."""
        if self.note is None or not (self.whole and self.note.records):
            return None
        return self.copy / self.note.moment / RECORDS


def refuse_damaged(asked: Restorable) -> None:
    """Refuses a copy of which a file that is to be restored is not what it was.

    Raises:
        DataError: it is missing, or damaged (code `state`).
    """
    if asked.note is None:
        return
    parts = [f"{PIPELINES}/{flow.name}" for flow in asked.flows]
    parts += [RECORDS, LANDING] if asked.whole else []
    wrong = damaged(asked.note.kept(asked.copy), parts)
    if wrong:
        more = f", and {len(wrong) - 1:,} more" if wrong[1:] else ""
        raise _damaged(asked, f"{wrong[0]} is not what was copied{more}")


def read_again(asked: Restorable) -> dict[str, Verified]:
    """Reads all of a copy that is to be restored, and gives what is in it, by the flows' names.

    Raises:
        DataError: something of it is damaged, or a newer version has written it (code `state`).
    """
    refuse_damaged(asked)
    return {flow.name: _whole(asked, asked.source(flow), flow) for flow in asked.flows}


def restore(
    asked: Restorable, settings: ProjectSettings, step: Callable[[str], None] = lambda _: None
) -> dict[str, Verified]:
    """Puts the flows of a copy in the place of what is there, and gives what is there now.

    Dagster's records of a flow are restored with it, or go, to be recorded anew.

    Raises:
        DataError: the copy is damaged, or somebody works on a flow (code `state`); nothing was
            changed.
    """
    settings.pipelines_here(_WHO).mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        for flow in asked.flows:
            directory = settings.pipelines_here(_WHO) / flow.name
            directory.mkdir(exist_ok=True)
            held.enter_context(WriterLock(directory).at_work("a restoration"))
        _refuse_runs(asked, settings)
        refuse_damaged(asked)
        found = {}
        for flow in asked.flows:
            step(f"beside {flow.name}")
            found[flow.name] = _laid_beside(asked, flow, settings)
        step(RECORDS)
        _records(asked, settings)
        for flow in asked.flows:
            step(flow.name)
            exchange(_beside(settings, flow), settings.pipelines_here(_WHO) / flow.name)
        step("exchanged")
        _land(asked, settings)
        for flow in asked.flows:
            shutil.rmtree(_beside(settings, flow))
    return found


def _laid_beside(asked: Restorable, flow: FlowAsset, settings: ProjectSettings) -> Verified:
    """Copies what is to be there beside what it replaces, and reads it."""
    beside = _beside(settings, flow)
    shutil.rmtree(beside, ignore_errors=True)
    refuse_newer(asked.source(flow))
    shutil.copytree(asked.source(flow), beside)
    return _whole(asked, beside, flow)


def _whole(asked: Restorable, directory: Path, flow: FlowAsset) -> Verified:
    """What a directory has of a flow, all of which is read."""
    refuse_newer(directory)
    found, source = verify(directory, measure), asked.source(flow)
    if found.problems:
        raise _damaged(asked, found.problems[0].replace(str(directory), str(source)))
    if found.last < 0:
        raise _damaged(asked, f"there is no flow in {source}")
    return found


def _refuse_runs(asked: Restorable, settings: ProjectSettings) -> None:
    """Refuses where Dagster has runs of the flows that go on, or of any where all is restored."""
    if not settings.dagster_home.exists():
        return
    names = {flow.name for flow in asked.flows}
    with open_instance(settings.dagster_home) as instance:
        for record in _going_on(instance):
            run = record.dagster_run
            if flow_of(run) in names or asked.records is not None:
                raise state_error(
                    f"run {run.run_id} of `{flow_of(run)}` is in flight "
                    f"({run.status.value.lower()})",
                    "wait until it has ended, or end it in the UI (`hydrotick dev`)",
                )


def _records(asked: Restorable, settings: ProjectSettings) -> None:
    """Takes Dagster's records back: to the copied ones, or to none of these flows."""
    home, kept = settings.dagster_home, asked.records
    if kept is not None and home.exists() and why_not_copied(home):
        kept = None
    if kept is not None:
        restore_records(kept, home)
        with open_instance(home) as instance:
            for record in _going_on(instance):
                instance.report_run_failed(record.dagster_run, "It was running when it was copied.")
    elif home.exists():
        with open_instance(home) as instance:
            for flow in asked.flows:
                instance.wipe_assets(recorded_tables(instance, flow))


def _going_on(instance: dg.DagsterInstance) -> Sequence[dg.RunRecord]:
    statuses = [dg.DagsterRunStatus(status) for status in IN_FLIGHT]
    return instance.get_run_records(dg.RunsFilter(statuses=statuses))


def _land(asked: Restorable, settings: ProjectSettings) -> None:
    """Lands what the flows landed themselves, where it is not there."""
    if asked.note is None or not asked.whole:
        return
    for path in asked.note.landed:
        table = settings.landing / path
        if not table.exists():
            part = table.with_name(f".{table.name}{_BESIDE}")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(asked.copy / asked.note.moment / LANDING / path, part)
            part.rename(table)


def _beside(settings: ProjectSettings, flow: FlowAsset) -> Path:
    return settings.pipelines_here(_WHO) / f".{flow.name}{_BESIDE}"


def _damaged(asked: Restorable, problem: str) -> DataError:
    cure = "restore an older copy, or start over (`hydrotick reset`); nothing was changed"
    return DataError.of("state", f"the copy in {asked.copy} is damaged: {problem}", help=cure)
