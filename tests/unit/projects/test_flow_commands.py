"""What commands about one flow say before anything of it has run."""

from __future__ import annotations

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
        (["rollback", "totals"], "no deployment of `totals` serves yet"),
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
