"""What commands load before they do anything: nothing heavy that they have no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hydrotick.cli.init import put_project

HEAVY = {"dagster", "egglog", "great_expectations", "pandas", "pyarrow", "pyspark"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop") / "shop"
    put_project(made, "totals")
    return made


@pytest.mark.parametrize(
    ("words", "may"),
    [
        (["check", "assets/totals/totals.hydro"], set()),
        (["test"], set()),
        (["init", "other"], set()),
        (["plan", "totals"], HEAVY - {"dagster", "great_expectations"}),
        (["show", "totals", "totals"], HEAVY - {"dagster", "great_expectations", "egglog"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_heavy_packages_are_left_out(shop: Path, words: list[str], may: set[str]) -> None:
    script = (
        "import sys; from hydro_core.cli.main import main;"
        f"main({words!r}); print('loaded', *({HEAVY!r} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=shop, capture_output=True, text=True, check=True
    )
    (loaded,) = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert set(loaded.split()[1:]) <= may
