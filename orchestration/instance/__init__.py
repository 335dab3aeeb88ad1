"""Dagster's instance of a project: a directory with the shipped settings, made when first
needed.
"""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path


def prepare_instance(directory: Path) -> Path:
    """Makes the instance's directory, with `dagster.yaml` as shipped unless there is one; gives
    it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / "dagster.yaml"
    if not target.exists():
        with as_file(files("orchestration.instance") / "dagster.yaml") as shipped:
            shutil.copyfile(shipped, target)
    return directory
