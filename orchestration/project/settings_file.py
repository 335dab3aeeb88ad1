"""The settings that a project's `hydrotick.toml` has.

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.functions.call import shortened
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.wrong_path import why_not
from hydro_core.project.yaml_text import leads_out

from .known_settings import FileSettings, known_settings


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


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        cure = "see that it is there, may be read, and is saved as UTF-8"
        why = why_not(file, problem) if isinstance(problem, OSError) else str(problem)
        message = f"{file} cannot be read: {why}"
        raise ProgramError.of("config", message, help=cure) from None


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
    """What a person may have meant, or what there is."""
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
