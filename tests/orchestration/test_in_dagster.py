"""Flows in somebody's own Dagster project: merged into its definitions, and as a component."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_file
from dagster.components.core.package_entry import discover_entry_point_package_objects
from dagster.components.testing.utils import create_defs_folder_sandbox

import hydrotick
from hydro_core.errors import HydroError
from hydrotick.cli.init import put_project
from tests.pages.blocks import ALL
from tests.support.refused import Refused

pytestmark = pytest.mark.dagster

EXECUTOR = dg.multiprocess_executor


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    put_project(tmp_path / "shop", "totals")
    return tmp_path / "shop"


def test_merged_with_definitions_of_ones_own(shop: Path) -> None:
    @dg.asset(deps=[dg.AssetKey(["totals", "totals"])])
    def report() -> None: ...

    mine = dg.Definitions(assets=[report], executor=EXECUTOR)
    found = dg.Definitions.merge(mine, hydrotick.load_definitions(shop))
    graph = found.resolve_asset_graph()
    assert graph.get(report.key).parent_keys == {dg.AssetKey(["totals", "totals"])}
    assert graph.get(dg.AssetKey(["totals", "totals"])).is_materializable
    assert found.executor is EXECUTOR
    assert found.resolve_job_def("totals_job").executor_def is dg.in_process_executor
    assert found.resolve_sensor_def("totals_next_tick").minimum_interval_seconds == 30
    dg.Definitions.validate_loadable(found)


def test_a_folder_that_is_no_project(tmp_path: Path, refused: Refused) -> None:
    with refused(HydroError, "config"):
        hydrotick.load_definitions(tmp_path)


def test_the_component_is_found_by_dagsters_tools() -> None:
    names = {f"{key.namespace}.{key.name}" for key in discover_entry_point_package_objects()}
    assert "hydrotick.HydrotickProject" in names


def test_a_component_with_settings_of_its_own(shop: Path, tmp_path: Path) -> None:
    attributes = {
        "project": str(shop),
        "spark": {"master": "local[1]"},
        "paths": {"home": str(tmp_path / "elsewhere")},
        "dagster": {"pool": "spark", "sensors": "running", "sensor_seconds": 77},
    }
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.defs_folder_path / "flows"
        place.mkdir()
        written = {"type": "hydrotick.HydrotickProject", "attributes": attributes}
        (place / "defs.yaml").write_text(str(written))
        with sandbox.load_component_and_build_defs(place) as (component, found):
            assert isinstance(component, hydrotick.HydrotickProject)
            sensor = found.resolve_sensor_def("totals_next_tick")
            assert sensor.minimum_interval_seconds == 77
            assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
            tick = found.get_assets_def(dg.AssetKey(["totals", "totals"]))
            assert tick.op.pool == "spark"


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"spark": {"memory": "much"}}, "`spark.memory` is 'much', which is no size"),
        ({"dagster": {"sensors": "on"}}, "write `running` or `stopped`"),
        ({"spark": {"mastr": "local"}}, "mastr"),
    ],
)
def test_a_wrong_attribute_is_told(shop: Path, attributes: dict[str, object], says: str) -> None:
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.defs_folder_path / "flows"
        place.mkdir()
        attributes = {"project": str(shop), **attributes}
        written = {"type": "hydrotick.HydrotickProject", "attributes": attributes}
        (place / "defs.yaml").write_text(str(written))
        with pytest.raises(Exception) as caught, sandbox.load_component_and_build_defs(place):  # noqa: PT011 - it is Dagster's
            pass
        chain, error = [], caught.value
        while error is not None:
            chain.append(str(error))
            error = error.__cause__ or error.__context__
        assert says in "\n".join(chain)


def test_scaffolded_it_is_a_project_that_loads() -> None:
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.scaffold_component(hydrotick.HydrotickProject, "payments_flow")
        assert (place / "assets" / "payments_flow" / "asset.yaml").is_file()
        with sandbox.load_component_and_build_defs(place) as (_, found):
            assert found.resolve_job_def("payments_flow_job")
        with sandbox.build_all_defs() as found:
            assert found.resolve_job_def("payments_flow_job")


def _shown(file: str) -> str:
    (block,) = [b for b in ALL if b.file == file]
    return block.text


def test_the_definitions_on_the_page(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.parent)
    (shop.parent / "definitions.py").write_text(_shown("definitions.py"))
    # As Dagster finds them in a file, which refuses one that has several.
    (found,) = loadable_targets_from_python_file("definitions.py")
    assert found.target_definition.resolve_job_def("totals_job")


def test_the_component_on_the_page() -> None:
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.scaffold_component(hydrotick.HydrotickProject, "shop")
        (place / "defs.yaml").write_text(_shown("defs.yaml"))
        with sandbox.load_component_and_build_defs(place) as (_, found):
            assert found.resolve_job_def("shop_job")
