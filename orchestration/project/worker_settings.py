"""Where the worker is that runs a project's ticks, and how much it may take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hydro_core.errors import DataError

WORKER, TOKEN = "HYDROTICK_WORKER", "HYDROTICK_WORKER_TOKEN"
NONE = "none"
"""The address by which no worker is asked: ticks run in the process of their run."""

FLOWS = 2
"""Each flow at a time has the memory of a Spark."""
_TCP = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker and of those who ask it; see `ProjectSettings` for the variables.

    `address` [HYDROTICK_WORKER] is where it is asked: `HOST:PORT`, or `none`; None: at a socket of
    the project's data, if one is there. Over a network it is asked with `token`
    [HYDROTICK_WORKER_TOKEN]. It runs `flows` flows at a time, each in a process of its own that
    may have `memory`, and tells its metrics at `metrics`.
    """

    address: str | None = None
    token: str | None = field(default=None, repr=False)
    flows: int = FLOWS
    memory: str | None = None
    metrics: str | None = None


def worker_token(environ: Mapping[str, str], file: Path | None) -> str | None:
    """The token, by the environment or else a file.

    Raises:
        DataError: the file cannot be read (code `config`).
    """
    if environ.get(TOKEN) or file is None:
        return environ.get(TOKEN) or None
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as problem:
        message = f"the worker's token cannot be read: {problem}"
        cure = f"see that `token_file` may be read, or set {TOKEN}"
        raise DataError.of("config", message, help=cure) from None


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def wrong_address(value: str) -> tuple[str, str] | None:
    """What is wrong with an address of a worker, and the cure."""
    found = _TCP.fullmatch(value)
    if value == NONE or (found and int(found["port"]) < 2**16):
        return None
    return "no address", f"write `HOST:PORT`, such as `10.0.0.5:7077`, or `{NONE}`"


def wrong_listening(value: str) -> tuple[str, str] | None:
    """What is wrong with an address that metrics are told at, and the cure."""
    found = _TCP.fullmatch(value if ":" in value else f"localhost:{value}")
    if found and int(found["port"]) < 2**16:
        return None
    return "no address", "write a port, such as `9464`, or `HOST:PORT`"
