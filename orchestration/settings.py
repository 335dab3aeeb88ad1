"""Where the project keeps its things and how much of the machine it may take: the only reader of
the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hydro_core.environment import MASTER, MEMORY, settings_of, wrong_variable

_HOME, _RANGE_TICKS = "HYDROTICK_HOME", "HYDROTICK_RANGE_TICKS"
_WHY_ROWS, _SAMPLE_KEYS = "HYDROTICK_WHY_ROWS", "HYDROTICK_SAMPLE_KEYS"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of one deployment; each has an environment variable of the name in brackets.

    `home` [HYDROTICK_HOME] holds landing tables, pipelines and Dagster's own records.
    `spark_master` [HYDROTICK_SPARK_MASTER] and `spark_memory` [HYDROTICK_SPARK_MEMORY] say where
    Spark runs and what it may take. `range_ticks` [HYDROTICK_RANGE_TICKS] says how many ticks are
    computed together where many are asked for. `why_rows` [HYDROTICK_WHY_ROWS] says how many rows
    of an input `hydrotick why` looks at. `sample_keys` [HYDROTICK_SAMPLE_KEYS] says for how many
    keys a tick's outputs are judged, 0 for none, where the flow does not. Of a failed tick the
    command `failure_command` [HYDROTICK_FAILURE_COMMAND] is told on its standard input, and the
    address `failure_webhook` [HYDROTICK_FAILURE_WEBHOOK] by a POST, as a JSON object.
    """

    home: Path = Path("data")
    spark_master: str | None = None
    spark_memory: str | None = None
    range_ticks: int = 100
    why_rows: int = 100_000
    sample_keys: int = 8
    failure_command: str | None = None
    failure_webhook: str | None = None

    @property
    def landing(self) -> Path:
        """Tables that outside systems write."""
        return self.home / "landing"

    @property
    def pipelines(self) -> Path:
        """A directory for each flow: its state, outputs and ledger."""
        return self.home / "pipelines"

    @property
    def dagster_home(self) -> Path:
        """Dagster's instance: runs, events, schedules."""
        return self.home / "dagster"


def project_settings(environ: Mapping[str, str] | None = None) -> ProjectSettings:
    """The settings as the environment gives them, defaults where it is silent.

    Raises:
        DataError: a variable has a value that nothing can be made of (code `config`).
    """
    environ = os.environ if environ is None else environ
    settings_of(environ)
    return ProjectSettings(
        home=_home(environ.get(_HOME) or "data"),
        spark_master=environ.get(MASTER) or None,
        spark_memory=environ.get(MEMORY) or None,
        range_ticks=_number(_RANGE_TICKS, environ.get(_RANGE_TICKS) or "100", "ticks"),
        why_rows=_number(_WHY_ROWS, environ.get(_WHY_ROWS) or "100000", "rows"),
        sample_keys=_number(_SAMPLE_KEYS, environ.get(_SAMPLE_KEYS) or "8", "keys", least=0),
        failure_command=environ.get("HYDROTICK_FAILURE_COMMAND"),
        failure_webhook=environ.get("HYDROTICK_FAILURE_WEBHOOK"),
    )


def _home(value: str) -> Path:
    if _URL.match(value):
        raise wrong_variable(
            _HOME,
            value,
            "a URL, and a home is a directory of this machine",
            "mount it, and write the path that it is mounted at",
        )
    home = Path(value).absolute()
    if home.exists() and not home.is_dir():
        raise wrong_variable(_HOME, value, "a file", "write the path of a directory")
    return home


def _number(name: str, value: str, of: str, *, least: int = 1) -> int:
    if not value.isdecimal() or int(value) < least:
        raise wrong_variable(name, value, f"no number of {of}", f"write {least} or more")
    return int(value)
