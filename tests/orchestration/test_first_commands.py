"""Several first commands at once on a home that nobody has used, and looks at one of no rights."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hydrotick.instance.opening import open_instance, read_instance

pytestmark = pytest.mark.dagster

OPEN = """
import sys
from pathlib import Path
from hydrotick.instance.opening import open_instance
print("ready", flush=True)
sys.stdin.readline()
with open_instance(Path(sys.argv[1])) as instance:
    instance.get_run_records(limit=1)
    instance.get_asset_keys()
    instance.all_instigator_state()
"""


def let_go(at_once: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Lets processes of `OPEN` begin once all are ready, and gives what each says of errors."""
    for process in at_once:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in at_once:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate()[1] for process in at_once]


def test_a_fresh_home_is_made_by_one_of_them(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OPEN, str(tmp_path / "home")]
    at_once = [
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    told = let_go(at_once)
    assert [process.returncode for process in at_once] == [0, 0, 0], told


def test_records_that_may_not_be_written_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    with open_instance(home) as instance:
        instance.add_dynamic_partitions("seen", ["a"])
    before = _listed(home)
    monkeypatch.setattr(os, "access", lambda path, how: Path(path) != home)
    with read_instance(home) as instance:
        assert instance.get_dynamic_partitions("seen") == ["a"]
    assert _listed(home) == before


def test_to_look_makes_no_home(tmp_path: Path) -> None:
    with read_instance(tmp_path / "home") as instance:
        assert instance.get_run_records() == []
    assert not (tmp_path / "home").exists()


def _listed(home: Path) -> dict[str, tuple[int, int]]:
    return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in home.rglob("*")}
