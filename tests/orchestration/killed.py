"""A process that runs ticks of the small flow and is killed at a given moment: HOME TICK MOMENT.

With a fourth word `correct` it computes the committed ticks from TICK on again, with `forget` it
forgets ann; `shards N` cuts the flow into so many.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from hydro_core.spark.pipeline.jobs import RangeJobs
from hydrotick.cli.backfill import correct_ticks, run_ticks
from hydrotick.runner.correction import CorrectionPlan
from hydrotick.runner.forgetting import forget, forget_plan
from tests.orchestration.small import opened


def die(*_: object) -> None:
    """As when the machine takes the process away."""
    os.kill(os.getpid(), signal.SIGKILL)


def correct(home: Path, tick: int, moment: str) -> None:
    """Corrects the ticks from `tick` on, and dies when a step of the replacement is done."""
    flow, runner = opened(home)
    runner.pipeline(flow).step = lambda name: die() if name == moment else None
    window = flow.ticks.calendar.window
    last = window(runner.next_tick(flow) - 1)
    correct_ticks(flow, runner, CorrectionPlan(window(tick), window(tick), last))


def forget_ann(home: Path, moment: str) -> None:
    """Forgets a user, and dies when a step of it is done."""
    flow, runner = opened(home)
    runner.pipeline(flow).step = lambda name: die() if name.startswith(moment) else None
    forget(forget_plan(runner, flow, {"payments": ("user", "ann")}), lambda _: None)


def main(home: Path, tick: int, moment: str, shards: int = 1) -> None:
    """Runs all ticks, and dies within `tick`."""
    flow, runner = opened(home, shards)
    pipeline = runner.pipeline(flow)
    compute = RangeJobs.compute

    def computes(jobs: RangeJobs, *arguments: Any) -> Any:
        if pipeline.next_tick == tick and moment == "computing":
            threading.Timer(0.2, die).start()
        return compute(jobs, *arguments)

    def step(name: str) -> None:
        name = name.rpartition("-")[0] if name.startswith("state/") else name
        # The ledger's row is a tick's last step, and makes the next tick the one that may run.
        done = pipeline.ledger.last_tick
        if name == moment and tick == (done if name == "ledger" else pipeline.next_tick):
            die()

    RangeJobs.compute = computes  # type: ignore[method-assign]
    pipeline.step = step
    list(run_ticks(flow, runner, 3, lambda _: None))


if __name__ == "__main__":
    given = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    match sys.argv[4:]:
        case ["correct"]:
            correct(*given)
        case ["forget"]:
            forget_ann(given[0], given[2])
        case ["shards", number]:
            main(*given, int(number))
        case _:
            main(*given)
