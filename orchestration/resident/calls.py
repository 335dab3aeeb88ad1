"""How the launcher talks to resident workers: a JSON line each way over a socket of each."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def workers_of(home: Path) -> Path:
    """The directory in which the workers of an instance have sockets, locks and logs."""
    return home / "workers"


def call(home: Path, worker: int, timeout: float = 10, **message: Any) -> dict[str, Any]:
    """What a worker of `home` answers, by its number; OSError if it is not there."""
    with socket.socket(socket.AF_UNIX) as connection, _address(home, worker) as address:
        connection.settimeout(timeout)
        connection.connect(address)
        with connection.makefile("rw", encoding="utf-8") as lines:
            lines.write(json.dumps(message) + "\n")
            lines.flush()
            answer: dict[str, Any] = json.loads(lines.readline() or "{}")
    return answer


def listen(home: Path, worker: int) -> socket.socket:
    """The socket of a worker of `home`; its lock sees to it that no other asks."""
    path = workers_of(home) / f"{worker}.sock"
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with _address(home, worker) as address:
        listening.bind(address)
    path.chmod(0o600)
    listening.listen()
    return listening


@contextmanager
def _address(home: Path, worker: int) -> Iterator[str]:
    # The path of a socket has 107 bytes at most; that of a home may be longer.
    directory = os.open(workers_of(home), os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{worker}.sock"
    finally:
        os.close(directory)
