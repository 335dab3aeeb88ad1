"""Starts a flow over: its pipeline and Dagster's records of it are removed together."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.storage.places import files_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote

from ..code_location.records import recorded_tables
from ..code_location.run_process import end_orphans
from ..instance.opening import open_instance
from ..instance.run_tags import flow_of
from ..runner.runner import TickRunner


def what_there_is(flow: FlowAsset, runner: TickRunner) -> list[str]:
    """What starting the flow over removes, in words; nothing where there is nothing."""
    found = []
    directory = runner.directory(flow)
    if directory.exists():
        done = _ticks(directory)
        size = sum(file.stat().st_size for file in files_in(directory))
        found.append(f"{directory}: {done:,} committed ticks, {size / 1e6:,.1f} MB")
    with _records(runner) as instance:
        if instance is not None:
            keys, runs = recorded_tables(instance, flow), _runs(instance, flow)
            if keys or runs:
                found.append(f"Dagster's records of {len(keys)} assets, and {len(runs):,} runs")
    return found


def start_over(flow: FlowAsset, runner: TickRunner) -> None:
    """Removes the flow's pipeline and what Dagster has recorded of it; what has landed stays.

    Ended in between, it is refused to run the flow until this has been done again.

    Raises:
        DataError: a tick of the flow is running (code `state`).
    """
    directory = runner.directory(flow)
    with _records(runner) as instance:
        if instance is not None:
            end_orphans(instance, flow)
            _refuse_running(instance, flow)
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


def _refuse_running(instance: dg.DagsterInstance, flow: FlowAsset) -> None:
    running = [record for record in _runs(instance, flow) if not record.dagster_run.is_finished]
    if running:
        run = running[0].dagster_run
        raise DataError.of(
            "state",
            f"run {run.run_id} of `{flow.name}` is in flight ({run.status.value.lower()})",
            help="wait until it has ended, or end it in the UI (`hydrotick dev`)",
        )


def _ticks(directory: DataPlace) -> int:
    try:
        last = Ledger(directory).last_tick
    except DataError:
        return 0
    return 0 if last is None else last + 1


@contextmanager
def _records(runner: TickRunner) -> Iterator[dg.DagsterInstance | None]:
    """Dagster's instance, if there is one: to look makes none."""
    home = runner.project.dagster_home
    if not home.exists():
        yield None
        return
    with open_instance(home) as instance:
        yield instance


def _runs(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.RunRecord]:
    """The runs of the flow, its job's and those of its assets."""
    return [
        record for record in instance.get_run_records() if flow_of(record.dagster_run) == flow.name
    ]
