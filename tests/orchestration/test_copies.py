"""Copies of a project: what is restored goes on as if it had never been away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.verify import verify
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.lock import WriterLock
from hydrotick.copies.copying import copy_project
from hydrotick.copies.note import NOTE, note_in
from hydrotick.instance.opening import open_instance
from hydrotick.quality.facts import measure
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
    """What a project has that was never restored."""
    assert spark is not None
    return Shop(tmp_path_factory.mktemp("expected") / "data").run(LAST).contents()


@pytest.fixture(scope="module")
def two_ticks(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The data of a project with two ticks, and beside it a copy of them."""
    assert spark is not None
    home = tmp_path_factory.mktemp("two") / "data"
    copy_project(Shop(home).run(1).project, home.parent / "copy")
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
    found = [verify(shop.runner.directory(flow), measure) for flow in shop.flows]
    return all(not one.problems for one in found)


def test_what_is_restored_goes_on(shop: Shop, copy: Path, expected: All) -> None:
    shop.run(2)
    assert (shop.done(), shop.recorded()) == ([3, 3], [3, 3])
    assert main(["restore", str(copy), "--dry-run"]) == 3
    assert shop.done() == [3, 3]
    assert main(["restore", str(copy), "--yes"]) == 0
    # Also in a process that has worked on what was replaced.
    assert (shop.done(), shop.recorded()) == ([2, 2], [2, 2])
    assert [place.name for place in shop.settings.pipelines.glob(".*")] == []
    assert whole(shop)
    shop.run(LAST)
    assert shop.contents() == expected
    assert shop.recorded() == [LAST + 1, LAST + 1]


def test_all_that_is_done_to_flows_is_taken_back(shop: Shop, copy: Path, expected: All) -> None:
    """A late row, its correction, a deployment and a compaction, a copy of that, and back again."""
    land(shop.settings, [*BATCHES[:1], [("ann", 40)], *BATCHES[2:]])
    shop.run(2)
    assert main(["correct", "small", "--from", "2026-01-02", "--yes"]) == 0
    program = Path(shop.small.program)
    program.write_text(PROGRAM + "payments -> aggregate(n=count()) -> counted\n")
    assert main(["deploy", "small", "--yes"]) == 0
    assert main(["compact", "small", "--keep-hours", "0"]) == 0
    shop.run(2)
    changed = shop.contents()
    shutil.copytree(copy, copy.with_name("first"))
    assert main(["copy", str(copy)]) == 0
    assert main(["restore", str(copy), "--yes"]) == 0
    assert shop.contents() == changed

    program.write_text(PROGRAM)
    land(shop.settings)
    assert main(["restore", str(copy.with_name("first")), "--yes"]) == 0
    assert shop.done() == [2, 2]
    shop.run(LAST)
    assert shop.contents() == expected
    assert whole(shop)


def test_what_is_new_is_copied_alone(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {file.stat().st_ino for file in copy.rglob("*")}
    shop.run(2)
    assert main(["copy", str(copy), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (moment,) = (place for place in copy.iterdir() if place.is_dir())
    files = [file for file in moment.rglob("*") if file.is_file()]
    new = [file for file in files if file.stat().st_ino not in held]
    sizes = [file.stat().st_size for file in new]
    assert told["files"] == len(files)
    assert (told["new_files"], told["new_bytes"]) == (len(new), sum(sizes))
    # Of each table an entry and a file at most, lists of what has landed, and the databases.
    tables = sum(len(_last(flow, shop).versions) + 1 for flow in shop.flows)
    assert 0 < len(new) <= 2 * tables + 8 < len(files)
    assert [flow["tick"] for flow in told["flows"]] == ["2026-01-03", "2026-01-03"]
    # What is not needed any more goes.
    assert main(["compact", "small", "--keep-hours", "0"]) == 0
    assert main(["copy", str(copy)]) == 0
    (moment,) = (place for place in copy.iterdir() if place.is_dir())
    lost = {file.name for file in files} - {file.name for file in moment.rglob("*")}
    assert any(name.endswith(".parquet") for name in lost)


def _last(flow: FlowAsset, shop: Shop) -> Commit:
    commit = shop.runner.deployments.commit(flow)
    assert commit is not None
    return commit


def test_ticks_run_while_it_is_copied(shop: Shop, copy: Path, expected: All) -> None:
    """What the flow that is read commits meanwhile, its reader has not seen: never otherwise."""

    def meanwhile(part: str) -> None:
        if part == "small":
            shop.run(2)

    done = copy_project(shop.project, copy, meanwhile)
    assert done.note.flows == {"peaks": "2026-01-02", "small": "2026-01-03"}
    shop.run(LAST)
    assert main(["restore", str(copy), "--yes"]) == 0
    assert shop.done() == [3, 2]
    assert shop.recorded() == [3, 2]
    assert shop.run(LAST).contents() == expected


def test_it_is_restored_elsewhere(
    shop: Shop, copy: Path, expected: All, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is lost, and another one has the project at another path."""
    shutil.rmtree(shop.settings.home)
    home = tmp_path / "another" / "data"
    (home / "landing").mkdir(parents=True)
    another = Shop(home).serve(monkeypatch)
    assert main(["restore", str(copy), "--yes"]) == 0
    assert (another.done(), another.recorded()) == ([2, 2], [2, 2])
    assert another.run(LAST).contents() == expected
    assert another.recorded() == [LAST + 1, LAST + 1]
    assert main(["status", "--verify"]) == 0
    # Its copies go on where the others were.
    assert main(["copy", str(copy)]) == 0


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


@pytest.mark.slow
def test_the_copy_of_a_flow_is_restored(
    shop: Shop, tmp_path: Path, expected: All, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "peaks"
    assert main(["copy", "peaks", str(one)]) == 0
    shop.run(2)
    assert main(["restore", str(one), "--yes"]) == 1
    assert "has the copy of one flow" in capsys.readouterr().err
    assert main(["restore", str(one), "peaks", "--yes"]) == 0
    assert (shop.done(), shop.recorded()) == ([3, 2], [3, 2])
    assert shop.run(LAST).contents() == expected


@pytest.mark.parametrize(
    "kind",
    [
        "*.parquet",
        pytest.param("_ledger/*.parquet", marks=pytest.mark.slow),
        pytest.param("*.json", marks=pytest.mark.slow),
        pytest.param("event_log.db", marks=pytest.mark.slow),
    ],
)
def test_what_is_damaged_is_told_before_anything_goes(
    shop: Shop, copy: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
    # The next copy has it anew.
    assert main(["copy", str(copy)]) == 0
    assert main(["restore", str(copy), "--dry-run"]) == 3


def test_who_works_on_a_flow_is_not_disturbed(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.run(2)
    with WriterLock(shop.runner.directory(shop.peaks)):
        assert main(["restore", str(copy), "--yes"]) == 1
    assert "another writer is at work" in capsys.readouterr().err
    with open_instance(shop.settings.dagster_home) as instance:
        run = instance.create_run_for_job(dg.GraphDefinition("other").to_job())
        instance.report_run_canceling(run)
    assert main(["restore", str(copy), "--yes"]) == 1
    assert f"run {run.run_id}" in capsys.readouterr().err
    assert shop.done() == [3, 3]


def test_what_a_newer_version_wrote_is_refused(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = shop.runner.directory(shop.peaks) / "_format.json"
    note.write_text('{"format": 99, "hydrotick": "9.9"}')
    shutil.copytree(shop.runner.directory(shop.peaks), copy.with_name("one"))
    note.write_text('{"format": 1, "hydrotick": "0.1"}')
    assert main(["restore", str(copy.with_name("one")), "peaks", "--yes"]) == 1
    assert "which hydrotick 9.9 has written" in capsys.readouterr().err
    said = json.loads((copy / NOTE).read_text())
    (copy / NOTE).write_text(json.dumps({**said, "format": 99, "hydrotick": "9.9"}))
    assert main(["restore", str(copy), "--yes"]) == 1
    assert "which hydrotick 9.9 has made" in capsys.readouterr().err
    assert main(["copy", str(copy)]) == 1
    assert shop.done() == [2, 2]


def test_a_place_of_something_else_is_refused(
    shop: Shop, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    assert main(["copy", str(tmp_path / "there")]) == 1
    assert "no copy of a project" in capsys.readouterr().err
    assert main(["copy", str(shop.settings.home / "copy")]) == 1
    assert "is within" in capsys.readouterr().err
    said = json.loads((copy / NOTE).read_text())
    (copy / NOTE).write_text(json.dumps({**said, "flows": {"others": "2026-01-01"}}))
    assert main(["copy", str(copy)]) == 1
    assert "the copy of another project" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["copy", "small"])
    assert "`small` is a flow" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "there"), "--yes"]) == 1
    assert "there is no copy" in capsys.readouterr().err


def test_records_are_read_while_they_are_written(shop: Shop, copy: Path) -> None:
    """A write that goes on is not in the copy; the copied database is whole."""
    database = shop.settings.dagster_home / "event_log.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as open_:
        open_.execute("BEGIN")
        open_.execute("DELETE FROM event_logs")
        assert main(["copy", str(copy)]) == 0
        open_.execute("ROLLBACK")
    shop.run(2)
    assert main(["restore", str(copy), "--yes"]) == 0
    assert shop.recorded() == [2, 2]


def test_records_of_somebody_else_stay(
    shop: Shop, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.settings.dagster_home / "dagster.yaml.copied").unlink()
    assert main(["copy", str(copy)]) == 0
    assert "copy it by itself" in capsys.readouterr().out
    note = note_in(copy)
    assert note is not None
    assert not note.records
    shop.run(2)
    assert main(["restore", str(copy), "--yes"]) == 0
    # What is there now is recorded anew.
    assert (shop.done(), shop.recorded()) == ([2, 2], [2, 2])


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("dagster", marks=pytest.mark.slow),
        pytest.param("peaks", marks=pytest.mark.slow),
        "small",
        pytest.param("written", marks=pytest.mark.slow),
        pytest.param("named", marks=pytest.mark.slow),
    ],
)
def test_killed_within_a_copy(shop: Shop, copy: Path, expected: All, moment: str) -> None:
    before = note_in(copy)
    shop.run(2)
    killed("copy", shop, copy, moment)
    assert (note_in(copy) == before) == (moment != "named")
    assert len([place for place in copy.iterdir() if place.is_dir()]) == 2
    assert main(["restore", str(copy), "--dry-run"]) == 3
    if moment in ("small", "named"):
        assert main(["copy", str(copy)]) == 0
        assert len([place for place in copy.iterdir() if place.is_dir()]) == 1
    shop.run(LAST)
    assert main(["restore", str(copy), "--yes"]) == 0
    there = 3 if moment in ("small", "named") else 2
    assert (shop.done(), shop.recorded()) == ([there] * 2, [there] * 2)
    assert shop.run(LAST).contents() == expected


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("beside small", marks=pytest.mark.slow),
        pytest.param("dagster", marks=pytest.mark.slow),
        pytest.param("peaks", marks=pytest.mark.slow),
        "small",
        pytest.param("exchanged", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("again", [pytest.param(True, marks=pytest.mark.slow), False])
def test_killed_within_a_restoration(
    shop: Shop, copy: Path, expected: All, moment: str, *, again: bool
) -> None:
    """Ticks go on from what there is, and restoring again completes it."""
    shop.run(2)
    killed("restore", shop, copy, moment)
    done = {"small": [3, 2], "exchanged": [2, 2]}.get(moment, [3, 3])
    assert shop.done() == done
    assert whole(shop)
    if again:
        assert main(["restore", str(copy), "--yes"]) == 0
        assert (shop.done(), shop.recorded()) == ([2, 2], [2, 2])
        assert [place.name for place in shop.settings.pipelines.glob(".*")] == []
    assert shop.run(LAST).contents() == expected
    assert shop.recorded() == [LAST + 1, LAST + 1]


def killed(what: str, shop: Shop, copy: Path, moment: str) -> None:
    """Copies or restores in a process that is killed at a moment."""
    words = [what, str(shop.settings.home), str(copy), moment]
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.killed_copying", *words],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
