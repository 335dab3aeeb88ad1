"""The settings that a project's `hydrotick.toml` has.

```toml
[spark]
master = "local[4]"
memory = "4g"
shuffle_partitions = 8
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from hydro_core.environment import wrong_master, wrong_memory
from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.failed_call import shortened
from hydro_core.lang.similar import did_you_mean
from hydro_core.project.within import leads_out
from hydro_core.spark_conf import wrong_conf

from .worker_settings import wrong_address, wrong_listening

SENSORS = ("running", "stopped")
COMPACT = ("daily", "weekly", "monthly")
_MOST = 2**31 - 1
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")

Wrong = tuple[str, str] | None
"""What is wrong with a value, and the cure; None if nothing is."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What the file says; None where it is silent."""

    spark_master: str | None = None
    spark_memory: str | None = None
    shuffle_partitions: int | None = None
    spark_conf: Mapping[str, Any] | None = None
    range_ticks: int | None = None
    home: str | None = None
    landing: str | None = None
    dagster: str | None = None
    pool: str | None = None
    sensors: str | None = None
    sensor_seconds: int | None = None
    compact: str | None = None
    code_url: str | None = None
    openlineage: str | None = None
    namespace: str | None = None
    worker_address: str | None = None
    worker_token_file: str | None = None
    worker_flows: int | None = None
    worker_memory: str | None = None
    worker_metrics: str | None = None

    def over(self, other: FileSettings) -> FileSettings:
        """These settings, and where they are silent what the others say."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{name: value for name, value in said.items() if value is not None})


def settings_in(file: Path) -> FileSettings:
    """The settings of a file, none if there is no file.

    Raises:
        ProgramError: everything that is wrong with it, each with its line (code `config`).
    """
    if not file.is_file():
        return FileSettings()
    text = _text(file)
    try:
        tables = tomllib.loads(text)
    except (RecursionError, ValueError) as problem:
        # It tells numbers and days that Python does not read without their place.
        line = int(found[1]) if (found := re.search(r"line (\d+)", str(problem))) else 1
        span = _span(file, text, line)
        cure = "TOML has tables `[spark]`, each once, and `name = value` a line below them"
        why = "it nests too deep" if isinstance(problem, RecursionError) else problem
        message = f"this is no TOML: {why}"
        raise ProgramError(Diagnostic("config", message, span, help=cure)) from None
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
        if (wrong := _KEYS[table][key][1](value)) is not None
    ]
    if problems:
        raise ProgramError(*problems)
    return _of_tables(tables)


def _of_tables(tables: Mapping[str, Mapping[str, Any]]) -> FileSettings:
    found = {
        _KEYS[table][key][0]: value for table, keys in tables.items() for key, value in keys.items()
    }
    return FileSettings(**found)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        cure = "see that it is there, may be read, and is saved as UTF-8"
        message = f"{file} cannot be read: {problem}"
        raise ProgramError(Diagnostic("config", message, help=cure)) from None


def _problems(file: Path, text: str, tables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for table, said in tables.items():
        if table not in _KEYS:
            says = f"there is no setting `[{table}]`" if isinstance(said, dict) else None
            says = says or f"there is no setting `{table}` outside of a table"
            span = _place(file, text, table, None)
            of = [known for known, keys in _KEYS.items() if table in keys]
            if of:
                yield Diagnostic("config", says, span, help=f"write it below `[{of[0]}]`")
            else:
                yield _wrong(says, span, table, _KEYS)
        elif not isinstance(said, dict):
            span = _place(file, text, table, None)
            yield Diagnostic("config", f"`{table}` is a table", span, help=f"write `[{table}]`")
        else:
            yield from _wrong_keys(file, text, table, said)


def _wrong_keys(file: Path, text: str, table: str, keys: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key, value in keys.items():
        span = _place(file, text, table, key)
        if key not in _KEYS[table]:
            yield _wrong(f"`[{table}]` has no setting `{key}`", span, key, _KEYS[table])
        elif (wrong := _KEYS[table][key][1](value)) is not None:
            says = f"`{key}` is {_shown(value)}, which is {wrong[0]}"
            yield Diagnostic("config", says, span, help=f"{wrong[1]}, or leave it out")


def _wrong(message: str, span: Span, word: str, known: Mapping[str, Any]) -> Diagnostic:
    there = ", ".join(f"`{name}`" for name in known)
    cure = did_you_mean(word, known) or f"there are {there}"
    return Diagnostic("config", message, span, help=cure)


def _place(file: Path, text: str, table: str, key: str | None) -> Span:
    """Where a table begins, or a key of it stands: TOML's reader keeps no places."""
    inside, line = key is None, 1
    begin = re.compile(rf"\s*(\[\s*)?[\"']?{re.escape(table)}\b")
    named = re.compile(rf"\s*[\"']?{re.escape(key or table)}\b")
    for number, content in enumerate(text.splitlines(), 1):
        if begin.match(content):
            inside, line = True, number
            if key is None or (key in content and not content.strip().startswith("[")):
                break
        elif inside and key is not None and named.match(content):
            line = number
            break
    return _span(file, text, line)


def _span(file: Path, text: str, line: int) -> Span:
    lines = text.splitlines()
    # A link may lead to what is not the project's to show.
    content = lines[line - 1] if line <= len(lines) and not leads_out(file) else ""
    return Span(str(file), line, 1, line, len(content) + 1, content)


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value))
    except ValueError:
        return "a number of thousands of digits"


def _is_text(judged: Callable[[str], Wrong]) -> Callable[[Any], Wrong]:
    return lambda value: judged(value) if isinstance(value, str) else ("no text", "quote it")


def _is_number_of(of: str) -> Callable[[Any], Wrong]:
    def judged(value: Any) -> Wrong:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST:
            return None
        return f"no number of {of}", f"write 1 or more, at most {_MOST:,}"

    return judged


def wrong_directory(value: str) -> Wrong:
    """What is wrong with a directory that the project is to use; it need not be there."""
    if _URL.match(value):
        cure = "mount it, and write the path that it is mounted at"
        return "a URL, and a directory of this machine is needed", cure
    if "\0" in value:
        return "no path: it has a NUL in it", "write the path of a directory"
    return None if value.strip() else ("empty", "write the path of a directory")


def wrong_openlineage(value: str) -> Wrong:
    """What is wrong with where OpenLineage events are to go."""
    if re.fullmatch(r"file:.+|https?://[^/\s]\S*", value):
        return None
    cure = "write `file:lineage.jsonl`, or the server's URL such as `http://marquez:5000`"
    return "no file and no server", cure


def _wrong_namespace(value: str) -> Wrong:
    return None if value.strip() else ("empty", "write the name that the jobs are found below")


def _wrong_pool(value: str) -> Wrong:
    if re.fullmatch(r"[A-Za-z0-9_/]+", value):
        return None
    return "no pool of Dagster", "take letters, digits, underscores and slashes"


def _wrong_status(value: str) -> Wrong:
    if value in SENSORS:
        return None
    return "no status of a sensor", "write `running` or `stopped`"


def _wrong_compact(value: str) -> Wrong:
    if value in COMPACT:
        return None
    return "no time to compact tables at", "write `daily`, `weekly` or `monthly`"


def _wrong_code_url(value: str) -> Wrong:
    if re.fullmatch(r"https?://[^/\s]\S*", value):
        return None
    cure = "write the address of the project's folder, as `https://github.com/acme/shop/blob/main`"
    return "no address on the web", cure


_KEYS: Mapping[str, Mapping[str, tuple[str, Callable[[Any], Wrong]]]] = {
    "spark": {
        "master": ("spark_master", _is_text(wrong_master)),
        "memory": ("spark_memory", _is_text(wrong_memory)),
        "shuffle_partitions": ("shuffle_partitions", _is_number_of("partitions")),
        "conf": ("spark_conf", wrong_conf),
    },
    "ticks": {"range": ("range_ticks", _is_number_of("ticks"))},
    "paths": {
        "home": ("home", _is_text(wrong_directory)),
        "landing": ("landing", _is_text(wrong_directory)),
        "dagster": ("dagster", _is_text(wrong_directory)),
    },
    "dagster": {
        "pool": ("pool", _is_text(_wrong_pool)),
        "sensors": ("sensors", _is_text(_wrong_status)),
        "sensor_seconds": ("sensor_seconds", _is_number_of("seconds")),
        "compact": ("compact", _is_text(_wrong_compact)),
        "code_url": ("code_url", _is_text(_wrong_code_url)),
    },
    "lineage": {
        "openlineage": ("openlineage", _is_text(wrong_openlineage)),
        "namespace": ("namespace", _is_text(_wrong_namespace)),
    },
    "worker": {
        "address": ("worker_address", _is_text(wrong_address)),
        "token_file": ("worker_token_file", _is_text(wrong_directory)),
        "flows": ("worker_flows", _is_number_of("flows")),
        "memory": ("worker_memory", _is_text(wrong_memory)),
        "metrics": ("worker_metrics", _is_text(wrong_listening)),
    },
}
"""The settings: table and key, the field that they are, and what judges a value."""
