"""What has nothing to compute starts no Java; and what only looks writes nothing where it looks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydrotick.cli.backfill import run_ticks
from hydrotick.cli.init import put_project
from hydrotick.instance.opening import open_instance
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

WATCHED = """
import os, sys
home = sys.argv[1]
writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
makes = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.truncate"}

def watch(event, args):
    if event == "subprocess.Popen":
        words = [str(args[0]), *map(str, args[1] or ())]
        if any("java" in word.lower() or "spark" in word.lower() for word in words):
            print("JAVA", words, flush=True)
    named = args[:2] if event == "os.rename" else args[:1]
    paths = [one for one in named if isinstance(one, (str, bytes, os.PathLike))]
    if event in makes and isinstance(args[-1], int) and args[-1] >= 0 and event != "os.truncate":
        paths = []  # named by an open folder, as the end of temporary ones elsewhere is
    below = [path for path in map(os.fsdecode, paths) if os.path.abspath(path).startswith(home)]
    is_write = event in makes or (event == "sqlite3.connect" and "mode=ro" not in str(args[0]))
    is_write |= event == "open" and isinstance(args[2], int) and bool(args[2] & writes)
    if below and is_write and IS_READ_ONLY:
        print("WRITES", event, below, flush=True)
        raise OSError(30, "Read-only file system", below[0])

sys.addaudithook(watch)
can = os.access
if IS_READ_ONLY:
    below_home = lambda path: os.path.abspath(path).startswith(home)
    os.access = lambda path, how, **more: (
        not (how & os.W_OK and below_home(path)) and can(path, how, **more)
    )
if sys.argv[2] == "dagster":
    from dagster._cli import create_dagster_cli
    os.environ["DAGSTER_HOME"] = home + "/data/dagster"
    words = ["asset", "materialize", "--select", "*", "--partition", sys.argv[3]]
    create_dagster_cli()([*words, "-m", "hydrotick.definitions"], standalone_mode=False)
    print("ends with 0")
else:
    from hydro_core.cli.main import main
    print("ends with", main(sys.argv[2:]))
"""
"""Runs a command, and tells of each process of Java and of what would be written below a home."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A project of one flow, of which all ticks are committed that may run."""
    found = tmp_path_factory.mktemp("project") / "shop"
    put_project(found, "totals")
    known = project_at(found)
    (flow,) = known.flows
    runner = TickRunner(replace(known.settings, spark_master=spark.sparkContext.master))
    last = runner.ready(flow).until - 1
    list(run_ticks(flow, runner, last, lambda _: None, together=last + 1))
    return found


@pytest.fixture
def shop(tmp_path: Path, made: Path) -> Path:
    """The same in a place of its own."""
    shutil.copytree(made, tmp_path / "shop")
    return tmp_path / "shop"


def _run(shop: Path, *words: str, read_only: bool = False) -> str:
    """What a command prints, and the processes of Java that it starts."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("IS_READ_ONLY", str(read_only)), str(shop), *words],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("backfill", "totals"), "nothing is open: 7 tick(s) are committed"),
        (("backfill", "totals", "--to", "2026-01-03"), "nothing is open"),
        (("status",), "it waits for a row of `payments`"),
        (("status", "totals", "--format", "json"), '"open": 0'),
        (("plan", "totals"), "nothing to deploy"),
        (("dagster", "2026-01-03"), "RUN_SUCCESS"),
    ],
)
def test_a_flow_without_open_ticks_starts_no_java(
    shop: Path, words: tuple[str, ...], says: str
) -> None:
    found = _run(shop, *words)
    assert says in found
    assert "JAVA" not in found
    assert "ends with 0" in found


def test_status_writes_nothing_where_nothing_may_be_written(shop: Path) -> None:
    before = _listed(shop)
    for words in (("status",), ("status", "totals", "--format", "json")):
        found = _run(shop, *words, read_only=True)
        assert "ends with 0" in found
        assert "WRITES" not in found
    assert _listed(shop) == before
    # Where Dagster's records are asked, too: they have a failure.
    with open_instance(shop / "data" / "dagster") as instance:
        failed = dg.DagsterRun(job_name="__ASSET_JOB", status=dg.DagsterRunStatus.FAILURE)
        instance.add_run(failed)
    before = _listed(shop)
    found = _run(shop, "status", read_only=True)
    assert "ends with 0" in found
    assert "WRITES" not in found
    assert _listed(shop) == before


LOOKS = (
    (("status",), "it waits for a row of `payments`"),
    (("status", "totals", "--verify"), "totals: whole"),
    (("metrics",), 'hydrotick_ticks_committed{flow="totals"} 7'),
    (("show", "totals", "totals", "--tick", "2026-01-05"), "ann"),
    (("why", "totals", "totals", "--where", "user=ann", "--tick", "2026-01-05"), "2026-01-01"),
    (("plan", "totals"), "nothing to deploy"),
    (("copy", "COPY"), "totals: copied up to tick"),
    (("restore", "COPY", "--dry-run"), "it would be restored"),
)


def test_who_only_looks_needs_no_right_to_write(shop: Path) -> None:
    """The data may be read alone, by the rights of its files: as on a mount for reading."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("this user may write everywhere")
    copy, data = shop.parent / "copy", shop / "data"
    before = _listed(data)
    _set_rights(data, 0o555)
    try:
        for words, says in LOOKS:
            there = [str(copy) if word == "COPY" else word for word in words]
            done = subprocess.run(
                [*_WITHOUT_RIGHTS, sys.executable, "-m", "hydro_core.cli.main", *there],
                cwd=shop,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == (3 if "--dry-run" in words else 0), done.stderr
            assert says in done.stdout
    finally:
        _set_rights(data, 0o755)
    assert _listed(data) == before


_WITHOUT_RIGHTS = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    if os.geteuid() == 0
    else []
)
"""Has root be held by the rights of files."""


def _set_rights(home: Path, rights: int) -> None:
    for place in (home, *home.rglob("*")):
        place.chmod(rights)


def _listed(home: Path) -> dict[str, tuple[int, int]]:
    files = (file for file in home.rglob("*") if "__pycache__" not in file.parts)
    return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}
