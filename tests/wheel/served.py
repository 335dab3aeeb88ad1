"""Commands that serve until somebody ends them: `hydrotick dev`, and Dagster's own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.orchestration.web import Api, answers
from tests.wheel.environment import SECONDS, Environment

_RUNS = """{runsOrError{__typename ... on Runs{results{
  runId jobName status tags{key value} assets{key{path}}
}}}}"""
_ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


@contextmanager
def served(
    environment: Environment,
    words: Sequence[str],
    folder: Path,
    more: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Within it the command serves its UI, with assets, on the port that is given.

    It is ended as by Ctrl-C, and has to end with 0.
    """
    port = free_port()
    log = environment.home / f"served-{port}.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [environment.place / "bin" / words[0], *words[1:], "--port", str(port)],
            cwd=folder,
            env={**environment.variables, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_heeds_interrupts,  # noqa: PLW1509 - it calls the system alone
        ) as serving,
    ):
        try:
            end = time.monotonic() + SECONDS
            while not answers(Api(port)):
                assert serving.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.5)
            yield port
            serving.send_signal(signal.SIGINT)
            assert serving.wait(SECONDS) == 0, log.read_text()
        finally:
            if serving.poll() is None:
                os.killpg(serving.pid, signal.SIGKILL)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _heeds_interrupts() -> None:
    # A shell that runs the tests in the background has them ignore interrupts, and what they start.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def first_run(port: int) -> Mapping[str, Any]:
    """The first run that has ended, waited for; and what its failed steps say."""
    api, end = Api(port), time.monotonic() + SECONDS
    while time.monotonic() < end:
        for run in api(_RUNS)["runsOrError"]["results"]:
            if run["status"] in _ENDED:
                return {**run, "says": _errors(api, run["runId"])}
        time.sleep(1)
    raise AssertionError("no run has ended")


def _errors(api: Api, run: str) -> list[str]:
    found = api(
        """query($run: ID!){logsForRun(runId: $run){... on EventConnection{events{
          ... on ExecutionStepFailureEvent{error{message causes{message}}}}}}}""",
        run=run,
    )
    events = found["logsForRun"]["events"]
    return [str(event["error"]) for event in events if event.get("error")]
