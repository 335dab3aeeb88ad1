"""`hydrotick dev`: one per home, and all that it started ends with it, however it is ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from hydrotick.cli import dev as dev_command
from hydrotick.instance import dev_lock
from tests.orchestration.web import Api, answers

pytestmark = [pytest.mark.dagster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SECONDS = 120


@contextmanager
def _dev(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`hydrotick dev` on a home, with the UI answering; whatever is left of it is killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "hydro_core.cli.main", "dev", "--port", str(port)]
    log = home.with_suffix(".log")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            words, cwd=ROOT, env=_environment(home), stdout=output, stderr=output
        ) as dev,
    ):
        try:
            api = Api(port)
            _until(lambda: dev.poll() is not None or answers(api))
            assert dev.poll() is None, log.read_text()
            yield dev
        finally:
            for process in _processes_of(home):
                process.kill()
            dev.kill()


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HYDROTICK_HOME": str(home)}


def _processes_of(home: Path) -> list[psutil.Process]:
    """Every process that works for the home: its environment tells."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("HYDROTICK_HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_it(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / "home"
    with _dev(home) as dev:
        # This process, Dagster's launcher, webserver, daemon and code server at least.
        assert len(_processes_of(home)) >= 5
        dev.send_signal(number)
        assert dev.wait(SECONDS) == (-9 if number == signal.SIGKILL else 0)
        if number == signal.SIGKILL:
            _until(lambda: not _processes_of(home))
        assert not _processes_of(home)


def test_it_ends_in_order_when_a_shell_started_it_in_the_background(tmp_path: Path) -> None:
    home = tmp_path / "home"
    # What a shell without job control does to `hydrotick dev &`.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _dev(home) as dev:
            dev.send_signal(signal.SIGTERM)
            assert dev.wait(SECONDS) == 0
            assert not _processes_of(home)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "it is killed" not in home.with_suffix(".log").read_text()


@pytest.mark.parametrize("what", ["dagster._daemon", "dagster_webserver", "dagster dev", "worker"])
def test_what_is_killed_is_started_again(tmp_path: Path, what: str) -> None:
    home = tmp_path / "home"
    with _dev(home) as dev:
        time.sleep(dev_command._SECONDS_TO_STAY)
        (killed,) = _named(home, what)
        killed.kill()
        _until(lambda: [one for one in _named(home, what) if one.pid != killed.pid])
        # What was with it is not there twice.
        for each in ("dagster._daemon", "dagster_webserver", "dagster dev", "worker"):
            _until(lambda each=each: len(_named(home, each)) == 1)  # type: ignore[misc]
        assert dev.poll() is None
        dev.terminate()
        assert dev.wait(SECONDS) == 0
        assert not _processes_of(home)


def _named(home: Path, what: str) -> list[psutil.Process]:
    """The processes of the home whose command has these words."""
    found = []
    for process in _processes_of(home):
        try:
            if f" {what} " in f"{' '.join(process.cmdline())} ":
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_there_is_one_of_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with _dev(home):
        words = [sys.executable, "-m", "hydro_core.cli.main", "dev", "--port", "1"]
        second = subprocess.run(
            words,
            cwd=ROOT,
            env=_environment(home),
            timeout=SECONDS,
            capture_output=True,
            check=False,
        )
        assert second.returncode == 1
        said = second.stderr.decode()
        assert "another `hydrotick dev` is at work on" in said
        assert dev_lock(home / "dagster").holder()["url"] in said
        assert "Traceback" not in said


def _until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)
