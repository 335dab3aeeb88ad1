"""Settings of a project: `hydrotick.toml`, the environment, and the values that each may have.

```toml
[spark]
master = "local[4]"
memory = "4g"
shuffle_partitions = 8
lookups = "4g"
few_rows = 100000
small_writes = 100000
conf = {"spark.executor.memory" = "4g"}

[ticks]
range = 100

[paths]
home = "/mnt/shop"
landing = "/mnt/landing"
dagster = "/opt/dagster"

[dagster]
pool = "spark"
sensors = "running"
sensor_seconds = 60
compact = "weekly"
code_url = "https://github.com/acme/shop/blob/main"

[lineage]
openlineage = "http://marquez:5000"
namespace = "shop"

[logs]
format = "json"

[storage]
endpoint = "https://minio.acme.com:9000"
region = "eu-central-1"
profile = "shop"
anonymous = false
patience = 150

[worker]
address = "10.0.0.5:7077"
token_file = "/run/secrets/worker"
flows = 2
memory = "6g"
metrics = "9464"
```

A Dagster component has the same names in its attributes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from hydro_core.errors import DataError, Diagnostic, ProgramError, Span
from hydro_core.functions.call import shortened
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.environment import (
    MASTER,
    MEMORY,
    wrong_conf,
    wrong_master,
    wrong_memory,
    wrong_variable,
)
from hydro_core.machine.faults import why_not
from hydro_core.project.yaml_text import declared_text, leads_out
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
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def wrong_address(value: str) -> tuple[str, str] | None:
    found = _TCP.fullmatch(value)
    if value == NONE or (found and int(found["port"]) < 2**16):
        return None
    return "no address", f"write `HOST:PORT`, such as `10.0.0.5:7077`, or `{NONE}`"


def wrong_listening(value: str) -> tuple[str, str] | None:
    found = _TCP.fullmatch(value if ":" in value else f"localhost:{value}")
    if found and int(found["port"]) < 2**16:
        return None
    return "no address", "write a port, such as `9464`, or `HOST:PORT`"


OPENLINEAGE = "OPENLINEAGE_URL"
_MOST = 2**31 - 1
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

Wrong = tuple[str, str] | None
"""Problem of a value, and the help; None if there is none."""

JudgeSetting = Callable[[Any], Wrong]


def wrong_directory(value: str) -> Wrong:
    """Problem of a directory for the project, which need not exist."""
    if _URL.match(value):
        cure = "mount it, and write the path that it is mounted at"
        return "a URL, and a directory of this machine is needed", cure
    if "\0" in value:
        return "no path: it has a NUL in it", "write the path of a directory"
    return None if value.strip() else ("empty", "write the path of a directory")


def wrong_landing(value: str) -> Wrong:
    return wrong_place(value) if is_remote(value) else wrong_directory(value)


def wrong_place(value: str) -> Wrong:
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
    """Settings of the file or the environment; None where they are silent."""

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


def settings_in(file: Path) -> FileSettings:
    """The settings of a file, none if there is no file.

    Raises:
        ProgramError: everything that is wrong with it, each with its line (code `config`).
    """
    if not file.is_file():
        return FileSettings()
    text = declared_text(file)
    try:
        tables = tomllib.loads(text)
    except (RecursionError, ValueError) as problem:
        # It tells numbers and days that Python does not read without their place.
        line = int(found[1]) if (found := re.search(r"line (\d+)", str(problem))) else 1
        span = _span(file, text, line)
        cure = "TOML has tables `[spark]`, each once, and `name = value` a line below them"
        why = "it nests too deep" if isinstance(problem, RecursionError) else problem
        message = f"this is no TOML: {why}"
        raise ProgramError.of("config", message, span, help=cure) from None
    problems = list(_problems(file, text, tables))
    if problems:
        raise ProgramError(*problems)
    return _of_tables(tables)


def settings_of_tables(tables: Mapping[str, Mapping[str, Any]]) -> FileSettings:
    """The settings that somebody else has read, with the names of the file.

    Raises:
        ProgramError: everything that is wrong with the values (code `config`).
    """
    problems = [
        Diagnostic(
            "config", f"`{table}.{key}` is {_shown(value)}, which is {wrong[0]}", help=wrong[1]
        )
        for table, keys in tables.items()
        for key, value in keys.items()
        if (wrong := known_settings()[table][key].judge(value)) is not None
    ]
    if problems:
        raise ProgramError(*problems)
    return _of_tables(tables)


def _of_tables(tables: Mapping[str, Mapping[str, Any]]) -> FileSettings:
    found = {
        known_settings()[table][key].name: value
        for table, keys in tables.items()
        for key, value in keys.items()
    }
    return FileSettings(**found)


def _problems(file: Path, text: str, tables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    known = known_settings()
    for table, said in tables.items():
        if table not in known:
            says = f"there is no setting `[{table}]`" if isinstance(said, dict) else None
            says = says or f"there is no setting `{table}` outside of a table"
            span = _place(file, text, table, None)
            of = [other for other, keys in known.items() if table in keys]
            cure = f"write it below `[{of[0]}]`" if of else _there(table, known)
            yield Diagnostic("config", says, span, help=cure)
        elif not isinstance(said, dict):
            span = _place(file, text, table, None)
            yield Diagnostic("config", f"`{table}` is a table", span, help=f"write `[{table}]`")
        else:
            yield from _wrong_keys(file, text, table, said)


def _wrong_keys(file: Path, text: str, table: str, keys: Mapping[str, Any]) -> Iterator[Diagnostic]:
    known = known_settings()[table]
    for key, value in keys.items():
        span = _place(file, text, table, key)
        if key not in known:
            says = f"`[{table}]` has no setting `{key}`"
            yield Diagnostic("config", says, span, help=_there(key, known))
        elif (wrong := known[key].judge(value)) is not None:
            says = f"`{key}` is {_shown(value)}, which is {wrong[0]}"
            yield Diagnostic("config", says, span, help=f"{wrong[1]}, or leave it out")


def _there(word: str, known: Mapping[str, Any]) -> str:
    """Similar name, or all names that exist."""
    return did_you_mean(word, known) or f"there are {', '.join(f'`{name}`' for name in known)}"


def _place(file: Path, text: str, table: str, key: str | None) -> Span:
    """Where a table begins, or a key of it stands: TOML's reader keeps no places."""
    inside, line = key is None, 1
    begin = re.compile(rf"\s*(\[\s*)?[\"']?{re.escape(table)}\b")
    named = re.compile(rf"\s*[\"']?{re.escape(key or table)}\b")
    for number, content in enumerate(text.split("\n"), 1):
        if begin.match(content):
            inside, line = True, number
            if key is None or (key in content and not content.strip().startswith("[")):
                break
        elif inside and key is not None and named.match(content):
            line = number
            break
    return _span(file, text, line)


def _span(file: Path, text: str, line: int) -> Span:
    lines = text.split("\n")
    # A link may lead to what is not the project's to show.
    content = lines[line - 1] if line <= len(lines) and not leads_out(file) else ""
    return Span(str(file), line, 1, line, len(content) + 1, content)


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value))
    except ValueError:
        return "a number of thousands of digits"
