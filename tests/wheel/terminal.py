"""A command at a terminal, as a person sees it: what it asks is answered with yes."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.wheel.environment import SECONDS, Environment

_ASKS = b"[y/N] "
_CLEARED = re.compile(r"[^\n]*\r\x1b\[K")
"""What a line that is drawn again and again has shown before."""


def at_a_terminal(environment: Environment, words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Runs a command to its end; gives what it ends with, and all that was on the screen."""
    ours, its = pty.openpty()
    started = subprocess.Popen(
        [environment.place / "bin" / words[0], *words[1:]],
        cwd=folder,
        env={**environment.variables, "TERM": "xterm"},
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        screen = _read(ours, time.monotonic() + SECONDS)
        text = screen.decode("utf-8", "replace").replace("\r\n", "\n")
        return started.wait(SECONDS), _CLEARED.sub("", text)
    finally:
        os.close(ours)
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def _read(terminal: int, end: float) -> bytes:
    screen, answered = b"", 0
    while time.monotonic() < end:
        try:
            came = os.read(terminal, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not came:
            break
        screen += came
        if screen.count(_ASKS) > answered:
            answered += 1
            os.write(terminal, b"y\n")
    return screen
