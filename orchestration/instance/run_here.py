"""One Dagster run, executed in this process: what `backfill` and `demo` do for each range of ticks.

Somebody sits in front of it. So Ctrl-C is recorded as what it is, a run that somebody terminated,
and not as a failure, which would be tried again by the flow's sensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._utils.interrupts import check_captured_interrupt
from dagster_shared.error import SerializableErrorInfo

from hydro_core.machine.processes import this_process

from .run_tags import PARTITION, PROCESS_TAG, range_tags

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_INTERRUPTS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_SAYS = "Somebody interrupted it where it was started (Ctrl-C)."


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run that has ended: whether all of it succeeded, and what the first failed step raised,
    from the outermost error to its cause.
    """

    success: bool
    errors: Sequence[SerializableErrorInfo]

    @property
    def reason(self) -> str:
        """Why it failed: the innermost cause."""
        return self.errors[-1].to_string() if self.errors else "the run failed"


def run_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    keys: tuple[str, str],
    more: Mapping[str, str] | None = None,
) -> RunHere:
    """Executes a job for the ticks from one key to another, as one run of this process.

    Args:
        instance: where the run is recorded.
        keys: those of the first and the last tick.
        more: tags of the run beside those that it needs.

    Raises:
        KeyboardInterrupt: Ctrl-C came; the run is recorded as terminated, unless it was done by
            then.
    """
    ticks = {PARTITION: keys[0]} if keys[0] == keys[1] else range_tags(*keys)
    tags = {**job.run_tags, PROCESS_TAG: this_process(), **ticks, **(more or {})}
    run = instance.create_run_for_job(job, run_config=_QUIET, tags=tags)
    interrupted = False
    errors: list[SerializableErrorInfo] = []
    try:
        for event in execute_run_iterator(InMemoryJob(job), run, instance):
            # Dagster asks how the run stands before it says how it has ended.
            if not errors:
                errors = list(_errors(event))
                if any(error.cls_name in _INTERRUPTS for error in errors):
                    interrupted = True
                    instance.report_run_canceling(run, _SAYS)
            # What comes between two steps is noted by Dagster, and forgotten with the run.
            interrupted |= check_captured_interrupt()
    except KeyboardInterrupt:
        if not _ended(instance, run).is_finished:
            instance.report_run_canceled(run, _SAYS)
        raise
    if interrupted:
        raise KeyboardInterrupt
    return RunHere(_ended(instance, run).is_success, errors)


def _ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun:
    return instance.get_run_by_id(run.run_id) or run


def _errors(event: dg.DagsterEvent) -> Iterator[SerializableErrorInfo]:
    """What a failed step raised, and then its causes."""
    error = event.step_failure_data.error if event.is_step_failure else None
    while error is not None:
        yield error
        error = error.cause
