"""The process of a run: Dagster's records name it, so that a run whose process is gone is not taken
for one that goes on.

Dagster's default launcher starts the process of a run below that of the code server, and nobody
asks after it again: where both are ended, by a machine or with a service, the run's record says for
ever that it goes on. What the launcher of Kubernetes or Docker starts these look after themselves.
"""

from __future__ import annotations

import multiprocessing
import os

import dagster as dg
from dagster._core.storage.tags import GRPC_INFO_TAG

from hydro_core.machine.processes import has_ended, host_of, process_named, this_process
from hydro_core.project.flow_asset import FlowAsset

from ..instance.run_tags import PROCESS_TAG
from .records import runs_of

_BEGUN = ("NOT_STARTED", "STARTED", "CANCELING")
"""The states of a run in which the process that its tag names executes it."""


def note_process(run: dg.DagsterRun, instance: dg.DagsterInstance) -> None:
    """Names the process that executes a run, from within it, where nobody else has.

    With the executor of several processes a step is not in the process of its run, but right below.
    """
    if GRPC_INFO_TAG not in run.tags or PROCESS_TAG in run.tags:
        return
    number = _number_told(run, instance)
    parent = multiprocessing.parent_process()
    near = {os.getpid(), os.getppid(), *(() if parent is None else (parent.pid,))}
    if number is not None and number in near:
        instance.add_run_tags(run.run_id, {PROCESS_TAG: process_named(number)})


def end_orphans(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.DagsterRun]:
    """Runs whose process is gone (killed, say) are shown as failed, not as running for ever.

    Gives the runs of which that cannot be told: their processes are on other hosts.
    """
    elsewhere = []
    for record in runs_of(flow, instance, _BEGUN):
        process = record.dagster_run.tags.get(PROCESS_TAG)
        if process is not None and has_ended(process):
            message = "Its process ended before the tick did."
            instance.report_run_failed(record.dagster_run, message)
        elif process is not None and host_of(process) != host_of(this_process()):
            elsewhere.append(record.dagster_run)
    return elsewhere


def _number_told(run: dg.DagsterRun, instance: dg.DagsterInstance) -> int | None:
    """The number of a run's process, as Dagster has recorded it when that began."""
    of_type = dg.DagsterEventType.ENGINE_EVENT
    for log in instance.all_logs(run.run_id, of_type=of_type):
        event = log.get_dagster_event()
        told = event.engine_event_data.metadata.get("pid")
        if told is not None and str(told.value).isdigit():
            return int(str(told.value))
    return None
