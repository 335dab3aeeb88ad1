"""Ctrl-C in a terminal: a signal to a command and to all that it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from assets.chat.asset import CHAT
from hydrotick.instance.opening import open_instance
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner

pytestmark = [pytest.mark.spark, pytest.mark.dagster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SECONDS = 300
HYDROTICK = [sys.executable, "-m", "hydro_core.cli.main"]

Ready = Callable[[psutil.Process], bool]


@pytest.fixture
def project(tmp_path: Path) -> ProjectSettings:
    found = ProjectSettings(home=tmp_path / "home")
    assert CHAT.land is not None
    CHAT.land(found.landing)
    return found


def _interrupted(words: list[str], home: Path, ready: Ready, seconds: float) -> tuple[str, str]:
    """What a command prints that gets Ctrl-C so many seconds after it is ready; it leaves nothing
    behind.
    """
    with subprocess.Popen(
        [*HYDROTICK, *words],
        cwd=ROOT,
        env=_environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as command:
        end = time.monotonic() + SECONDS
        while not ready(psutil.Process(command.pid)):
            assert time.monotonic() < end
            assert command.poll() is None
            time.sleep(0.05)
        time.sleep(seconds)
        os.killpg(command.pid, signal.SIGINT)
        printed = command.communicate(timeout=SECONDS)
        assert command.returncode == 130, printed
    while _processes_of(home):
        assert time.monotonic() < end
        time.sleep(0.05)
    return printed


def _processes_of(home: Path) -> list[psutil.Process]:
    """Every process that works for the home: its environment tells."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            ours = process.environ().get("HYDROTICK_HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HYDROTICK_HOME": str(home), "PYTHONWARNINGS": "ignore"}


def _has_jvm(process: psutil.Process) -> bool:
    return any(child.name() == "java" for child in process.children(recursive=True))


def _status(home: Path) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [*HYDROTICK, "status", "chat", "--format", "json"],
        cwd=ROOT,
        env=_environment(home),
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return done.returncode, json.loads(done.stdout)["flows"][0]


@pytest.mark.parametrize("seconds", [0.5, 5])
def test_of_a_backfill_it_is_a_run_that_somebody_ended(
    project: ProjectSettings, seconds: float
) -> None:
    # The JVM is started within the first run.
    _, said = _interrupted(["backfill", "chat"], project.home, _has_jvm, seconds)
    assert said == "interrupted\n"
    with open_instance(project.dagster_home) as instance:
        (run,) = instance.get_runs()
    if TickRunner(project).next_tick(CHAT) < len(_keys()):
        assert run.status is dg.DagsterRunStatus.CANCELED
        code, status = _status(project.home)
        assert (code, status["failed"], status["stopped"]) == (1, None, True)
        assert "was terminated at" in str(status["next"])
    subprocess.run(
        [*HYDROTICK, "backfill", "chat"], cwd=ROOT, env=_environment(project.home), check=True
    )
    code, status = _status(project.home)
    assert (code, status["committed"], status["stopped"]) == (0, len(_keys()), False)


def _keys() -> list[str]:
    calendar = CHAT.ticks.calendar
    return [calendar.window(tick).key for tick in range(24)]


def test_of_the_demo(project: ProjectSettings) -> None:
    printed, said = _interrupted(["demo", "--days", "2"], project.home, _has_jvm, 4)
    assert said == "interrupted\n"
    assert "Starting Dagster and Spark" in printed


def test_of_a_program_on_spark(tmp_path: Path) -> None:
    program, ticks = tmp_path / "p.hydro", tmp_path / "ticks.json"
    program.write_text('a = source("v long")\na -> persist() -> aggregate(v=sum("v")) -> out\n')
    ticks.write_text(json.dumps([{"a": [{"v": 1}]}] * 300))
    words = ["run", str(program), "--ticks", str(ticks), "--engine", "spark"]
    for seconds in (1, 10):
        printed, said = _interrupted(words, tmp_path / "home", _has_jvm, seconds)
        assert said == "interrupted\n"
        assert printed == ""


def test_of_commands_that_read(project: ProjectSettings) -> None:
    """Python itself starts for the first tenths of a second, and no library is there yet."""

    def works(process: psutil.Process) -> bool:
        return process.num_threads() > 1

    for words in (["status"], ["status", "--verify"]):
        _, said = _interrupted(words, project.home, works, 0)
        assert said == "interrupted\n"
