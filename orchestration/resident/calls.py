"""How the launcher talks to the resident worker: a JSON line each way over a socket of its home."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SOCKET = "worker.sock"


def call(home: Path, timeout: float = 10, **message: Any) -> dict[str, Any]:
    """What the worker of `home` answers; OSError if there is none."""
    with socket.socket(socket.AF_UNIX) as connection, _address(home) as address:
        connection.settimeout(timeout)
        connection.connect(address)
        with connection.makefile("rw", encoding="utf-8") as lines:
            lines.write(json.dumps(message) + "\n")
            lines.flush()
            answer: dict[str, Any] = json.loads(lines.readline() or "{}")
    return answer


def listen(home: Path) -> socket.socket:
    """The socket of the worker of `home`; only one process may ask, which its lock sees to."""
    (home / _SOCKET).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with _address(home) as address:
        listening.bind(address)
    (home / _SOCKET).chmod(0o600)
    listening.listen()
    return listening


@contextmanager
def _address(home: Path) -> Iterator[str]:
    # The path of a socket has 107 bytes at most; that of a home may be longer.
    directory = os.open(home, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{_SOCKET}"
    finally:
        os.close(directory)
