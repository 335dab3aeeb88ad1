"""`--stats`: what is known of the data, for commands that choose by it."""

from __future__ import annotations

import os
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.machine.environment import storage_of
from hydro_core.machine.faults import why_not
from hydro_core.optimize.cost import Statistics
from hydro_core.project.discover import SETTINGS, project_root
from hydro_core.storage.remote import DataPlace, is_remote, remote_at
from hydro_core.types.json import parse_json
from hydro_core.types.values import ValueProblem


def statistics_of(path: str | None) -> Statistics:
    """What `--stats` names; what is assumed, where it is not given.

    Raises:
        DataError: it cannot be read, or makes no sense (code `config`).
    """
    if path is None:
        return Statistics()
    place: DataPlace = Path(path)
    if is_remote(path):
        root = project_root(os.environ)
        place = remote_at(path, storage_of(os.environ, None if root is None else root / SETTINGS))
    if place.is_dir():
        from hydro_core.spark.pipeline.statistics import deployed_statistics

        return deployed_statistics(place)
    try:
        return Statistics.of(parse_json(place.read_text(encoding="utf-8")))
    except OSError as problem:
        why = why_not(place, problem) if isinstance(place, Path) else str(problem)
        cure = "name a file of JSON, or the directory of a pipeline"
        raise DataError.of(
            "config", f"--stats: `{path}` cannot be read: {why}", help=cure
        ) from None
    except (ValueError, ValueProblem) as problem:
        help_ = 'write `{"ticks": 100, "inputs": {"orders": {"rows": 1000, "history": 100000}}}`'
        raise DataError.of("config", f"{path!r}: {problem}", help=help_) from None
