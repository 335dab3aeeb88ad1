"""Puts a copy in the place of what is there, after all of it was laid beside and read.

A flow's directory changes places with the one beside it in one step, while the flow's lock is held.
What it replaces stays beside until all flows have been restored. In a store it is one commit of the
flow's ledger (`hydro_core/spark/pipeline/put_back.py`). The order is that of copying:
Dagster's records first, then readers before what they read, so what ends the process in between
leaves nothing that is ahead of what it was made of, and restoring again completes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath

import dagster as dg

from hydro_core.errors import DataError
from hydro_core.files.transfer import damaged
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.put_back import PutBack
from hydro_core.spark.pipeline.verify import verify
from hydro_core.spark.store.ledger.ledger import state_error
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.spark.store.stored_format import refuse_other_format
from hydro_core.storage.places import carry, files_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote, name_below

from ..code_location.records import recorded_tables
from ..instance.copied import restore_records, why_not_copied
from ..instance.opening import open_existing, open_instance
from ..instance.run_tags import IN_FLIGHT, flow_of
from ..project.settings import ProjectSettings
from ..quality.facts import measure
from .note import LANDING, PIPELINES, RECORDS, CopyNote

_HERE = -100
_EXCHANGE = 2
_NOT_KNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a system, or a file system, says that cannot do it in one step."""


def exchange(one: Path, other: Path) -> None:
    """Gives two directories of one file system each other's names.

    It is one step where Linux can do that; elsewhere there is a moment in which `other` is not
    there.

    Raises:
        OSError: one of them is not there, or may not be renamed.
    """
    if _exchanged(one, other):
        return
    between = one.with_name(f"{one.name}.between")
    other.rename(between)
    one.rename(other)
    between.rename(one)


def _exchanged(one: Path, other: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _NOT_KNOWN:
        return False
    raise OSError(problem, os.strerror(problem), str(one), None, str(other))


_BESIDE = ".restored"
_WORK = "a restoration"
_LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class Restorable:
    """What is restored: the flows, readers before what they read, with what a copy has of each."""

    copy: DataPlace
    note: CopyNote | None
    """What the copy says; None: it is the copy of one flow."""
    flows: tuple[FlowAsset, ...]
    whole: bool
    """Whether all that the copy has is restored, Dagster's records among it."""

    def source(self, flow: FlowAsset) -> DataPlace:
        """The copied directory of a flow."""
        if self.note is None:
            return self.copy
        return self.copy / self.note.moment / PIPELINES / flow.name

    @property
    def records(self) -> DataPlace | None:
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


def read_again(asked: Restorable) -> None:
    """Reads all of a copy that is to be restored.

    Raises:
        DataError: something of it is damaged, or a newer version has written it (code `state`).
    """
    refuse_damaged(asked)
    for flow in asked.flows:
        _refuse_broken(asked, asked.source(flow), flow)


def restore(
    asked: Restorable, settings: ProjectSettings, step: Callable[[str], None] = lambda _: None
) -> None:
    """Puts the flows of a copy in the place of what is there.

    Dagster's records of a flow are restored with it, or go, to be recorded anew.

    Raises:
        DataError: the copy is damaged, or somebody works on a flow (code `state`); nothing was
            changed.
    """
    with ExitStack() as held:
        work = [_InPlace(asked, flow, settings, held, step) for flow in asked.flows]
        _refuse_runs(asked, settings)
        refuse_damaged(asked)
        for one in work:
            step(f"beside {one.flow.name}")
            one.stage()
        step(RECORDS)
        _records(asked, settings)
        for one in work:
            step(one.flow.name)
            one.exchange()
        step("exchanged")
        _land(asked, settings)
        for one in work:
            one.end()


class _InPlace:
    """The restoration of one flow: its right to write is held until the stack is left."""

    def __init__(
        self,
        asked: Restorable,
        flow: FlowAsset,
        settings: ProjectSettings,
        held: ExitStack,
        step: Callable[[str], None],
    ) -> None:
        self.flow, self._asked = flow, asked
        self._to = settings.pipelines / flow.name
        self._in_store: PutBack | None = None
        if isinstance(self._to, Remote):
            self._in_store = PutBack(asked.source(flow), self._to, step, _WORK)
            held.enter_context(self._in_store)
        else:
            self._to.mkdir(parents=True, exist_ok=True)
            held.enter_context(WriterLock(self._to).at_work(_WORK))

    def stage(self) -> None:
        """Copies what is to be there beside what it replaces, and reads it."""
        source = self._asked.source(self.flow)
        refuse_other_format(source)
        if self._in_store is not None:
            _refuse_broken(self._asked, source, self.flow)
            self._in_store.prepare()
            return
        remove_tree(self._staged, ignore_errors=True)
        _laid(source, self._staged)
        _refuse_broken(self._asked, self._staged, self.flow)

    def exchange(self) -> None:
        if self._in_store is not None:
            self._in_store.commit()
        elif isinstance(self._to, Path):
            exchange(self._staged, self._to)

    def end(self) -> None:
        """Removes what was replaced."""
        if self._in_store is not None:
            self._in_store.settle()
        else:
            remove_tree(self._staged)

    @property
    def _staged(self) -> Path:
        assert isinstance(self._to, Path)
        return self._to.with_name(f".{self.flow.name}{_BESIDE}")


def _laid(source: DataPlace, to: Path) -> None:
    """Copies a folder of a copy to a directory that is not there."""
    if isinstance(source, Path):
        shutil.copytree(source, to)
        return
    to.mkdir(parents=True)
    for file in files_in(source):
        target = to / name_below(file, source)
        target.parent.mkdir(parents=True, exist_ok=True)
        carry(file, target)


def _refuse_broken(asked: Restorable, directory: DataPlace, flow: FlowAsset) -> None:
    """Reads all that a directory has of a flow, and refuses what is not whole."""
    refuse_other_format(directory)
    found, source = verify(directory, measure), asked.source(flow)
    if found.problems:
        raise _damaged(asked, found.problems[0].replace(str(directory), str(source)))
    if found.last < 0:
        raise _damaged(asked, f"there is no flow in {source}")


def _refuse_runs(asked: Restorable, settings: ProjectSettings) -> None:
    """Refuses where Dagster has runs of the flows that go on, or of any where all is restored."""
    names = {flow.name for flow in asked.flows}
    with open_existing(settings.dagster_home) as instance:
        for record in _going_on(instance) if instance is not None else ():
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
        return
    with open_existing(home) as instance:
        for flow in asked.flows:
            if instance is not None:
                instance.wipe_assets(recorded_tables(instance, flow))


def _going_on(instance: dg.DagsterInstance) -> Sequence[dg.RunRecord]:
    statuses = [dg.DagsterRunStatus(status) for status in IN_FLIGHT]
    return instance.get_run_records(dg.RunsFilter(statuses=statuses))


def _land(asked: Restorable, settings: ProjectSettings) -> None:
    """Lands what the flows landed themselves, where it is not there."""
    if asked.note is None or not asked.whole:
        return
    for path in asked.note.landed:
        table, source = settings.landed(path), asked.copy / asked.note.moment / LANDING / path
        if isinstance(table, Remote):
            _landed_in_store(source, table)
        elif not table.exists():
            part = table.with_name(f".{table.name}{_BESIDE}")
            shutil.rmtree(part, ignore_errors=True)
            _laid(source, part)
            part.rename(table)


def _landed_in_store(source: DataPlace, table: Remote) -> None:
    """The first entry of the table's log comes last: without it there is no table."""
    first = f"{_LOG}/{0:020}.json"
    if (table / first).is_file():
        return
    files = {PurePath(name_below(file, source)).as_posix(): file for file in files_in(source)}
    entries = sorted((name for name in files if name.startswith(_LOG)), reverse=True)
    for name in [*(files.keys() - set(entries)), *entries]:
        carry(files[name], table / name)


def _damaged(asked: Restorable, problem: str) -> DataError:
    cure = "restore an older copy, or start over (`hydrotick reset`); nothing was changed"
    return DataError.of("state", f"the copy in {asked.copy} is damaged: {problem}", help=cure)
