"""Upkeep of stored pipelines: `hydrotick compact` and `reset`, and `status --verify`."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.storage.places import files_in, remove_tree
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.records import as_record

from ..project.console import Console, asked_flow

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.copies import VerifyReport

    from ..flows.flows import Flows
    from ..runner.runner import TickRunner


def compact(options: Asked) -> Result:
    from ..runner.runner import TickRunner

    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    if runner.deployments.active(flow) is None:
        return Result({"flow": flow.name, "compacted": False}, f"{flow.name}: nothing to do")
    runner.pipeline(flow).compact(options.keep_hours)
    gone = runner.deployments.forget(flow, timedelta(hours=options.keep_hours), runner.now())
    lines = [f"{flow.name}: compacted"]
    if gone:
        listed = ", ".join(map(str, gone))
        lines.append(f"  deployments that were given up before are removed: {listed}")
    record = {"flow": flow.name, "compacted": True, "removed_deployments": list(gone)}
    return Result(record, lines)


def verified(asked: Iterable[FlowAsset], flows: Flows) -> Result:
    """Compares the tables of each flow with its ledger; the exit code is 1 unless all are whole."""
    from hydro_core.spark.pipeline.copies import verify

    from ..quality.judge import measure

    found = {flow.name: verify(flows.directory(flow), measure) for flow in asked}
    lines = []
    for name, one in found.items():
        whole = f"whole: {counted(one)}" if one.last >= 0 else "nothing is committed"
        lines.append(f"{name}: {f'{len(one.problems)} problem(s)' if one.problems else whole}")
        lines += [f"  {line}" for line in (*one.problems, *one.notes)]
    record = {"flows": [{"flow": name, **as_record(one)} for name, one in found.items()]}
    return Result(record, lines, int(any(one.problems for one in found.values())))


def counted(found: VerifyReport) -> str:
    return (
        f"{found.tables:,} tables, {found.files:,} files, {found.rows:,} rows, "
        f"{found.bytes / 1e6:,.1f} MB"
    )


def reset(options: Asked) -> Result:
    from ..runner.runner import TickRunner

    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    stored = _stored(flow, runner)
    record = {"flow": flow.name, "removed": stored}
    if not stored:
        return Result(record, f"{flow.name}: there is nothing to remove")
    console.say(f"{flow.name}: this removes", *(f"  {line}" for line in stored))
    console.say("What has landed stays. There is no way back but a copy (`hydrotick copy`).")
    if not console.named(flow.name, "Nothing was removed."):
        return Result(code=1)
    _start_over(flow, runner)
    return Result(record, f"{flow.name}: starts over with its first tick")


def _stored(flow: FlowAsset, runner: TickRunner) -> list[str]:
    """Everything that starting the flow over removes, in words."""
    from ..code_location.records import all_runs, recorded_tables
    from ..instance.opening import open_existing

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
            keys, runs = recorded_tables(instance, flow), [*all_runs(flow, instance)]
            if keys or runs:
                found.append(f"Dagster's records of {len(keys)} assets, and {len(runs):,} runs")
    return found


def _start_over(flow: FlowAsset, runner: TickRunner) -> None:
    """Removes the flow's pipeline and what Dagster has recorded of it; what has landed stays.

    Ended in between, it is refused to run the flow until this has been done again.

    Raises:
        DataError: a tick of the flow is running (code `state`).
    """
    from ..code_location.records import all_runs, end_orphans, recorded_tables
    from ..instance.opening import open_existing

    directory = runner.directory(flow)
    with open_existing(runner.project.dagster_home) as instance:
        if instance is not None:
            end_orphans(instance, flow)
            running = (record.dagster_run for record in all_runs(flow, instance))
            for run in (run for run in running if not run.is_finished):
                raise DataError.of(
                    "state",
                    f"run {run.run_id} of `{flow.name}` is in flight ({run.status.value.lower()})",
                    help="wait until it has ended, or end it in the UI (`hydrotick dev`)",
                )
        _remove(directory)
        if instance is None:
            return
        for record in [*all_runs(flow, instance)]:
            instance.delete_run(record.dagster_run.run_id)
        instance.wipe_assets(recorded_tables(instance, flow))


def _remove(directory: DataPlace) -> None:
    """Takes a pipeline's directory away as a whole, and what was left by one who was killed."""
    if isinstance(directory, RemotePath):
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
