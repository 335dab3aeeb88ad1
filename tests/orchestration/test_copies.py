"""Copies of a project: a restored pipeline goes on as if it had never been away."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.spark.pipeline import copies as copying
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store.ledger.lock import WriterLock
from hydrotick.cli.copies import NOTE
from hydrotick.quality.judge import measure
from tests.orchestration.shop import Shop, files_of
from tests.orchestration.small import BATCHES, PROGRAM, land

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

LAST = 3
All = Mapping[str, Mapping[str, list[str]]]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> All:
    """The contents of a project that was never restored."""
    assert spark is not None
    return Shop(tmp_path_factory.mktemp("expected") / "data").run(LAST).contents()


@pytest.fixture(scope="module")
def two_ticks(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The data of a project with two ticks, and beside it a copy of them."""
    assert spark is not None
    home = tmp_path_factory.mktemp("two") / "data"
    with pytest.MonkeyPatch.context() as patch:
        Shop(home).run(1).serve(patch)
        assert main(["copy", str(home.parent / "copy")]) == 0
    return home.parent


@pytest.fixture
def shop(two_ticks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The same, of the test's own."""
    shutil.copytree(two_ticks, tmp_path / "shop")
    return Shop(tmp_path / "shop" / "data").serve(monkeypatch)


@pytest.fixture
def copy(shop: Shop) -> Path:
    return shop.settings.home.parent / "copy"


def whole(shop: Shop) -> bool:
    verified = [verify(shop.runner.directory(flow), measure) for flow in shop.flows]
    return all(not one.problems for one in verified)


def test_a_restored_project_goes_on(shop: Shop, copy: Path, expected: All) -> None:
    """Also in a process that has worked on what was replaced, such as a worker's."""
    shop.run(2)
    assert (shop.done(), shop.recorded()) == ([3, 3], [3, 3])
    assert main(["restore", str(copy), "--dry-run"]) == 3
    assert shop.done() == [3, 3]
    assert main(["restore", str(copy), "--yes"]) == 0
    assert (shop.done(), shop.recorded()) == ([2, 2], [2, 2])
    assert [place.name for place in shop.settings.pipelines.glob(".*")] == []
    assert whole(shop)
    shop.run(LAST)
    assert shop.contents() == expected
    assert shop.recorded() == [LAST + 1, LAST + 1]


def test_a_correction_and_a_deployment_are_taken_back(
    shop: Shop, copy: Path, expected: All
) -> None:
    """A late row, its correction, a deployment and a compaction, a copy of that, and back again."""
    land(shop.settings, [*BATCHES[:1], [("ann", 40)], *BATCHES[2:]])
    shop.run(2)
    assert main(["correct", "small", "--from", "2026-01-02", "--yes"]) == 0
    program = Path(shop.small.program)
    program.write_text(PROGRAM + "payments -> aggregate(n=count()) -> counted\n")
    assert main(["compact", "small", "--keep-hours", "0"]) == 0
    assert main(["deploy", "small", "--yes"]) == 0
    shop.run(2)
    changed = shop.contents()
    second = copy.with_name("second")
    assert main(["copy", str(second)]) == 0
    assert main(["restore", str(second), "--yes"]) == 0
    assert shop.contents() == changed
    # A restored deployment can be rolled back.
    program.write_text(PROGRAM)
    assert main(["rollback", "small", "--yes"]) == 0
    assert whole(shop)

    land(shop.settings)
    assert main(["restore", str(copy), "--yes"]) == 0
    assert shop.done() == [2, 2]
    assert main(["correct", "small", "--from", "2026-01-01", "--yes"]) == 0
    shop.run(LAST)
    assert shop.contents() == expected
    assert whole(shop)


def test_ticks_run_while_it_is_copied(
    shop: Shop, tmp_path: Path, expected: All, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick and a compaction between any two files: the copy is of one commit, reader first."""
    carry, begun = copying.carry, list[str]()

    def carrying(file: Path, to: Path) -> None:
        if file.parts[-4:-2] == ("small", "state") and not begun:
            begun.append(str(file))
            shop.run(2)
            assert main(["compact", "small", "--keep-hours", "0"]) == 0
        carry(file, to)

    monkeypatch.setattr(copying, "carry", carrying)
    assert main(["copy", str(tmp_path / "other")]) == 0
    assert begun
    note = json.loads((tmp_path / "other" / NOTE).read_text())
    assert note["flows"] == {"peaks": "2026-01-02", "small": "2026-01-03"}
    shop.run(LAST)
    assert main(["restore", str(tmp_path / "other"), "--yes"]) == 0
    assert (shop.done(), shop.recorded()) == ([3, 2], [3, 2])
    assert shop.run(LAST).contents() == expected


def test_it_is_restored_elsewhere(
    shop: Shop, copy: Path, expected: All, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is lost, and another one has the project at another path."""
    shutil.rmtree(shop.settings.home)
    home = tmp_path / "another" / "data"
    (home / "landing").mkdir(parents=True)
    another = Shop(home).serve(monkeypatch)
    land(another.settings)
    assert main(["restore", str(copy), "--yes"]) == 0
    assert another.done() == [2, 2]
    assert another.run(LAST).contents() == expected
    assert another.recorded() == [LAST + 1, LAST + 1]
    assert main(["status", "--verify"]) == 0


def test_some_flows_are_restored(
    shop: Shop, copy: Path, expected: All, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.run(2)
    before = files_of(shop.settings.pipelines)
    assert main(["restore", str(copy), "small", "--yes"]) == 1
    assert f"hydrotick restore {copy} small peaks" in capsys.readouterr().err
    assert main(["restore", str(copy), "nothing", "--yes"]) == 1
    assert "has no flow `nothing`" in capsys.readouterr().err
    assert files_of(shop.settings.pipelines) == before
    assert main(["restore", str(copy), "peaks", "--yes"]) == 0
    assert (shop.done(), shop.recorded()) == ([3, 2], [3, 2])
    assert shop.run(LAST).contents() == expected


def test_the_page_is_followed_word_by_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "copies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]
    assert [words[0] for words in lines] == ["copy", "restore", "restore", "status", "backfill"]
    monkeypatch.setenv("HYDROTICK_SPARK_MASTER", "local[2]")
    assert main(["init", str(tmp_path / "shop")]) == 0
    monkeypatch.chdir(tmp_path / "shop")
    assert main(["backfill", "totals", "--to", "2026-01-02"]) == 0
    for words in lines:
        assert main(words) == (3 if "--dry-run" in words else 0), words
    capsys.readouterr()
    assert main(["show", "totals", "totals"]) == 0
    assert "as of tick 2026-01-07" in capsys.readouterr().out
    tables = set(re.findall(r"^- \*\*(.+?)\*\*", page, re.MULTILINE))
    assert tables == {"Landings.", "Dagster's records.", "Tables of outputs"}
    assert {place.name for place in Path("backup/monday").iterdir()} == {"totals", NOTE}


@pytest.mark.parametrize("kind", ["*.parquet", "_ledger/*.parquet", "*.json"])
def test_a_damaged_copy_is_refused(
    shop: Shop, copy: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the hash of each file: one changed bit is enough."""
    shop.run(2)
    file = next(file for file in sorted(copy.glob(f"*/**/{kind}")))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    before = files_of(shop.settings.pipelines), shop.recorded()
    for words in (["--dry-run"], ["--yes"]):
        assert main(["restore", str(copy), *words]) == 1
        assert f"{file} is not what was copied" in capsys.readouterr().err
    assert (files_of(shop.settings.pipelines), shop.recorded()) == before


def test_a_broken_pipeline_is_not_copied(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = next((shop.runner.directory(shop.small) / "outputs" / "totals").glob("*.parquet"))
    lost.unlink()
    assert main(["copy", str(tmp_path / "other")]) == 1
    assert f"has lost its file {lost.name}" in capsys.readouterr().err
    assert not (tmp_path / "other" / NOTE).exists()


def test_a_working_writer_is_not_disturbed(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.run(2)
    with WriterLock(shop.runner.directory(shop.peaks)):
        assert main(["restore", str(copy), "--yes"]) == 1
    assert "another writer is at work" in capsys.readouterr().err
    assert shop.done() == [3, 3]


def test_a_copy_in_another_format_is_refused(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    format_note = copy / "peaks" / "_format.json"
    format_note.write_text('{"format": 99, "hydrotick": "9.9"}')
    said: dict[str, Any] = json.loads((copy / NOTE).read_text())
    said["hashes"]["peaks"] = dict(copying.hashes_of(copy / "peaks"))
    (copy / NOTE).write_text(json.dumps(said))
    assert main(["restore", str(copy), "peaks", "--yes"]) == 1
    assert "which hydrotick 9.9 has written" in capsys.readouterr().err
    assert shop.done() == [2, 2]


def test_a_folder_in_use_is_refused(
    shop: Shop, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", str(copy)]) == 1
    assert "is there already, and not an empty folder" in capsys.readouterr().err
    assert main(["copy", str(shop.settings.pipelines / "copy")]) == 1
    assert "is within" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["copy", "small"])
    assert "`small` is a flow" in capsys.readouterr().err
    assert main(["restore", str(tmp_path), "--yes"]) == 1
    assert "there is no copy" in capsys.readouterr().err
    (copy / NOTE).write_text("{")
    assert main(["restore", str(copy), "--yes"]) == 1
    assert f"{NOTE} cannot be read" in capsys.readouterr().err


def test_a_killed_copy_is_no_copy(shop: Shop, copy: Path) -> None:
    other = copy.with_name("other")
    killed(shop, "carry", 30, "copy", str(other))
    assert list(other.iterdir())
    assert main(["restore", str(other), "--yes"]) == 1
    assert (shop.done(), whole(shop)) == ([2, 2], True)


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("carry", 30),
        ("rename", 1),
        ("rename", 3),
    ],
)
def test_a_killed_restoration_is_ended_by_the_next(
    shop: Shop, copy: Path, expected: All, step: str, count: int
) -> None:
    """In between a flow is as it was, or has no ledger, and then no tick of it runs."""
    shop.run(2)
    killed(shop, step, count, "restore", str(copy), "--yes")
    assert all(done in (0, 2, 3) for done in shop.done())
    assert main(["restore", str(copy), "--yes"]) == 0
    assert (shop.done(), shop.recorded()) == ([2, 2], [2, 2])
    assert [place.name for place in shop.settings.pipelines.glob(".*")] == []
    assert shop.run(LAST).contents() == expected


def killed(shop: Shop, step: str, count: int, *words: str) -> None:
    """Runs a command in a process that is killed at a step."""
    line = [str(shop.settings.home), step, str(count), *words]
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.killed_copying", *line],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
