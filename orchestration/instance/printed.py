"""What runs print, kept in files of the instance for the pages of the runs.

Dagster's own way also copies it to the terminal, by four processes for each run. They take a signal
of the terminal for theirs, so Ctrl-C would end them with tracebacks, and each costs a tick time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dagster._core.execution.compute_logs import redirect_to_file
from dagster._core.instance.ref import compute_logs_directory
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType
from dagster._core.storage.local_compute_log_manager import (
    IO_TYPE_EXTENSION,
    LocalComputeLogManager,
)
from dagster._serdes import ConfigurableClassData


class Printed(LocalComputeLogManager):
    """The storage that the shipped `dagster.yaml` names; its files are where Dagster's own are."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Printed:
        """The storage in the instance's directory, `base_dir`."""
        directory = compute_logs_directory(config_value["base_dir"])
        return cls(**{**config_value, "base_dir": directory}, inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        """Within it, what this process prints goes to the files of `log_key`."""
        out, err = (
            Path(self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[kind]))
            for kind in (ComputeIOType.STDOUT, ComputeIOType.STDERR)
        )
        out.parent.mkdir(parents=True, exist_ok=True)
        with redirect_to_file(sys.stdout, out), redirect_to_file(sys.stderr, err):
            yield CapturedLogContext(log_key)
        # Its presence says that the files are complete.
        Path(self.complete_artifact_path(log_key)).touch()
