"""What the environment says of Spark, the same for `run` and for flows; whoever reads the
environment passes it in.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydro_core.errors import DataError
from hydro_core.settings import Settings, size_in_bytes
from hydro_core.storage.settings import StorageSettings

MASTER, MEMORY = "HYDROTICK_SPARK_MASTER", "HYDROTICK_SPARK_MEMORY"

_MASTERS = re.compile(r"local(\[\s*(\d+|\*)\s*(,\s*\d+\s*)?\])?|yarn|(local-cluster\[|\w+://).+")


def storage_of(environ: Mapping[str, str], file: Path | None = None) -> StorageSettings:
    """How object stores are reached: what `[storage]` of a project's file says, then the
    environment. What is wrong in the file is told by the project's commands.
    """
    tables: Mapping[str, Any] = {}
    if file is not None:
        with suppress(OSError, ValueError, RecursionError):
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
    said = tables.get("storage", {})
    known = {setting.name for setting in fields(StorageSettings)}
    given = {n: v for n, v in said.items() if n in known} if isinstance(said, dict) else {}
    return StorageSettings(**given).where(environ)


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The settings as the environment changes them.

    Raises:
        DataError: a variable has a value that nothing can be made of (code `config`).
    """
    found = {"master": (MASTER, wrong_master), "memory": (MEMORY, wrong_memory)}
    wanted = {}
    for setting, (name, judged) in found.items():
        value = environ.get(name)
        if value:
            wrong = judged(value)
            if wrong is not None:
                raise wrong_variable(name, value, *wrong)
            wanted[setting] = value
    return Settings().with_(**wanted)


def wrong_master(value: str) -> tuple[str, str] | None:
    """What is wrong with a master of Spark, and the cure; None if nothing is."""
    if _MASTERS.fullmatch(value):
        return None
    return "no master of Spark", "write `local[2]`, `local[*]` or a URL"


def wrong_memory(value: str) -> tuple[str, str] | None:
    """What is wrong with the memory of Spark, and the cure; None if nothing is."""
    try:
        size_in_bytes(value)
    except ValueError:
        return "no size", "write a whole number with k, m, g or t, such as `2g`"
    return None


def wrong_variable(name: str, value: str, problem: str, cure: str) -> DataError:
    """The error that says what is wrong with a variable of the environment."""
    return DataError.of(
        "config", f"{name} is `{value}`, which is {problem}", help=f"{cure}, or leave it out"
    )
