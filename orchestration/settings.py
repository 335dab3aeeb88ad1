"""Where the project keeps its things and how much of the machine it may take: the only reader of
the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of one deployment; each has an environment variable of the name in brackets.

    `home` [HYDROTICK_HOME] holds landing tables, pipelines and Dagster's own records.
    `spark_master` [HYDROTICK_SPARK_MASTER] and `spark_memory` [HYDROTICK_SPARK_MEMORY] say where
    Spark runs and what it may take. `range_ticks` [HYDROTICK_RANGE_TICKS] says how many ticks are
    computed together where many are asked for. Of a failed tick the command `failure_command`
    [HYDROTICK_FAILURE_COMMAND] is told on its standard input, and the address `failure_webhook`
    [HYDROTICK_FAILURE_WEBHOOK] by a POST, as a JSON object.
    """

    home: Path = Path("data")
    spark_master: str | None = None
    spark_memory: str | None = None
    range_ticks: int = 100
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
    """The settings as the environment gives them, defaults where it is silent."""
    environ = os.environ if environ is None else environ
    return ProjectSettings(
        home=Path(environ.get("HYDROTICK_HOME", "data")).absolute(),
        spark_master=environ.get("HYDROTICK_SPARK_MASTER"),
        spark_memory=environ.get("HYDROTICK_SPARK_MEMORY"),
        range_ticks=max(1, int(environ.get("HYDROTICK_RANGE_TICKS", "100"))),
        failure_command=environ.get("HYDROTICK_FAILURE_COMMAND"),
        failure_webhook=environ.get("HYDROTICK_FAILURE_WEBHOOK"),
    )
