"""`hydrotick copy` and `hydrotick restore`: pipelines as of a moment.

A copy is a folder for each flow and `copy.json`, which is written last: without it there is no
copy. Readers are copied and restored before what they read, so nothing is ever ahead of its input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.errors import DataError
from hydro_core.machine.faults import faults_as_errors, raise_outage, refuse_below_file, refuse_path
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import (
    copy_pipeline,
    damaged_files,
    hashes_of,
    restore_pipeline,
)
from hydro_core.spark.store.layout import refuse_other_format, this_version
from hydro_core.spark.store.ledger.ledger import Ledger, state_error
from hydro_core.storage.places import entries_in, write_whole
from hydro_core.storage.remote import DataPlace, place_at
from hydro_core.types.records import as_record, of_record

from ..code_location.records import end_orphans, recorded_tables
from ..instance.opening import open_existing
from ..project import project
from ..project.console import Console, flow_named
from ..project.logs import open_logs
from ..project.project import Project
from ..runner.runner import TickRunner
from .backfill import record_committed
from .maintenance import counted

NOTE = "copy.json"
_UNCHANGED, _CHANGES = 1, 3


@dataclass(frozen=True, slots=True)
class CopyNote:
    """The content of `copy.json`."""

    hydrotick: str
    made: str
    flows: Mapping[str, str]
    """The key of the last committed tick, by flow."""
    hashes: Mapping[str, Mapping[str, str]]
    """The hash of each file, by flow and name."""


def copy(options: Asked) -> Result:
    """Copies all flows, or one, to a folder that is new or empty."""
    found = project.current()
    open_logs(found.settings.log_format)
    to = place_at(options.to, found.settings.storage).absolute()
    if isinstance(to, Path):
        refuse_below_file(to)
    if options.flow is None and options.to in found.names:
        raise MisuseError(f"`{options.to}` is a flow: name a directory behind it, or write ./")
    _refuse_used(to, found)
    with faults_as_errors(f"the copy in {to}"):
        to.mkdir(parents=True, exist_ok=True)
    pipelines = found.settings.pipelines
    names = [flow_named(options.flow, found).name] if options.flow else _readers_first(found)
    names = [name for name in names if Ledger(pipelines / name).last is not None]
    if not names:
        raise state_error("no flow has committed a tick", "run some ticks first")
    with faults_as_errors(f"the copy in {to}"):
        copied = {name: copy_pipeline(pipelines / name, to / name) for name in names}
        made = datetime.now(UTC).isoformat(timespec="seconds")
        keys = {name: _key(found, name, one.last) for name, one in copied.items()}
        hashes = {name: hashes_of(to / name) for name in names}
        note = CopyNote(this_version(), made, keys, hashes)
        write_whole(to / NOTE, json.dumps(as_record(note), indent=1))
    flows = [{"flow": name, "tick": keys[name], **asdict(one)} for name, one in copied.items()]
    lines = [f"{name}: copied up to tick {keys[name]}: {counted(copied[name])}" for name in names]
    lines.append(f"To go back to it: hydrotick restore {options.to}")
    return Result({"to": str(to), "made": made, "flows": flows}, lines)


def restore(options: Asked) -> Result:
    """Replaces the pipelines of all flows of a copy, or of some, by it."""
    found, console = project.current(), Console(options)
    open_logs(found.settings.log_format)
    at = place_at(options.copy, found.settings.storage).absolute()
    note = _read_note(at)
    flows = _asked_flows(options, note, found)
    for flow in flows:
        if damaged := damaged_files(at / flow.name, note.hashes[flow.name]):
            raise state_error(
                f"the copy in {at} is damaged: {damaged[0]} is not what was copied",
                "restore another copy, or start over (`hydrotick reset`); nothing was changed",
            )
        refuse_other_format(at / flow.name)
    runner = TickRunner(found.settings)
    keys = {flow.name: note.flows[flow.name] for flow in flows}
    record = {"copy": str(at), "made": note.made, "flows": keys}
    lines = [f"{name}: up to tick {key}, the copy of {note.made}" for name, key in keys.items()]
    if options.dry_run:
        text = ("The copy is whole; it would be restored:", *lines)
        return Result({**record, "restored": False}, text, _CHANGES)
    console.say("This restores", *(f"  {line}" for line in lines))
    console.say("What was committed since is computed again from what has landed.")
    if not console.agreed("Nothing was changed."):
        return Result(code=_UNCHANGED)
    for flow in flows:
        with open_existing(runner.project.dagster_home) as instance:
            if instance is not None:
                end_orphans(instance, flow)
            restore_pipeline(at / flow.name, note.hashes[flow.name], runner.directory(flow))
            if instance is not None:
                # Dagster has the committed ticks then, and no others.
                instance.wipe_assets(recorded_tables(instance, flow))
                record_committed(flow, runner, instance)
    done = (
        f"{n}: restored up to tick {key}; the ticks after it are open" for n, key in keys.items()
    )
    return Result({**record, "restored": True}, done)


def _refuse_used(to: DataPlace, found: Project) -> None:
    refuse_path(to)
    sources = (found.settings.pipelines, found.settings.landed("."))
    within = [home for home in sources if f"{to}/".startswith(f"{home}/")]
    problem = f"{to} is within {within[0]}, which is to be copied" if within else ""
    if not problem and (to.is_file() or entries_in(to)):
        problem = f"{to} is there already, and not an empty folder"
    if problem:
        cure = "name a directory that is not there: each copy has one of its own"
        raise DataError.of("config", problem, help=cure)


def _readers_first(found: Project) -> list[str]:
    """The names of all flows, each before those that it reads; what one reads whose asset is wrong
    is not known, so it comes first.
    """
    names = {flow.name for flow in found.flows}
    read = {f.name: {one.flow for one in f.reads.values()} & names for f in found.flows}
    broken = [one.name for one in found.broken if one.name not in names]
    return [*broken, *reversed([*TopologicalSorter(read).static_order()])]


def _read_note(at: DataPlace) -> CopyNote:
    try:
        note: CopyNote = of_record(CopyNote, json.loads((at / NOTE).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        cure = "name the directory that `hydrotick copy` made; one without this file is half a copy"
        raise _wrong(f"there is no copy in {at}: it has no {NOTE}", cure) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise_outage(problem, str(at))
        raise state_error(
            f"{at / NOTE} cannot be read: {problem}",
            "restore another copy; a folder beside the file is the directory of a pipeline",
        ) from None
    return note


def _asked_flows(options: Asked, note: CopyNote, found: Project) -> Sequence[FlowAsset]:
    """The flows that are to be restored, readers first.

    Raises:
        DataError: the copy does not have one, or a flow would be ahead of what it reads (`config`).
    """
    if lacking := [name for name in options.flows if name not in note.flows]:
        has = f"it has {', '.join(note.flows)}"
        raise _wrong(f"the copy in {options.copy} has no flow `{lacking[0]}`", has)
    names = options.flows or [name for name in note.flows if name in found.names]
    if not names:
        raise _wrong(f"the copy in {options.copy} has no flow of this project", "name another one")
    for flow in found.flows:
        read = [one.flow for one in flow.reads.values() if one.flow in names]
        is_stored = Ledger(found.settings.pipelines / flow.name).last is not None
        if read and flow.name not in names and is_stored:
            cure = f"start it over first: `hydrotick reset {flow.name}`"
            if flow.name in note.flows:
                both = " ".join([*names, flow.name])
                cure = f"restore both: `hydrotick restore {options.copy} {both}`"
            raise _wrong(f"`{flow.name}` has read what `{read[0]}` gave after the copy", cure)
    return [flow_named(name, found) for name in _readers_first(found) if name in names]


def _key(found: Project, name: str, last: int) -> str:
    calendars = {flow.name: flow.ticks.calendar for flow in found.flows}
    return calendars[name].window(last).key if name in calendars else str(last)


def _wrong(message: str, cure: str) -> DataError:
    return DataError.of("config", message, help=cure)
