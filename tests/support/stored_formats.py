"""What every format of stored pipelines looks like, as an archive in `tests/formats`.

    python -m tests.support.stored_formats

writes the one of the format at hand, which is done once, when a format is new: each archive was
made by the version that had it, and stays as it is. It has a project with its data, and what was in
the tables of its flow.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydro_core.cli.main import main
from hydro_core.spark.store.stored_format import FORMAT, this_version
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner

FORMATS = Path(__file__).parents[1] / "formats"

PROGRAM = """
payments = source("user string, amount long, day date")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> sums
payments -> prev() -> before
payments -> persist() -> latest(by="user", order="day") -> delta() -> newest
payments -> window(2) -> aggregate(by="user", n=count()) -> recent
payments -> select("user") -> persist() -> unique() -> known
"""
"""Outputs and states in each of the ways in which there are any."""

CHANGED = PROGRAM.replace('total=sum("amount")', 'total=sum("amount"), n=count()')
ASSET = """
program: totals.hydro
ticks: {start: 2026-01-01, every: 1d, end: 2026-01-10}
inputs: {payments: {path: payments, column: day, late: correct}}
"""
DAYS = {
    1: [("ann", 5), ("bob", 2)],
    2: [("ann", 1)],
    3: [("cat", 7), ("bob", 2), ("bob", 2)],
    4: [("ann", 3)],
}
LATE = [("dan", 4)]


def land(home: Path, day: int, rows: list[tuple[str, int]], name: str = "") -> None:
    """Lands rows of a day, in a file of their own."""
    folder = home / "landing" / "payments"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"user": u, "amount": a, "day": f"2026-01-0{day}"} for u, a in rows]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{name or day}.jsonl").write_text(text)


def stored(project: Path) -> Mapping[str, list[str]]:
    """The rows of all outputs at all ticks, in an order of their own."""
    (flow,) = project_at(project).flows
    pipeline = TickRunner(project_at(project).settings).pipeline(flow)
    found: dict[str, list[str]] = {}
    for name in sorted(pipeline.output_tables):
        for tick in range(pipeline.next_tick):
            rows: list[Any] = pipeline.output(name, tick).to_pylist()
            found[f"{name} {tick}"] = sorted(json.dumps(row, default=str) for row in rows)
    return found


def make(project: Path) -> None:
    """Runs ticks, a deployment, and a correction: what is stored is of all of them."""
    folder = project / "assets" / "totals"
    folder.mkdir(parents=True)
    (folder / "asset.yaml").write_text(ASSET)
    (folder / "totals.hydro").write_text(PROGRAM)
    for day, rows in DAYS.items():
        land(project / "data", day, rows)
    os.chdir(project)
    run("backfill", "totals", "--to", "2026-01-02")
    (folder / "totals.hydro").write_text(CHANGED)
    run("deploy", "totals", "--yes")
    land(project / "data", 2, LATE, "late")
    run("backfill", "totals", "--to", "2026-01-04")


def run(*words: str) -> None:
    """Runs a command, which has to do what it is asked for."""
    code = main(list(words))
    if code:
        raise SystemExit(f"hydrotick {' '.join(words)} ended with {code}")


def archive() -> None:
    """Writes the archive of the format at hand, unless there is one."""
    target = FORMATS / f"{FORMAT}.tar.gz"
    if target.exists():
        raise SystemExit(f"{target} is there: what was written once stays as it is")
    with tempfile.TemporaryDirectory() as place:
        project = Path(place) / "shop"
        make(project)
        told = {"format": FORMAT, "hydrotick": this_version(), "rows": stored(project)}
        (project / "expected.json").write_text(json.dumps(told, indent=1) + "\n")
        with tarfile.open(target, "w:gz") as packed:
            for part in ("assets", "data/landing", "data/pipelines", "expected.json"):
                packed.add(project / part, part)
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    archive()
