"""The services of the page on operating: its units' commands, each as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hydrotick.cli.init import put_project
from hydrotick.instance import prepare_instance
from tests.orchestration.web import Api, answers
from tests.support.services import shown, units

pytestmark = pytest.mark.dagster

SECONDS = 90
DAEMONS = "{instance{daemonHealth{allDaemonStatuses{daemonType healthy}}}}"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def running(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    log = folder / f"{Path(words[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        # As systemd ends a unit.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)


@pytest.mark.slow
def test_the_units_on_the_page_serve_a_project(tmp_path: Path) -> None:
    put_project(tmp_path / "shop", "totals")
    shop, starts = tmp_path / "shop", units()
    names = ("hydrotick-code", "hydrotick-worker", "hydrotick-daemon", "hydrotick-web")
    assert set(starts) == set(names)
    workspace = shown("workspace.yaml")
    code, web = free_port(), free_port()
    (shop / "workspace.yaml").write_text(workspace.replace("4266", str(code)))
    home = prepare_instance(shop / "data" / "dagster")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "HYDROTICK_PROJECT": str(shop),
        "HYDROTICK_HOME": str(shop / "data"),
        "PYTHONWARNINGS": "ignore",
    }
    with ExitStack() as services:
        for unit in names:
            command = starts[unit].replace("4266", str(code)).replace("3000", str(web))
            command = command.replace("/srv/venv/bin", str(Path(sys.executable).parent))
            services.enter_context(running(command.split(), shop, environment))
        api = Api(web)
        until(lambda: answers(api))
        until(lambda: _all_well(api))


def _all_well(api: Api) -> bool:
    found = api(DAEMONS)["instance"]["daemonHealth"]["allDaemonStatuses"]
    healthy = {one["daemonType"] for one in found if one["healthy"]}
    return {"SENSOR", "QUEUED_RUN_COORDINATOR", "MONITORING"} <= healthy
