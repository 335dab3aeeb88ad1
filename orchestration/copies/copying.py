"""Copies a project while its ticks run, as a whole or not at all.

Whoever reads something is copied before what it reads: Dagster's records before the flows that
they speak of, a flow before those whose outputs it reads, all flows before what has landed. So in
the copy nothing is ahead of what it was made of, and what is behind goes on from there, as after a
pause of its own. No tick waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from hydro_core.errors import DataError
from hydro_core.files.local_path import local_path
from hydro_core.files.transfer import Transfer
from hydro_core.machine.delta_path import refuse_path
from hydro_core.machine.faults import faults_as_errors
from hydro_core.machine.locks import lock_at
from hydro_core.project.flow_asset import FlowAsset, Landing
from hydro_core.spark.pipeline.copy import copy_into, copy_table
from hydro_core.spark.pipeline.verify import Verified
from hydro_core.spark.store.ledger.ledger import Ledger, state_error
from hydro_core.storage.delta import opened_table
from hydro_core.storage.lease import Lease
from hydro_core.storage.places import entries_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote, is_remote

from ..instance.copied import copy_records, why_not_copied
from ..project.project import Project
from ..project.settings import ProjectSettings
from .note import (
    LANDING,
    MOMENT,
    NOTE,
    PIPELINES,
    RECORDS,
    CopyNote,
    begin_note,
    copied_meanwhile,
    left_in,
    note_in,
    write_note,
)

_LOCK, _LOG = "_lock", "_delta_log"

OnPart = Callable[[str], None]
"""Called with the name of each part of a copy before it is made; tests end the process there."""


@dataclass(frozen=True, slots=True)
class ProjectCopied:
    """What was copied: what the copy says of itself, what was found in each flow, how many files
    and bytes the copy before did not have, and what else is to be known.
    """

    note: CopyNote
    flows: dict[str, Verified]
    moved: tuple[int, int]
    remarks: tuple[str, ...]


def copy_project(
    found: Project,
    to: DataPlace,
    step: OnPart = lambda _: None,
    only: FlowAsset | None = None,
) -> ProjectCopied:
    """Copies all flows, what they have landed themselves, and Dagster's records to a directory or
    a folder of a store.

    A copy that is there is replaced in one step, and the files that it has are not copied again.

    Args:
        found: the project.
        to: where the copy is.
        step: called with the name of each part before it is made.
        only: one flow, which is copied alone.

    Raises:
        DataError: there is nothing to copy, or something of it is broken (code `state`); the
            directory is in use for something else (`config`).
    """
    to = to.absolute()
    before = _refuse_place(found, to)
    # What a flow reads whose asset is wrong is not known, and it comes before the others.
    of_all = [*(one.name for one in found.broken), *(f.name for f in readers_first(found.flows))]
    names = list(dict.fromkeys(of_all)) if only is None else [only.name]
    pipelines = found.settings.pipelines
    flows = [name for name in names if Ledger(pipelines / name).last is not None]
    if not flows:
        raise state_error("no flow has committed a tick", "run some ticks first")
    to.mkdir(parents=True, exist_ok=True)
    lock = lock_at(to / _LOCK)
    if not lock.take():
        raise copied_meanwhile(to)
    try:
        moment = to / datetime.now(UTC).strftime(MOMENT)
        begun = begin_note(to, moment.name)
        for left in left_in(to, before):
            remove_tree(left)
        moment.mkdir()
        transfer = Transfer(moment, None if before is None else before.kept(to))
        with faults_as_errors(f"the copy in {to}"):
            done = _copied(found, flows, transfer, step, whole=only is None)
        step("written")
        write_note(to, done.note, begun)
        step("named")
        for left in left_in(to, done.note):
            # What another makes by now is not there to be removed.
            if not isinstance(lock, Lease) or lock.is_kept():
                remove_tree(left)
        return done
    finally:
        lock.release()


def _copied(
    found: Project, names: Sequence[str], transfer: Transfer, step: OnPart, *, whole: bool
) -> ProjectCopied:
    settings, to = found.settings, transfer.directory
    step(RECORDS)
    remarks = [*_records(settings, transfer), *_unknown_of(found)] if whole else []
    (to / PIPELINES).mkdir()
    flows = {}
    for name in names:
        step(name)
        source = settings.pipelines / name
        flows[name] = copy_into(source, to / PIPELINES / name, put=transfer.put)
    landed = []
    for path in _landed(found) if whole else ():
        step(str(path))
        table = settings.landed(str(path))
        version = opened_table(table).version()
        copy_table(table, to / LANDING / path, version, transfer.put)
        landed.append(path.as_posix())
    calendars = {flow.name: flow.ticks.calendar for flow in found.flows}
    keys = {
        name: calendars[name].window(one.last).key if name in calendars else str(one.last)
        for name, one in flows.items()
    }
    made = datetime.now(UTC).isoformat(timespec="seconds")
    hashes = transfer.done().hashes
    records = any(name.startswith(f"{RECORDS}/") for name in hashes)
    note = CopyNote(to.name, made, keys, tuple(landed), records, hashes)
    return ProjectCopied(note, flows, transfer.moved(), tuple(remarks))


def _refuse_place(found: Project, to: DataPlace) -> CopyNote | None:
    """The copy that is there, if any; refused is what is something else."""
    refuse_path(to)
    note, problem = note_in(to), None
    settings = found.settings
    sources = (settings.home.absolute(), settings.pipelines, settings.landed("."))
    within = [home for home in sources if _is_within(to, home)]
    if within:
        problem = f"{to} is within {within[0]}, which is to be copied"
    elif note is None and to.exists() and not _is_free(to):
        problem = f"{to} is there already, and no copy of a project"
    elif note is not None and not set(note.flows) & set(found.names):
        listed = ", ".join(f"`{name}`" for name in note.flows)
        problem = f"{to} has the copy of another project, with the flows {listed}"
    if problem is not None:
        cure = "name a directory that is not there, or one with a copy of this project"
        raise DataError.of("config", problem, help=cure)
    return note


def _is_within(to: DataPlace, home: DataPlace) -> bool:
    """Whether one place is the other, or in it."""
    if isinstance(to, Remote) and isinstance(home, Remote):
        same = (to.kind, to.bucket) == (home.kind, home.bucket)
        return same and f"{to.key}/".startswith(f"{home.key}/")
    return isinstance(to, Path) and isinstance(home, Path) and (to == home or home in to.parents)


def _is_free(to: DataPlace) -> bool:
    """Whether nothing is there but what a copy that was cut off has left."""
    if not to.is_dir():
        return False
    left = {*left_in(to, None), to / _LOCK, to / f".{NOTE}", to / NOTE}
    return all(place in left for place in entries_in(to))


def readers_first(flows: Sequence[FlowAsset]) -> list[FlowAsset]:
    """The flows, each before those that it reads."""
    named = {flow.name: flow for flow in flows}
    ordered: dict[str, FlowAsset] = {}
    for flow in flows:
        _fed_first(flow, named, ordered)
    return list(reversed(ordered.values()))


def _fed_first(
    flow: FlowAsset, named: Mapping[str, FlowAsset], ordered: dict[str, FlowAsset]
) -> None:
    for read in flow.reads.values():
        if read.flow in named and read.flow not in ordered:
            _fed_first(named[read.flow], named, ordered)
    ordered.setdefault(flow.name, flow)


def _records(settings: ProjectSettings, transfer: Transfer) -> Iterator[str]:
    """Copies Dagster's records, or says why not."""
    home = settings.dagster_home
    if not home.exists():
        return
    why = why_not_copied(home)
    if why:
        yield why
    else:
        copy_records(home, transfer.directory / RECORDS, transfer.put)


def _unknown_of(found: Project) -> Iterator[str]:
    for one in found.broken:
        yield f"the asset of `{one.name}` is wrong: what it reads may be of an earlier moment"
    known = {place.name for place in entries_in(found.settings.pipelines)}
    for name in sorted(known - set(found.names)):
        if name.startswith("."):
            continue
        yield f"`{name}` is no flow of the project any more, and is not copied"


def _landed(found: Project) -> list[PurePosixPath]:
    """The tables that flows land themselves, below the landing."""
    paths = {
        PurePosixPath(local_path(where.path))
        for flow in found.flows
        if flow.land is not None
        for where in flow.inputs.values()
        if isinstance(where, Landing) and not is_remote(where.path)
    }
    within = (path for path in paths if not path.is_absolute() and ".." not in path.parts)
    landed = found.settings.landed
    return sorted(path for path in within if (landed(str(path)) / _LOG).is_dir())
