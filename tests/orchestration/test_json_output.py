"""What commands have done, as JSON: alone on standard output, with progress beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import PROGRAM

pytestmark = [pytest.mark.dagster, pytest.mark.spark]


def test_every_command_that_does_something(
    served: tuple[FlowAsset, TickRunner], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> Any:
        assert main([*words, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    flow, _ = served
    capsys.readouterr()
    done = told("backfill", "small", "--to", "2026-01-04")
    assert done.pop("seconds") > 0
    day = "2026-01-04"
    ticks = {"ticks": 1, "committed": 4, "first": day, "last": day}
    assert done == {"flow": "small", "rows": 3, **ticks}
    done = told("backfill", "small", "--to", "2026-01-02")
    assert done.pop("why") == "later ticks were not asked for"
    assert done == {"flow": "small", "ticks": 0, "committed": 4}
    assert told("deploy", "small", "--yes")["flow"] == "small"
    Path(str(flow.program)).write_text(PROGRAM.replace("sum(", "max("), encoding="utf-8")
    done = told("deploy", "small", "--yes")
    assert (done["deployed"], done["serves"]) == (1, 2)
    assert done["outputs"]["totals"]["change"] == "changed"
    done = told("rollback", "small", "--yes")
    assert (done["before"], done["serves"], done["computed_again"]) == (2, 1, 0)
    assert told("compact", "small")["compacted"]
    done = told("copy", "small", str(tmp_path / "copy"))
    (copied,) = done["flows"]
    assert (copied["tick"], copied["problems"]) == (day, [])
    assert copied["rows"] > 0
    assert len(told("reset", "small", "--yes")["removed"]) == 2
    assert told("reset", "small", "--yes")["removed"] == []
    assert told("compact", "small") == {"flow": "small", "compacted": False}
