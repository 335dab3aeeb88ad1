"""Who may read and write what is stored says the umask of the process, and nothing else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestration.small import opened

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

SCRIPT = """
import os, sys
from pathlib import Path
os.umask(int(sys.argv[2], 8))
from hydrotick.cli.backfill import run_ticks
from tests.orchestration.small import opened
flow, runner = opened(Path(sys.argv[1]))
list(run_ticks(flow, runner, 1, lambda _: None))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0o002, 0o077])
def test_all_that_is_stored_has_the_rights_of_the_umask(tmp_path: Path, mask: int) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", SCRIPT, str(tmp_path), f"{mask:o}"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    flow, runner = opened(tmp_path)
    stored = [runner.directory(flow), *runner.directory(flow).rglob("*")]
    assert len(stored) > 20
    wrong = {
        str(path.relative_to(tmp_path)): oct(found)
        for path in stored
        for found in [stat.S_IMODE(path.stat().st_mode)]
        if found != (0o777 if path.is_dir() else 0o666) & ~mask
    }
    assert not wrong
    assert os.access(runner.directory(flow), os.W_OK)
