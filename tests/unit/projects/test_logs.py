"""What processes log: lines for people, or an object a line."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import Ticks
from hydrotick.project.logs import log, log_bug, open_logs
from hydrotick.project.settings import project_settings
from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import logged
from tests.support.refused import Refused

WINDOW = Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d").calendar.window


Written = Callable[[], str]
"""What has been written to standard error since it was asked last."""


@pytest.fixture
def written(capfd: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """Standard error; what logs is as it was before, afterwards."""
    known = [logging.getLogger(name) for name in ("hydrotick", "py.warnings")]
    before = [(one, one.handlers, one.propagate, one.level) for one in known]
    yield lambda: capfd.readouterr().err
    logging.captureWarnings(False)
    for one, handlers, propagate, level in before:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def told(written: Written) -> list[dict[str, object]]:
    return [json.loads(line) for line in written().splitlines()]


def reports() -> Iterator[TickReport]:
    """Two ticks of one commit, one of another, and one that fails."""
    for tick, commit in ((0, 7), (1, 7), (2, 8)):
        rows = {"landing/lines": 10, "totals": 3}
        yield TickReport(WINDOW(tick), True, rows=rows, commit=commit, seconds=1.5, empty=("a",))
    yield TickReport(WINDOW(3), False, "a check fails", "mend it")


def test_a_commit_is_one_record(written: Written) -> None:
    open_logs("json")
    assert len(list(logged(reports(), "shop", "run-1"))) == 4
    found = told(written)
    assert [one["event"] for one in found] == ["begun", "committed", "committed", "failed", "ended"]
    assert {one["flow"] for one in found} == {"shop"}
    assert {one["run"] for one in found} == {"run-1"}
    assert datetime.fromisoformat(str(found[0]["time"])).tzinfo is not None
    first, last, failed = found[1], found[2], found[3]
    assert first["ticks"] == ["2026-01-01", "2026-01-02"]
    assert (first["rows_read"], first["seconds"], first["commit"]) == (20, 1.5, 7)
    assert len(first["warnings"]) == 2  # type: ignore[arg-type]
    assert last["ticks"] == ["2026-01-03", "2026-01-03"]
    assert (failed["level"], failed["cause"], failed["cure"]) == (
        "error",
        "a check fails",
        "mend it",
    )
    assert failed["stops"] is True
    assert isinstance(found[-1]["seconds"], float)


def test_what_is_interrupted_ends(written: Written) -> None:
    open_logs("json")
    work = logged(reports(), "shop", None)
    next(work)
    work.close()
    found = told(written)
    assert [one["event"] for one in found] == ["begun", "committed", "ended"]
    assert "before its time" in str(found[-1]["message"])


def test_all_lines_are_objects(written: Written) -> None:
    open_logs("json")
    log("worker", "two\nlines", process_of="ü")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", stacklevel=1)
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        log_bug("it fails")
    said, warned, bug = told(written)
    assert (said["message"], said["process_of"]) == ("two\nlines", "ü")
    assert (warned["level"], warned["event"]) == ("warning", "log")
    assert "old" in str(warned["message"])
    assert (bug["event"], bug["level"]) == ("bug", "error")
    assert "ZeroDivisionError" in str(bug["trace"])


def test_people_read_lines(written: Written) -> None:
    open_logs("text", "hydrotick worker")
    list(logged(reports(), "shop", "run-1"))
    assert written().splitlines()[:2] == [
        "hydrotick worker: shop: begins",
        "hydrotick worker: shop: 2026-01-01 to 2026-01-02 committed in 1.5 s, 20 rows read",
    ]


def test_without_a_name_people_read_nothing(written: Written) -> None:
    open_logs("text")
    log("worker", "asked")
    assert written() == ""


def test_the_settings_say_the_form(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "assets").mkdir()
    assert project_settings({}, tmp_path).log_format == "text"
    file = tmp_path / "hydrotick.toml"
    file.write_text('[logs]\nformat = "json"\n')
    assert project_settings({}, tmp_path).log_format == "json"
    assert project_settings({"HYDROTICK_LOG_FORMAT": "text"}, tmp_path).log_format == "text"
    with refused(HydroError, "config"):
        project_settings({"HYDROTICK_LOG_FORMAT": "xml"}, tmp_path)
    file.write_text('[logs]\nformat = "xml"\n')
    with refused(HydroError, "config", at="2:1"):
        project_settings({}, tmp_path)


def test_a_worker_logs_objects(tmp_path: Path) -> None:
    """What a process says from its first line to its end."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "hydrotick.toml").write_text('[logs]\nformat = "json"\n')
    with subprocess.Popen(
        [sys.executable, "-m", "hydro_core.cli.main", "worker"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stderr is not None
        lines = [worker.stderr.readline(), worker.stderr.readline()]
        worker.terminate()
        lines += worker.stderr.readlines()
        assert worker.wait(60) == 0
    found = [json.loads(line) for line in lines]
    assert [one["event"] for one in found] == ["worker"] * 3
    assert found[0]["message"].startswith("asked at")
