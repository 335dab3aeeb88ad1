"""Deploys the small flow's program in a home, and kills itself at a step: run as a process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hydrotick.deploy.planning import DeployOptions, plan_deployment
from hydrotick.deploy.switch import deploy
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import small_flow


def main(home: Path, moment: str) -> None:
    """Dies at the step of that name."""
    program = (home / "program" / "small.hydro").read_text(encoding="utf-8")
    flow = small_flow(home / "program")
    Path(flow.program).write_text(program, encoding="utf-8")
    runner = TickRunner(ProjectSettings(home=home, spark_master="local[2]"))
    runner.pipeline(flow).step = lambda name: die() if name == moment else None
    change = plan_deployment(flow, runner, DeployOptions())
    assert change is not None
    deploy(change, runner, lambda _: None)


def die() -> None:
    """Ends the process at once, as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
