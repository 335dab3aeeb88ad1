"""Spark under other locales than UTF-8's: names of files are what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pytest


@pytest.mark.spark
def test_names_beyond_ascii_in_the_locale_of_cron(tmp_path: Path) -> None:
    folder = tmp_path / "größe ☃"
    folder.mkdir()
    (folder / "p.hydro").write_text('a = source("k string")\na -> out\n', encoding="utf-8")
    (folder / "ä.csv").write_text("k,t\nß,0\n", encoding="utf-8")
    given = ["--input", f"a={folder / 'ä.csv'}:t", "--out", str(folder / "Ö"), "--engine", "spark"]
    done = subprocess.run(
        [sys.executable, "-m", "hydro_core.cli.main", "run", "p.hydro", *given],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", "LANG": "C"},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    written = pyarrow.dataset.dataset(folder / "Ö" / "out").to_table().to_pylist()
    assert written == [{"tick": 0, "k": "ß"}]
