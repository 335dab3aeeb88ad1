"""Programs that follow the one of the small flow, and what is seen of their deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.backfill import run_ticks
from tests.orchestration.small import PROGRAM, contents, opened

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
LAST = len(DAYS) - 1
REFACTORED = """
# The same, written by somebody else.
history = source("user string, amount long", name="payments") -> persist()
history -> delta() -> prev() -> before
sums = history -> aggregate(by="user", total=sum("amount"))
sums -> delta() -> totals
"""
COUNTED = PROGRAM.replace('total=sum("amount"))', 'total=sum("amount"), n=count())')
DOUBLED = PROGRAM.replace(
    "payments -> persist()",
    "payments -> with_columns(amount=lambda p: 2 * p.amount) -> persist()",
)
WITH_MORE = PROGRAM + "payments -> filter(lambda p: p.amount > 2) -> large\n"
TURNED = """
# The same as `COUNTED`, everything that has a name in another order.
payments = source("amount long, user string")
payments -> persist() -> aggregate(n=count(), by="user", total=sum("amount")) -> delta() -> totals
payments -> prev() -> before
"""
WITHOUT = PROGRAM.replace("-> before", "-> null()")
RENAMED = PROGRAM.replace("-> before", "-> earlier")
ALL_RENAMED = RENAMED.replace("-> totals", "-> sums")
SAME = {"totals": "same", "before": "same"}
STATED = {
    (PROGRAM, REFACTORED): SAME,
    (REFACTORED, PROGRAM): SAME,
    (PROGRAM, COUNTED): {"totals": "changed", "before": "same"},
    (COUNTED, PROGRAM): {"totals": "changed", "before": "same"},
    (COUNTED, REFACTORED): {"totals": "changed", "before": "same"},
    (PROGRAM, DOUBLED): {"totals": "changed", "before": "same"},
    (COUNTED, DOUBLED): {"totals": "changed", "before": "same"},
    (PROGRAM, WITH_MORE): {**SAME, "large": "new"},
    (PROGRAM, TURNED): {"totals": "changed", "before": "same"},
    (COUNTED, TURNED): SAME,
    (PROGRAM, WITHOUT): {"totals": "same", "before": "gone"},
    (PROGRAM, RENAMED): {"totals": "same", "before": "gone", "earlier": "new"},
    (PROGRAM, ALL_RENAMED): {"totals": "gone", "before": "gone", "earlier": "new", "sums": "new"},
}
"""The state of every output, by the program before and the one after."""


def as_new(tmp_path: Path, text: str) -> Mapping[str, list[str]]:
    """What the pipeline of a program has that has always run."""
    flow, runner = opened(tmp_path / "as_new")
    flow = replace(flow, expect={})
    rewrite(flow, text)
    list(run_ticks(flow, runner, LAST, lambda _: None, together=LAST + 1))
    return by_name(contents(flow, runner))


def by_name(found: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    """By what the tables are, wherever they stand."""
    return {name.rpartition("-")[0] or name: rows for name, rows in found.items()}


def rewrite(flow: FlowAsset, text: str) -> None:
    """Edits the program."""
    Path(flow.program).write_text(text, encoding="utf-8")


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    """The exit code of `hydrotick plan`, and what it prints as JSON."""
    capsys.readouterr()
    code = main(["plan", "small", *words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def rows_of(
    capsys: pytest.CaptureFixture[str], output: str, *words: str
) -> list[dict[str, object]]:
    """The rows that `hydrotick show` prints, in some order."""
    capsys.readouterr()
    assert main(["show", "small", output, *words, "--format", "json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rows"]
    return sorted(found, key=repr)
