"""Spark where production runs it: in the locale of cron, as a user who is only a number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.dataset
import pytest

pytestmark = pytest.mark.spark


def _run(folder: Path, before: Sequence[str] = (), **environment: str) -> list[dict[str, object]]:
    """What a program on Spark makes of a file, with names beyond ASCII."""
    folder.mkdir()
    (folder / "p.hydro").write_text('a = source("k string")\na -> out\n', encoding="utf-8")
    (folder / "ä.csv").write_text("k,t\nß,0\n", encoding="utf-8")
    given = ["--input", f"a={folder / 'ä.csv'}:t", "--out", str(folder / "Ö"), "--engine", "spark"]
    done = subprocess.run(
        [*before, sys.executable, "-m", "hydro_core.cli.main", "run", "p.hydro", *given],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    return pyarrow.dataset.dataset(folder / "Ö" / "out").to_table().to_pylist()


def test_names_beyond_ascii_in_the_locale_of_cron(tmp_path: Path) -> None:
    found = _run(tmp_path / "größe ☃", LC_ALL="C", LANG="C")
    assert found == [{"tick": 0, "k": "ß"}]


def test_a_user_without_a_name(tmp_path: Path) -> None:
    """Containers are run by a number, and their HOME is then where nobody may write."""
    as_number = [shutil.which("unshare") or "unshare", "--user", "--map-user=12345"]
    try:
        subprocess.run([*as_number, "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("processes get no namespaces of their own here: unshare is not allowed")
    found = _run(tmp_path / "project", as_number, HOME="/nowhere")
    assert found == [{"tick": 0, "k": "ß"}]
