"""How a worker is talked to: lines of JSON over a socket of the system, or over TCP.

One request is one connection. Who has asked for ticks keeps it open as long as it wants them: where
it ends its side, or is ended, they are cancelled. The answer is a line for each thing that happens.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..project.settings import ProjectSettings
from ..project.settings_file import NONE, host_and_port

PROTOCOL = 1
_SECONDS_TO_CONNECT = 5
_MANY_BYTES = 65536
_MOST_BYTES = 64 * 1024 * 1024
"""A message that is longer is none: who has not said its token yet must not fill the memory."""


Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Where a worker listens: a socket in the project's data, or else an address of TCP.

    `needed`: whoever is told to ask it does not do without.
    """

    path: Path | None
    address: tuple[str, int] = ("", 0)
    token: str | None = None
    needed: bool = False

    def __str__(self) -> str:
        return str(self.path) if self.path else f"{self.address[0]}:{self.address[1]}"


def place_in(home: Path) -> WorkerPlace:
    """The socket of the worker of the project that has its data in `home`."""
    return WorkerPlace(home / "worker" / "worker.sock")


def place_of(project: ProjectSettings) -> WorkerPlace | None:
    """Where the worker of a project is asked; None: nowhere, by its settings."""
    address = project.worker.address
    if address == NONE:
        return None
    if address is None:
        return place_in(project.home)
    return WorkerPlace(None, host_and_port(address), project.worker.token, needed=True)


class Channel:
    """One connection: messages go both ways, from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        # One for all who read: what it has read ahead is the next one's.
        self._lines = connection.makefile("rb")

    def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            OSError: the other side is gone.
        """
        line = json.dumps(message, ensure_ascii=False) + "\n"
        with self._sending:
            self._connection.sendall(line.encode())

    def messages(self) -> Iterator[dict[str, Any]]:
        """Messages of the other side until it ends its side; one that is cut off is left out."""
        while True:
            try:
                line = self._lines.readline(_MOST_BYTES)
            except ConnectionError:
                return
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)

    def wait_at_most(self, seconds: float | None) -> None:
        self._connection.settimeout(seconds)

    def end_side(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def give_up(self, seconds: float) -> None:
        """Says that nothing more is wanted, and waits until the other side has ended its own."""
        self.end_side()
        self.wait_at_most(seconds)
        with suppress(OSError):
            while self._connection.recv(_MANY_BYTES):
                pass

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        # Whoever reads has come to the end by now, and lets go of the lines.
        self._lines.close()
        self._connection.close()


def connect(place: WorkerPlace) -> Channel:
    """A connection to the worker.

    Raises:
        OSError: there is none.
    """
    if place.path is None:
        return Channel(socket.create_connection(place.address, timeout=_SECONDS_TO_CONNECT))
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS_TO_CONNECT)
    try:
        with _short(place.path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return Channel(connection)


def ask(place: WorkerPlace, **message: Any) -> dict[str, Any]:
    """What a worker answers at once; empty if it does not.

    Raises:
        OSError: there is none.
    """
    channel = connect(place)
    try:
        channel.send({"protocol": PROTOCOL, "token": place.token, **message})
        return next(channel.messages(), {})
    finally:
        channel.close()


def listen(place: WorkerPlace) -> socket.socket:
    """The socket at which a worker is asked; of one in a file, its lock keeps others away.

    Raises:
        OSError: the address is taken, or not of this machine.
    """
    if place.path is None:
        return socket.create_server(place.address)
    place.path.parent.mkdir(parents=True, exist_ok=True)
    place.path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with _short(place.path) as name:
            listening.bind(name)
    finally:
        os.umask(before)
    listening.listen()
    return listening


@contextmanager
def _short(path: Path) -> Iterator[str]:
    # The path of a socket has 107 bytes at most; that of a home may be longer.
    directory = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
