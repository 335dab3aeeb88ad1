"""What commands about one flow say before anything of it has run."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydrotick.cli.init import put_project
from hydrotick.cli.status import FlowStatus, _details


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_project(tmp_path, "totals")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rollback", "totals"], "no deployment of `totals` is active yet"),
        (["show", "totals", "totals"], "no tick of `totals` is committed"),
        (["correct", "totals", "--from", "2026-01-01"], "there is nothing to correct"),
        (["backfill", "totals", "--to", "2030-01-01"], "tick 2030-01-01 may not run yet"),
        (["backfill", "totals", "--from", "2026-01-05"], "2026-01-01 before it is open"),
    ],
)
def test_what_is_refused_names_a_cure(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    shown = capsys.readouterr().err
    assert says in shown
    assert "help: " in shown


def test_a_plan_says_what_is_incremental(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "totals"]) == 3
    assert capsys.readouterr().out.endswith("  notes     all of it is incremental\n")


@pytest.mark.parametrize(
    ("landed", "says"),
    [
        ({"a.csv": "day,user\n2026-01-01,ann\n"}, "the column `amount` is missing"),
        ({"a.csv": "user,amount\nann,1\n"}, "the tick column `day` is missing"),
        ({"a.parquet": "no parquet"}, "error[input]"),
        ({"a.csv": "day,user,amount\n", "b.parquet": ""}, "several kinds"),
    ],
)
def test_a_flow_of_which_it_is_not_known_what_may_run_does_not_go_on(
    landed: dict[str, str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data" / "landing" / "payments"
    (folder / "2026-01.csv").unlink()
    for name, text in landed.items():
        (folder / name).write_text(text)
    assert main(["status"]) == 1
    shown = capsys.readouterr().out
    assert "next: which ticks may run is not known: error" in shown
    assert says in shown
    assert main(["status", "totals", "--format", "json"]) == 1
    assert '"goes_on": false' in capsys.readouterr().out


@pytest.mark.parametrize("holds", [None, [], [".gitkeep"]])
def test_a_flow_that_waits_for_its_first_rows_goes_on(
    holds: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = tmp_path / "data" / "landing" / "payments"
    (landing / "2026-01.csv").unlink()
    if holds is None:
        landing.rmdir()
    for name in holds or ():
        (landing / name).touch()
    assert main(["status"]) == 0
    assert "it waits for `payments`: no row has landed at payments" in capsys.readouterr().out


def test_flows_of_one_name_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "assets" / "totals"
    for folder in ("another", "third"):
        there = shutil.copytree(first, tmp_path / "assets" / folder)
        (there / "asset.yaml").unlink()
        (there / "asset.py").write_text(
            "from datetime import datetime\n"
            "from hydro_core import FlowAsset, Landing, Ticks\n"
            "flow = FlowAsset(name='totals', program='totals.hydro', "
            "ticks=Ticks(datetime(2026, 1, 1)), inputs={'payments': Landing('payments', 'day')})\n"
        )
    for words in (["status"], ["check"]):
        assert main(words) == 1
        shown = capsys.readouterr()
        (said,) = [t for t in (shown.out + shown.err).splitlines() if "there are 3 flows" in t]
        assert "`totals`: in " in said
        assert said.count(" and in ") == 2


@pytest.mark.parametrize(
    ("deployable", "cure"), [(True, "`hydrotick deploy totals` does it"), (False, "says where")]
)
def test_what_cannot_be_deployed_is_not_told_to_be(deployable: bool, cure: str) -> None:
    given: dict[str, Any] = {field.name: () for field in fields(FlowStatus)}
    found = FlowStatus(
        **{
            **given,
            "flow": "totals",
            "failed": None,
            "late": {},
            "events": {},
            "spark_conf": {},
            "open": 0,
            "next": "",
            "undeployed": "it differs",
            "deployable": deployable,
        }
    )
    (said,) = [line for line in _details(found) if line.startswith("changed: it differs")]
    assert said.endswith(cure)
