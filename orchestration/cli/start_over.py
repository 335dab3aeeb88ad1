"""`hydrotick reset`: a flow starts over; its pipeline and Dagster's records of it are removed
together.
"""

from __future__ import annotations

import shutil
import uuid

import dagster as dg

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.storage.places import files_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote

from ..code_location.records import end_orphans, recorded_tables
from ..instance.opening import open_existing
from ..instance.run_tags import flow_of
from ..project.console import Console, asked_flow
from ..runner.runner import TickRunner


def reset(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    there = _what_there_is(flow, runner)
    told = {"flow": flow.name, "removed": there}
    if not there:
        console.give(told, f"{flow.name}: there is nothing to remove")
        return 0
    console.say(f"{flow.name}: this removes", *(f"  {line}" for line in there))
    console.say("What has landed stays. There is no way back but a copy (`hydrotick copy`).")
    if not console.named(flow.name, "Nothing was removed."):
        return 1
    _start_over(flow, runner)
    console.give(told, f"{flow.name}: starts over with its first tick")
    return 0


def _what_there_is(flow: FlowAsset, runner: TickRunner) -> list[str]:
    """What starting the flow over removes, in words; nothing where there is nothing."""
    found = []
    directory = runner.directory(flow)
    if directory.exists():
        try:
            last = Ledger(directory).last_tick
        except DataError:
            last = None
        done = 0 if last is None else last + 1
        size = sum(file.stat().st_size for file in files_in(directory))
        found.append(f"{directory}: {done:,} committed ticks, {size / 1e6:,.1f} MB")
    with open_existing(runner.project.dagster_home) as instance:
        if instance is not None:
            keys, runs = recorded_tables(instance, flow), _runs(instance, flow)
            if keys or runs:
                found.append(f"Dagster's records of {len(keys)} assets, and {len(runs):,} runs")
    return found


def _start_over(flow: FlowAsset, runner: TickRunner) -> None:
    """Removes the flow's pipeline and what Dagster has recorded of it; what has landed stays.

    Ended in between, it is refused to run the flow until this has been done again.

    Raises:
        DataError: a tick of the flow is running (code `state`).
    """
    directory = runner.directory(flow)
    with open_existing(runner.project.dagster_home) as instance:
        if instance is not None:
            end_orphans(instance, flow)
            running = (record.dagster_run for record in _runs(instance, flow))
            for run in (run for run in running if not run.is_finished):
                raise DataError.of(
                    "state",
                    f"run {run.run_id} of `{flow.name}` is in flight ({run.status.value.lower()})",
                    help="wait until it has ended, or end it in the UI (`hydrotick dev`)",
                )
        _remove(directory)
        if instance is None:
            return
        for record in _runs(instance, flow):
            instance.delete_run(record.dagster_run.run_id)
        instance.wipe_assets(recorded_tables(instance, flow))


def _remove(directory: DataPlace) -> None:
    """Takes a pipeline's directory away as a whole, and what was left by one who was killed."""
    if isinstance(directory, Remote):
        with WriterLock(directory):
            # Tables without a ledger are refused until they are gone.
            remove_tree(directory / LEDGER)
            keys = [file.key for file in directory.files() if file != directory / LOCK_FILE]
            directory.store.delete(keys)
        return
    if directory.exists():
        with WriterLock(directory):
            directory.rename(directory.with_name(f".{directory.name}.{uuid.uuid4().hex[:8]}"))
    for left in directory.parent.glob(f".{directory.name}.????????"):
        shutil.rmtree(left)


def _runs(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.RunRecord]:
    """The runs of the flow, its job's and those of its assets."""
    return [
        record for record in instance.get_run_records() if flow_of(record.dagster_run) == flow.name
    ]
