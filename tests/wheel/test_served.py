"""Ticks as Dagster runs them where nothing but the wheel is installed: by `hydrotick dev`, and in a
Dagster project of one's own, by the launcher that Dagster has by default.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.blocks import ALL
from tests.wheel.environment import Environment
from tests.wheel.served import first_run, served

pytestmark = pytest.mark.wheel

DAYS = 7
"""So many have landed, and are over, in the project that `hydrotick init` makes."""


@pytest.fixture
def shop(environment: Environment, tmp_path: Path) -> Path:
    _printed(environment, tmp_path, "hydrotick", "init", "shop")
    return tmp_path / "shop"


def test_the_sensor_of_dev_runs_what_is_due(environment: Environment, shop: Path) -> None:
    with served(environment, ["hydrotick", "dev"], shop) as port:
        run = first_run(port)
    assert (run["jobName"], run["status"], run["says"]) == ("totals_job", "SUCCESS", [])
    status = _printed(environment, shop, "hydrotick", "status", "totals", "--verify")
    assert status.startswith("totals: whole: ")
    shown = _printed(environment, shop, "hydrotick", "show", "totals", "totals")
    assert shown.endswith("1 row(s) as of tick 2026-01-07\n")
    why = _printed(environment, shop, "hydrotick", "why", "totals", "totals", "--where", "user=cat")
    assert "It comes from 2 landed rows" in why
    _printed(environment, shop, "hydrotick", "docs", "--out", "site")
    assert "totals" in (shop / "site" / "totals.html").read_text(encoding="utf-8")


def test_a_dagster_project_of_ones_own(environment: Environment, shop: Path) -> None:
    folder = shop.parent
    (page,) = [block for block in ALL if block.file == "definitions.py"]
    (folder / "definitions.py").write_text(page.text, encoding="utf-8")
    (folder / "dagster").mkdir()
    settings = "telemetry:\n  enabled: false\n"
    (folder / "dagster" / "dagster.yaml").write_text(settings, encoding="utf-8")
    _printed(environment, folder, "dagster", "definitions", "validate", "-f", "definitions.py")
    words = ["dagster", "dev", "-f", "definitions.py"]
    with served(environment, words, folder, {"DAGSTER_HOME": str(folder / "dagster")}) as port:
        run = first_run(port)
    assert (run["jobName"], run["status"], run["says"]) == ("totals_job", "SUCCESS", [])
    assert f"{DAYS} " in _printed(environment, shop, "hydrotick", "status", "totals")


def _printed(environment: Environment, folder: Path, *words: str) -> str:
    done = environment.run(words, folder)
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout
