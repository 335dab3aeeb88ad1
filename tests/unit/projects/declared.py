"""Asset folders of projects, for tests that find and read them."""

from __future__ import annotations

from pathlib import Path

PROGRAM = """
payments = source("user string, day date, amount long, rate double, paid boolean")
payments -> totals
"""


def declare_py(root: Path, folder: str, name: str) -> Path:
    """A folder with an `asset.py`, which holds one flow under two names."""
    made = _folder(root, folder)
    (made / "asset.py").write_text(
        "from datetime import datetime\n"
        "from pathlib import Path\n"
        "from hydro_core import FlowAsset, Landing, Ticks\n"
        f'X = FlowAsset(name="{name}", program=Path("totals.hydro"), '
        'ticks=Ticks(datetime(2026, 1, 1)), inputs={"payments": Landing("p")})\n'
        "Y = X\n",
        encoding="utf-8",
    )
    return made


def declare_yaml(
    root: Path,
    folder: str,
    program: str = "totals.hydro",
    ticks: str = "{start: 2026-01-01}",
    more: str = "",
) -> Path:
    """A folder with an `asset.yaml`."""
    made = _folder(root, folder)
    inputs = "{payments: {path: payments, column: day}}"
    text = f"program: {program}\nticks: {ticks}\ninputs: {inputs}\n{more}"
    (made / "asset.yaml").write_text(text, encoding="utf-8")
    return made


def _folder(root: Path, folder: str) -> Path:
    made = root / "assets" / folder
    made.mkdir(parents=True)
    (made / "totals.hydro").write_text(PROGRAM, encoding="utf-8")
    return made
