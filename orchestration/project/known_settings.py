"""The settings that a project's file can have: where they stand there, by which variable of the
environment they win over it, and what judges a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from hydro_core.errors import DataError, ProgramError
from hydro_core.machine.environment import (
    MASTER,
    MEMORY,
    wrong_master,
    wrong_memory,
    wrong_variable,
)
from hydro_core.machine.spark_conf import wrong_conf
from hydro_core.machine.wrong_path import why_not
from hydro_core.storage.remote import is_remote, remote_at

from .logs import FORMAT, FORMATS

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
        why = why_not(file, problem) if isinstance(problem, OSError) else str(problem)
        message = f"the worker's token cannot be read from `{file}`: {why}"
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


OPENLINEAGE = "OPENLINEAGE_URL"
_MOST = 2**31 - 1
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

Wrong = tuple[str, str] | None
"""What is wrong with a value, and the cure; None if nothing is."""

JudgeSetting = Callable[[Any], Wrong]


def wrong_directory(value: str) -> Wrong:
    """What is wrong with a directory that the project is to use; it need not be there."""
    if _URL.match(value):
        cure = "mount it, and write the path that it is mounted at"
        return "a URL, and a directory of this machine is needed", cure
    if "\0" in value:
        return "no path: it has a NUL in it", "write the path of a directory"
    return None if value.strip() else ("empty", "write the path of a directory")


def wrong_landing(value: str) -> Wrong:
    """What is wrong with a place where data lands: a directory, or a folder in a store."""
    return wrong_place(value) if is_remote(value) else wrong_directory(value)


def wrong_place(value: str) -> Wrong:
    """What is wrong with a folder in a store."""
    if not is_remote(value):
        return "no folder in a store", "write its URL, as `s3://bucket/folder`"
    try:
        remote_at(value)
    except ProgramError as error:
        (told,) = error.diagnostics
        return "no place in a store", told.help
    return None


def _text(judged: Callable[[str], Wrong]) -> JudgeSetting:
    return lambda value: judged(value) if isinstance(value, str) else ("no text", "quote it")


def _like(pattern: str, problem: str, cure: str) -> JudgeSetting:
    return _text(lambda value: None if re.fullmatch(pattern, value) else (problem, cure))


def _one_of(words: Sequence[str], problem: str) -> JudgeSetting:
    *others, last = (f"`{word}`" for word in words)
    cure = f"write {', '.join(others)} or {last}"
    return _text(lambda value: None if value in words else (problem, cure))


def _number_of(of: str) -> JudgeSetting:
    wrong = f"no number of {of}", f"write 1 or more, at most {_MOST:,}"
    # True is a number for Python.
    return lambda value: None if type(value) is int and 1 <= value <= _MOST else wrong


def _setting(table: str, key: str, judge: JudgeSetting, variable: str = "") -> Any:
    return field(default=None, metadata={"known": KnownSetting(table, key, judge, variable)})


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """Where a setting stands, what judges a value, and its variable, if it has one."""

    table: str
    key: str
    judge: JudgeSetting
    variable: str
    name: str = ""
    """The field of `FileSettings` that it is."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What the file or the environment says; None where it is silent."""

    spark_master: str | None = _setting("spark", "master", _text(wrong_master), MASTER)
    spark_memory: str | None = _setting("spark", "memory", _text(wrong_memory), MEMORY)
    shuffle_partitions: int | None = _setting(
        "spark", "shuffle_partitions", _number_of("partitions")
    )
    spark_conf: Mapping[str, Any] | None = _setting("spark", "conf", wrong_conf)
    lookups: str | None = _setting("spark", "lookups", _text(wrong_memory))
    few_rows: int | None = _setting("spark", "few_rows", _number_of("rows"))
    small_writes: int | None = _setting("spark", "small_writes", _number_of("rows"))
    range_ticks: int | None = _setting("ticks", "range", _number_of("ticks"))
    home: str | None = _setting("paths", "home", _text(wrong_directory))
    landing: str | None = _setting("paths", "landing", _text(wrong_landing))
    dagster: str | None = _setting("paths", "dagster", _text(wrong_directory))
    pool: str | None = _setting(
        "dagster",
        "pool",
        _like(
            "[A-Za-z0-9_/]+", "no pool of Dagster", "take letters, digits, underscores and slashes"
        ),
    )
    sensors: str | None = _setting(
        "dagster", "sensors", _one_of(("running", "stopped"), "no status of a sensor")
    )
    sensor_seconds: int | None = _setting("dagster", "sensor_seconds", _number_of("seconds"))
    compact: str | None = _setting(
        "dagster",
        "compact",
        _one_of(("daily", "weekly", "monthly"), "no time to compact tables at"),
    )
    code_url: str | None = _setting(
        "dagster",
        "code_url",
        _like(
            r"https?://[^/\s]\S*",
            "no address on the web",
            "write the address of the project's folder, as "
            "`https://github.com/acme/shop/blob/main`",
        ),
    )
    openlineage: str | None = _setting(
        "lineage",
        "openlineage",
        _like(
            r"file:.+|https?://[^/\s]\S*",
            "no file and no server",
            "write `file:lineage.jsonl`, or the server's URL such as `http://marquez:5000`",
        ),
        OPENLINEAGE,
    )
    namespace: str | None = _setting(
        "lineage",
        "namespace",
        _like(r"(?s).*\S.*", "empty", "write the name that the jobs are found below"),
        "OPENLINEAGE_NAMESPACE",
    )
    log_format: str | None = _setting(
        "logs", "format", _one_of(FORMATS, "no form of a log"), FORMAT
    )
    storage_data: str | None = _setting("storage", "data", _text(wrong_place))
    storage_endpoint: str | None = _setting(
        "storage",
        "endpoint",
        _like(
            r"https?://[^/\s@?]+/?",
            "no address of a server",
            "write its URL without a path, a user or a password, as `https://minio.acme.com:9000`",
        ),
    )
    storage_region: str | None = _setting(
        "storage", "region", _like(r"[A-Za-z0-9-]+", "no region", "write it as `eu-central-1`")
    )
    storage_profile: str | None = _setting(
        "storage",
        "profile",
        _like(r"[^\s\[\]]+", "no name of a profile", "write one of `~/.aws/credentials`"),
    )
    storage_anonymous: bool | None = _setting(
        "storage",
        "anonymous",
        lambda value: None if isinstance(value, bool) else ("neither", "write true or false"),
    )
    storage_patience: int | None = _setting("storage", "patience", _number_of("seconds"))
    worker_address: str | None = _setting("worker", "address", _text(wrong_address), WORKER)
    worker_token_file: str | None = _setting("worker", "token_file", _text(wrong_directory))
    worker_flows: int | None = _setting("worker", "flows", _number_of("flows"))
    worker_memory: str | None = _setting("worker", "memory", _text(wrong_memory))
    worker_metrics: str | None = _setting("worker", "metrics", _text(wrong_listening))

    def over(self, other: FileSettings) -> FileSettings:
        """These settings, and where they are silent what the others say."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


@cache
def known_settings() -> Mapping[str, Mapping[str, KnownSetting]]:
    """The settings, by table and key."""
    found: dict[str, dict[str, KnownSetting]] = {}
    for of in fields(FileSettings):
        known: KnownSetting = of.metadata["known"]
        found.setdefault(known.table, {})[known.key] = replace(known, name=of.name)
    return found


def settings_of_environment(environ: Mapping[str, str]) -> FileSettings:
    """The settings that variables of the environment give.

    Raises:
        DataError: a value that nothing can be made of (code `config`).
    """
    found: dict[str, Any] = {}
    for known in (known for table in known_settings().values() for known in table.values()):
        value = environ.get(known.variable)
        wrong = known.judge(value) if value else None
        if value and wrong:
            raise wrong_variable(known.variable, value, *wrong)
        if value:
            found[known.name] = value
    return FileSettings(**found)
