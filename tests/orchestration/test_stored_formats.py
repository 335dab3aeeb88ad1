"""A pipeline that is stored in another format is refused by every command, and left as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.spark.store.layout import FORMAT, NOTE, format_of
from hydro_core.spark.store.ledger.ledger import Ledger
from hydrotick.code_location.factory import project_definitions
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner

pytestmark = pytest.mark.dagster

ASSET = """
program: totals.hydro
ticks: {start: 2026-01-01, every: 1d}
inputs: {a: {path: payments, column: day}}
"""
COMMANDS = (
    ["status"],
    ["backfill", "totals", "--to", "2026-01-01"],
    ["plan", "totals"],
    ["show", "totals", "o"],
)


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a flow's pipeline with a ledger, in a project that is the current folder."""
    flow = tmp_path / "assets" / "totals"
    flow.mkdir(parents=True)
    (flow / "asset.yaml").write_text(ASSET)
    (flow / "totals.hydro").write_text('a = source("k string, day date")\na -> o\n')
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "data" / "pipelines" / "totals"
    Ledger(directory).create()
    return directory


def _files(directory: Path) -> dict[str, bytes]:
    files = (file for file in sorted(directory.rglob("*")) if file.name != "_lock")
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def test_a_new_pipeline_says_its_format(pipeline: Path) -> None:
    assert format_of(pipeline).number == FORMAT
    assert main(["status"]) == 0


@pytest.mark.parametrize(
    ("note", "says", "cure"),
    [
        (
            json.dumps({"format": FORMAT + 8, "hydrotick": "7.4.1"}),
            f"is stored in format {FORMAT + 8}, which hydrotick 7.4.1 has written",
            "run the flow with hydrotick 7.4.1 or a later one",
        ),
        (
            json.dumps({"format": 1, "hydrotick": "0.1.0"}),
            "is stored in format 1, which hydrotick 0.1.0 has written",
            "`hydrotick reset` and then `hydrotick backfill`",
        ),
        (None, "is stored in format 0, which another hydrotick has written", "`hydrotick reset`"),
        ("{", f"{NOTE} cannot be read", "restore it from a copy of the directory"),
    ],
    ids=["newer", "older", "unsaid", "broken"],
)
def test_a_pipeline_of_another_format_is_refused(
    pipeline: Path, note: str | None, says: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (pipeline / NOTE).unlink()
    if note is not None:
        (pipeline / NOTE).write_text(note)
    before = _files(pipeline)
    for words in COMMANDS:
        assert main(words) == 1, words
        printed = "".join(capsys.readouterr())
        assert says in printed, words
        assert cure in printed, words
        assert "Traceback" not in printed
    project = project_at(Path.cwd())
    shown = project_definitions(project.flows, TickRunner(project.settings)).resolve_asset_graph()
    assert not shown.executable_asset_keys
    assert _files(pipeline) == before


def test_a_pipeline_of_another_format_starts_over(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pipeline / NOTE).write_text(json.dumps({"format": 1, "hydrotick": "0.1.0"}))
    assert main(["reset", "totals", "--yes"]) == 0, capsys.readouterr()
    assert main(["status"]) == 0
