"""What earlier versions have stored is read, goes on, and is taken to the format at hand."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.spark.store import stored_format
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.spark.store.stored_format import FORMAT, NOTE, Migration, format_of
from hydrotick.code_location.factory import project_definitions
from hydrotick.instance.opening import open_instance
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner
from tests.support.stored_formats import DAYS, FORMATS, land, stored

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ALL = sorted(int(file.name.split(".")[0]) for file in FORMATS.glob("*.tar.gz"))


class Shop:
    """A project as an earlier version has left it."""

    def __init__(self, place: Path, number: int) -> None:
        with tarfile.open(FORMATS / f"{max(number, 1)}.tar.gz") as packed:
            packed.extractall(place, filter="data")
        self.place = place
        self.directory = place / "data" / "pipelines" / "totals"
        self.expected = json.loads((place / "expected.json").read_text())
        if number == 0:
            # The same, before a directory said so.
            (self.directory / NOTE).unlink()

    def files(self) -> Mapping[str, bytes]:
        """All that is stored, byte by byte, but for locks."""
        return {
            str(file.relative_to(self.directory)): file.read_bytes()
            for file in sorted(self.directory.rglob("*"))
            if file.is_file() and file.name != "_lock"
        }


@pytest.fixture(params=[0, *ALL])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    found = Shop(tmp_path / "shop", request.param)
    monkeypatch.chdir(found.place)
    monkeypatch.setenv("HYDROTICK_SPARK_MASTER", "local[2]")
    return found


@pytest.fixture
def newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    found = Shop(tmp_path / "shop", FORMAT)
    monkeypatch.chdir(found.place)
    return found


def _told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_every_format_is_here() -> None:
    assert list(range(1, FORMAT + 1)) == ALL
    assert set(stored_format.MIGRATIONS) == set(ALL)


def test_it_is_read_and_goes_on(
    shop: Shop, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    assert spark
    before = shop.files()
    assert stored(shop.place) == shop.expected["rows"]
    assert main(["status", "--verify"]) == 0
    assert main(["plan", "totals"]) == 0
    capsys.readouterr()
    main(["status", "--format", "json"])
    (flow,) = _told(capsys)["flows"]
    assert (flow["committed"], flow["late"], flow["undeployed"]) == (len(DAYS), {}, "")
    assert shop.files() == before

    land(shop.place / "data", 5, [("eve", 1)])
    assert main(["backfill", "totals", "--to", "2026-01-05"]) == 0
    assert main(["correct", "totals", "--from", "2026-01-03", "--yes"]) == 0
    after = stored(shop.place)
    assert {name: after[name] for name in shop.expected["rows"]} == shop.expected["rows"]
    assert any("eve" in row for row in after["sums 4"])
    program = shop.place / "assets" / "totals" / "totals.hydro"
    program.write_text(program.read_text().replace("n=count())", "m=count())"))
    assert main(["deploy", "totals", "--yes"]) == 0
    assert main(["rollback", "totals", "--yes"]) == 0
    assert stored(shop.place) == after
    assert main(["status", "--verify"]) == 0


def test_it_is_taken_to_the_format_at_hand(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    was, before = format_of(shop.directory).number, shop.files()
    assert main(["upgrade", "--dry-run", "--format", "json"]) == (3 if was < FORMAT else 0)
    (told, _) = _told(capsys)["upgraded"]
    assert len(told["steps"]) == FORMAT - was
    assert shop.files() == before
    assert main(["upgrade"]) == 0
    assert format_of(shop.directory).number == FORMAT
    capsys.readouterr()
    assert main(["upgrade", "--dry-run"]) == 0
    assert "totals: as this version has it" in capsys.readouterr().out


def test_who_is_killed_in_it_begins_anew(newest: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(directory: Path) -> None:
        (directory / "half").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr(stored_format, "FORMAT", FORMAT + 1)
    killing = {**stored_format.MIGRATIONS, FORMAT + 1: Migration("it is another", killed)}
    monkeypatch.setattr(stored_format, "MIGRATIONS", killing)
    with pytest.raises(KeyboardInterrupt):
        stored_format.migrate(newest.directory)
    assert format_of(newest.directory).number == FORMAT
    done = {**killing, FORMAT + 1: Migration("it is another", lambda _: None)}
    monkeypatch.setattr(stored_format, "MIGRATIONS", done)
    stored_format.migrate(newest.directory)
    assert format_of(newest.directory).number == FORMAT + 1


def test_one_at_work_is_not_upgraded(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    was = format_of(shop.directory).number
    with WriterLock(shop.directory):
        assert main(["upgrade", "totals"]) == (1 if was < FORMAT else 0)
    assert ("another writer is at work" in capsys.readouterr().out) == (was < FORMAT)
    assert format_of(shop.directory).number == was


def test_what_a_newer_version_has_written_is_left_alone(
    newest: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    note = newest.directory / NOTE
    note.write_text(json.dumps({"format": FORMAT + 8, "hydrotick": "7.4.1"}))
    before = newest.files()
    says = f"is stored in format {FORMAT + 8}, which hydrotick 7.4.1 has written"
    for words in (
        ["status"],
        ["backfill", "totals"],
        ["plan", "totals"],
        ["show", "totals", "sums"],
    ):
        assert main(words) == 1
        printed = capsys.readouterr()
        assert says in printed.out + printed.err
        assert "Traceback" not in printed.err
    assert main(["upgrade"]) == 1
    assert says in capsys.readouterr().out
    found = project_at(newest.place)
    shown = project_definitions(found.flows, TickRunner(found.settings)).resolve_asset_graph()
    assert not shown.executable_asset_keys
    note.write_text("{")
    assert main(["status"]) == 1
    assert f"{NOTE} cannot be read" in "".join(capsys.readouterr())
    note.write_bytes(before[NOTE])
    assert newest.files() == before


def test_dagsters_records_follow_its_release(
    newest: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = newest.place / "data" / "dagster"
    with open_instance(home) as instance:
        kind = type(instance.run_storage)
        known = instance.run_storage.alembic_version()
    assert known is not None
    assert main(["upgrade", "--dry-run"]) == 0
    done: list[bool] = []
    monkeypatch.setattr(kind, "alembic_version", lambda _: ("before", known[1]))
    monkeypatch.setattr("dagster.DagsterInstance.upgrade", lambda *_: done.append(True))
    capsys.readouterr()
    assert main(["upgrade", "--dry-run"]) == 3
    assert f"Dagster's records: runs: revision before becomes {known[1]}" in capsys.readouterr().out
    assert not done
    assert main(["upgrade"]) == 0
    assert done == [True]
