"""The code location: it loads lightly, and its assets have the shape that backfills need."""

from __future__ import annotations

import subprocess
import sys

import dagster as dg
import pytest

from assets import ALL_ASSETS
from assets.flights.asset import FLIGHTS
from orchestration.definitions import defs
from orchestration.programs import plan_of
from orchestration.shape import shape_of

pytestmark = pytest.mark.dagster


def test_loading_imports_no_engine():
    engines = ("pyspark", "egglog", "great_expectations", "duckdb")
    program = (
        "import sys; import orchestration.definitions; "
        f"print([m for m in {engines} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "[]"


def test_everything_resolves():
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize("flow", ALL_ASSETS, ids=lambda f: f.name)
def test_inside_a_flow_every_asset_has_one_parent_at_most(flow):
    graph = defs.resolve_asset_graph()
    inside = {
        key
        for key in graph.materializable_asset_keys
        if key.path[0] == flow.name and key.path[1] != "landing"
    }
    assert inside
    for key in inside:
        parents = (graph.get(key).parent_keys & inside) - {key}
        assert len(parents) <= 1, key


def test_states_depend_on_the_tick_before_and_outputs_do_not():
    graph = defs.resolve_asset_graph()
    keys = [key for key in graph.materializable_asset_keys if key.path[0] == "flights"]
    states = {key for key in keys if key.path[1] == "state"}
    assert len(states) == len(shape_of(plan_of(FLIGHTS)).states) > 0
    for key in keys:
        assert (key in graph.get(key).parent_keys) == (key in states)


def test_every_declared_expectation_is_a_blocking_check():
    graph = defs.resolve_asset_graph()
    checks = {check.to_user_string() for check in graph.asset_check_keys}
    assert "flights/delay_statistics:flights_between" in checks
    assert "flights/back_in_service:tail_number_unique" in checks
    assert all(graph.get(check).blocking for check in graph.asset_check_keys)
