"""Flows that read outputs of other flows, as a project declares them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hydro_core.catalog.forms import Form
from hydro_core.errors import ProgramError
from hydro_core.project.discover import DiscoveredFlows, found_in
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydrotick.deploy.deployments import Deployments
from tests.support.refused import Refused

DAYS = "{start: 2026-01-01}"


def declare(root: Path, name: str, inputs: str, ticks: str = DAYS) -> None:
    folder = root / "assets" / name
    folder.mkdir(parents=True)
    text = f"program: {name}.hydro\nticks: {ticks}\ninputs: {inputs}\n"
    (folder / "asset.yaml").write_text(text, encoding="utf-8")
    (folder / f"{name}.hydro").write_text("x = source('n long')\nx -> y\n", encoding="utf-8")


def wrong(found: DiscoveredFlows) -> dict[str, str]:
    return {flow.name: str(flow.error) for flow in found.broken}


def test_an_input_is_an_output_of_another_flow(tmp_path: Path) -> None:
    declare(tmp_path, "first", "{x: {path: x, column: day}}")
    declare(tmp_path, "second", "{x: {flow: first, output: y}, y: {flow: first, late: next}}")
    found = found_in(tmp_path)
    assert not found.broken
    first, second = found.flows
    assert second.inputs == {"x": FlowOutput("first", "y"), "y": FlowOutput("first", "y", "next")}
    assert not second.landings
    assert not first.reads
    assert str(second.inputs["x"]) == "the output `y` of `first`"


@pytest.mark.parametrize(
    "ticks",
    [
        "{start: 2025-12-24}",
        "{start: 2026-02-01, delay: 2h}",
        "{start: 2026-01-01, every: 15m}",
        "{start: 2026-01-01 09:00, every: 6h, end: 2026-02-01}",
    ],
)
def test_a_flow_may_begin_at_another_tick_and_have_shorter_ones(tmp_path: Path, ticks: str) -> None:
    declare(tmp_path, "first", "{x: {path: x, column: day}}")
    declare(tmp_path, "second", "{x: {flow: first, output: y}}", ticks)
    found = found_in(tmp_path)
    assert not found.broken
    first, second = found.flows
    assert second.numbered_by("x") == first.ticks.calendar
    assert first.numbered_by("x") is None


@pytest.mark.parametrize(
    ("inputs", "ticks", "says"),
    [
        ("{x: {flow: frist}}", DAYS, "there is no flow `frist`"),
        ("{x: {flow: second}}", DAYS, "a circle: it reads `second`"),
        ("{x: {flow: first}}", "{start: 2026-01-02 06:00}", "do not fit: every 1d from 2026-01-01"),
        ("{x: {flow: first}}", "{start: 2026-01-05, every: 1w}", "shorter ticks than `first`"),
        ("{x: {flow: first}}", "{start: 2026-01-01, zone: Asia/Tokyo}", "do not fit"),
        (
            "{x: {flow: first}}",
            "{start: 2026-01-01, every: 1h, zone: Asia/Tokyo}",
            "the same `every` and `zone`",
        ),
        ("{x: {flow: first, column: day}}", DAYS, "the input `x` has no `column`"),
    ],
)
def test_what_does_not_fit_is_told_with_its_line(
    tmp_path: Path, inputs: str, ticks: str, says: str
) -> None:
    declare(tmp_path, "first", "{x: {path: x, column: day}}")
    declare(tmp_path, "second", inputs, ticks)
    found = found_in(tmp_path)
    assert [flow.name for flow in found.flows] == ["first"]
    assert says in wrong(found)["second"]
    assert "asset.yaml:3" in wrong(found)["second"]
    assert "help: " in wrong(found)["second"]


def test_what_is_wrong_with_the_ticks_of_one_flow_is_no_other_flows_error(tmp_path: Path) -> None:
    declare(tmp_path, "first", "{x: {path: x, column: day}}", "{start: 2026-01-01, every: 2d}")
    declare(tmp_path, "second", "{x: {flow: first, output: y}}")
    declare(tmp_path, "third", "{x: {path: x, column: day}}")
    found = found_in(tmp_path)
    assert [flow.name for flow in found.flows] == ["third"]
    assert "flow `first`, `ticks`: `every`: ticks of 2d have no schedule" in wrong(found)["first"]
    assert "asset.yaml:2" in wrong(found)["first"]
    assert "the flow `first` cannot be loaded" in wrong(found)["second"]


def test_flows_in_a_circle_are_all_wrong_and_others_are_not(tmp_path: Path) -> None:
    declare(tmp_path, "a", "{x: {flow: b, output: y}}")
    declare(tmp_path, "b", "{x: {flow: c, output: y}}")
    declare(tmp_path, "c", "{x: {flow: a, output: y}}")
    declare(tmp_path, "d", "{x: {flow: a, output: y}}")
    declare(tmp_path, "e", "{x: {path: x, column: day}}")
    found = found_in(tmp_path)
    assert "it reads `b`, which reads `c`, which reads `a`" in wrong(found)["a"]
    assert {"a", "b", "c"} <= set(wrong(found))
    assert [flow.name for flow in found.flows] == ["d", "e"]


def test_a_flow_that_reads_one_that_is_broken_says_so(tmp_path: Path) -> None:
    declare(tmp_path, "a", "{x: {path: x, colum: day}}")
    declare(tmp_path, "b", "{x: {flow: a, output: y}}")
    assert "the flow `a` cannot be loaded" in wrong(found_in(tmp_path))["b"]


def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> tuple[Any, FlowAsset]:
    """The deployments of a project whose flow `first` has the output `y` in a mode, and `second`,
    which reads it.
    """
    declare(tmp_path, "first", "{x: {path: x, column: day}}")
    declare(tmp_path, "second", "{x: {flow: first, output: y}}")
    tables = {"outputs/y": {"of": "y", "role": "output", "mode": mode}}
    commit = SimpleNamespace(tables=tables, versions={"outputs/y": 3})
    monkeypatch.setattr(Deployments, "ledger_of", lambda _self, _flow: SimpleNamespace(last=commit))
    return Deployments(tmp_path / "pipelines"), found_in(tmp_path).flows[1]


@pytest.mark.parametrize("columns", [None, (), ("n",)])
def test_a_log_of_changes_is_read_by_who_reads_how_often_a_row_comes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: tuple[str, ...] | None,
    refused: Refused,
) -> None:
    deployments, second = deployed(tmp_path, monkeypatch, Form.CHANGES.stored)
    with refused(ProgramError, "config", at="3:14"):
        deployments.output_of(second, "x", columns)
    table = tmp_path / "pipelines" / "first" / "outputs" / "y"
    assert deployments.output_of(second, "x", ("n", "copies")) == (table, 3)


@pytest.mark.parametrize("columns", [None, ("n",)])
def test_rows_that_stay_are_read_whatever_columns_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...] | None
) -> None:
    deployments, second = deployed(tmp_path, monkeypatch, Form.GROWTH.stored)
    table = tmp_path / "pipelines" / "first" / "outputs" / "y"
    assert deployments.output_of(second, "x", columns) == (table, 3)
