"""A PostgreSQL server of the machine's own, for as long as somebody asks for it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"
_SECONDS = 60


def programs() -> Path | None:
    """Where the server's programs are; None where there are none, or nobody who may run them."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb")
    place = Path(named).parent if named else found[-1].parent if found else None
    if place is None or (os.geteuid() == 0 and not _has_user()):
        return None
    return place


@contextmanager
def served(place: Path) -> Iterator[str]:
    """A server on this machine alone, without a database of anybody's; gives its address."""
    directory = Path(tempfile.mkdtemp(prefix="hydrotick-pg-"))
    user = USER if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(directory, user)
    data, port = directory / "data", _free_port()
    made = [place / "initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync"]
    subprocess.run(made, check=True, user=user, cwd=directory, stdout=subprocess.DEVNULL)
    words = ["-h", "127.0.0.1", "-p", str(port), "-k", directory, "-c", "fsync=off"]
    log = (directory / "log").open("wb")
    server = subprocess.Popen(
        [place / "postgres", "-D", data, *words], user=user, cwd=directory, stderr=log, stdout=log
    )
    try:
        _wait(port, server)
        yield f"postgresql+psycopg2://{USER}@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        try:
            server.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()
        shutil.rmtree(directory)


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("PostgreSQL does not start")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def _has_user() -> bool:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True
