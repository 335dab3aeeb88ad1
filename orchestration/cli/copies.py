"""`hydrotick copy` and `hydrotick restore`: a flow, or the whole project, as of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.errors import DataError
from hydro_core.files.local_path import place_at
from hydro_core.machine.wrong_path import refuse_below_file
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copy import copy_pipeline
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.storage.delta import is_table
from hydro_core.storage.remote import DataPlace

from ..code_location.records import end_orphans
from ..copies.copying import copy_project, readers_first
from ..copies.note import CopyNote, note_in
from ..copies.restoring import Restorable, read_again
from ..copies.restoring import restore as put_back
from ..instance.opening import open_existing
from ..project import project
from ..project.console import Console, flow_named
from ..project.logs import open_logs
from ..project.project import Project
from ..runner.runner import TickRunner
from .maintenance import counted
from .ticking import record_committed

_DONE, _UNCHANGED, _CHANGES = 0, 1, 3


def copy(options: Asked) -> int:
    found = project.current()
    open_logs(found.settings.log_format)
    console = Console(options)
    to = place_at(options.to, found.settings.storage)
    if isinstance(to, Path):
        refuse_below_file(to)
    if options.flow is None:
        if str(to) in found.names:
            raise MisuseError(f"`{to}` is a flow: name a directory behind it, or write ./")
        _copy_project(found, to, console)
        return _DONE
    flow = flow_named(options.flow, found)
    if not isinstance(to, Path):
        _copy_project(found, to, console, flow)
        return _DONE
    done = copy_pipeline(found.settings.pipelines / flow.name, to)
    last = flow.ticks.calendar.window(done.last).key
    said = f"{flow.name}: copied up to tick {last}: {counted(done)}, all read again\n"
    said += f"To go back to it: hydrotick restore {to} {flow.name}"
    console.give({"flow": flow.name, "tick": last, "to": str(to), **asdict(done)}, said)
    return _DONE


def _copy_project(
    found: Project, to: DataPlace, console: Console, only: FlowAsset | None = None
) -> None:
    done = copy_project(found, to, only=only)
    note, (files, size) = done.note, done.moved
    new = f"{files:,} of {len(note.hashes):,} files, {size / 1e6:,.1f} MB, are new"
    lines = [f"{len(done.flows)} flow(s) copied to {to}: {new}; all read again"]
    lines += [
        f"  {name}: up to tick {note.flows[name]}: {counted(one)}"
        for name, one in done.flows.items()
    ]
    lines += ["  Dagster's records"] if note.records else []
    lines += [f"  landed: {path}" for path in note.landed]
    lines += done.remarks
    lines.append(f"To go back to it: hydrotick restore {to}")
    told = {
        "to": str(to),
        "made": note.made,
        "flows": [
            {"flow": name, "tick": note.flows[name], **asdict(one)}
            for name, one in done.flows.items()
        ],
        "landed": list(note.landed),
        "records": note.records,
        "files": len(note.hashes),
        "new_files": files,
        "new_bytes": size,
        "notes": list(done.remarks),
    }
    console.give(told, "\n".join(lines))


def restore(options: Asked) -> int:
    found, console = project.current(), Console(options)
    open_logs(found.settings.log_format)
    asked = _asked(options, found)
    runner = TickRunner(found.settings)
    if options.dry_run:
        read_again(asked)
        console.give(*_described(asked, runner, done=False))
        return _CHANGES
    console.say("This restores", *(f"  {line}" for line in _lines(asked, runner)))
    console.say("What was committed since is computed again from what has landed.")
    if not console.agreed("Nothing was changed."):
        return _UNCHANGED
    told = _described(asked, runner, done=True)
    with open_existing(found.settings.dagster_home) as instance:
        for flow in asked.flows:
            if instance is not None:
                end_orphans(instance, flow)
    put_back(asked, found.settings)
    with open_existing(found.settings.dagster_home) as instance:
        # The ticks that are committed now, where Dagster has not these.
        for flow in found.flows if asked.whole else asked.flows:
            if instance is not None and runner.next_tick(flow):
                record_committed(flow, runner, instance)
    console.give(*told)
    return _DONE


def _asked(options: Asked, found: Project) -> Restorable:
    """What is to be restored.

    Raises:
        HydroError: there is no copy, or it has not what is asked for; flows would be ahead of what
            they read (code `config`).
    """
    at = place_at(options.copy, found.settings.storage).absolute()
    note, names = note_in(at), list(dict.fromkeys(options.flows))
    if note is None and not is_table(at / LEDGER):
        raise _wrong(f"there is no copy in {at}", "name the directory that `hydrotick copy` made")
    if note is None and len(names) != 1:
        cure = f"name the flow that it is of: `hydrotick restore {options.copy} FLOW`"
        raise _wrong(f"{at} has the copy of one flow", cure)
    if note is not None and (lacking := [name for name in names if name not in note.flows]):
        has = ", ".join(note.flows)
        raise _wrong(f"the copy in {at} has no flow `{lacking[0]}`", f"it has {has}")
    whole = note is not None and not names
    wanted = names or [name for name in (note.flows if note else ()) if name in found.names]
    if not wanted:
        raise _wrong(f"the copy in {at} has no flow of this project", "name another directory")
    for name in wanted:
        flow_named(name, found)
    order = [flow for flow in readers_first(found.flows) if flow.name in wanted]
    _refuse_ahead(options.copy, note, order, found)
    return Restorable(at, note, tuple(order), whole)


def _refuse_ahead(
    copy: str, note: CopyNote | None, restored: Sequence[FlowAsset], found: Project
) -> None:
    """Refuses where a flow would stay that has read what is taken back."""
    names = [flow.name for flow in restored]
    for flow in found.flows:
        read = [one.flow for one in flow.reads.values() if one.flow in names]
        directory = found.settings.pipelines / flow.name
        if read and flow.name not in names and Ledger(directory).last is not None:
            cure = f"start it over first: `hydrotick reset {flow.name}`"
            if note is not None and flow.name in note.flows:
                cure = f"restore both: `hydrotick restore {copy} {' '.join([*names, flow.name])}`"
            message = f"`{flow.name}` has read what `{read[0]}` gave after the copy"
            raise _wrong(message, cure)


def _lines(asked: Restorable, runner: TickRunner) -> list[str]:
    made = "" if asked.note is None else f" of {asked.note.made}"
    lines = []
    for flow in asked.flows:
        now, then = _last(flow, runner.directory(flow)), _last(flow, asked.source(flow))
        is_now = "no tick is committed" if now is None else f"it is up to {now}"
        lines.append(f"{flow.name}: up to tick {then}, the copy{made}; now {is_now}")
    if asked.records is not None:
        lines.append("Dagster's records")
    return lines


def _described(asked: Restorable, runner: TickRunner, *, done: bool) -> tuple[dict[str, Any], str]:
    """What is restored, as JSON and in words."""
    told = {
        "copy": str(asked.copy),
        "made": None if asked.note is None else asked.note.made,
        "flows": [
            {
                "flow": flow.name,
                "tick": _last(flow, asked.source(flow)),
                "before": _last(flow, runner.directory(flow)),
            }
            for flow in asked.flows
        ],
        "records": asked.records is not None,
        "restored": done,
    }
    lines = [] if done else ["The copy is whole; it would be restored:", *_lines(asked, runner)]
    for flow in asked.flows if done else ():
        last = _last(flow, asked.source(flow))
        lines.append(f"{flow.name}: restored up to tick {last}; the ticks after it are open")
    return told, "\n".join(lines)


def _last(flow: FlowAsset, directory: DataPlace) -> str | None:
    try:
        last = Ledger(directory).last_tick
    except DataError:
        return None
    return None if last is None or last < 0 else flow.ticks.calendar.window(last).key


def _wrong(message: str, cure: str) -> DataError:
    return DataError.of("config", message, help=cure)
