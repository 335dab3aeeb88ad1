"""The code location: it loads lightly, and its assets have the shape that backfills need."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module

from assets.chat.asset import CHAT
from assets.flights.asset import FLIGHTS
from hydro_core.cli.main import run_command
from hydrotick.code_location.factory import project_definitions
from hydrotick.definitions import defs
from hydrotick.in_dagster import load_definitions
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import serve
from tests.unit.projects.declared import declare_py, declare_yaml

pytestmark = pytest.mark.dagster


def test_loading_imports_no_engine():
    engines = ("pyspark", "egglog", "great_expectations", "duckdb")
    program = (
        "import sys; import hydrotick.definitions; "
        f"print([m for m in {engines} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
    # What a library warns of while assets are made, every command of the project would print.
    assert done.stderr.decode() == ""


def test_the_code_location_is_one_for_dagster():
    found = loadable_targets_from_python_module("hydrotick.definitions", working_directory=None)
    assert [target.attribute for target in found] == ["defs"]


def test_what_dagster_stores_with_is_whole_while_the_checks_are_loaded():
    program = (
        "import sys, threading; threading.Thread.start = lambda self: None\n"
        "from hydrotick.runner.runner import TickRunner\n"
        "from hydrotick.project.settings import project_settings\n"
        "TickRunner(project_settings()).warm_up()\n"
        "print(sys.modules['sqlalchemy.orm.exc'].UnmappedClassError.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "UnmappedClassError"


def test_everything_resolves():
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize("flow", [CHAT, FLIGHTS], ids=lambda f: f.name)
def test_no_asset_depends_on_itself_and_any_can_be_asked_for(flow):
    """Dagster takes an asset that depends on itself out of the run of the others, and rejects
    backfills of what can be reached on two ways unless its assets can be asked for one by one.
    """
    graph = defs.resolve_asset_graph()
    made = [key for key in graph.materializable_asset_keys if key.path[0] == flow.name]
    assert made
    for key in made:
        assert key not in graph.get(key).parent_keys
        assert graph.get(key).execution_set_asset_keys == {key}


def test_edges_are_what_the_program_reads():
    graph = defs.resolve_asset_graph()

    def above(asset):
        parents = graph.get(dg.AssetKey(["flights", *asset.split("/")])).parent_keys
        return {"/".join(key.path[1:]) for key in parents}

    assert above("departures") == {
        "landing/flights",
        "landing/weather",
        "state/planes_state",
    }
    assert above("state/planes_state") == {"landing/planes"}
    assert above("back_in_service") == {"landing/flights", "state/today_state"}
    assert "landing/weather" not in above("delay_statistics")


def test_columns_lead_to_those_of_the_inputs():
    graph = defs.resolve_asset_graph()
    metadata = graph.get(dg.AssetKey(["flights", "new_routes"])).metadata
    lineage = metadata["dagster/column_lineage"]
    found = {
        column: {(dep.asset_key.path[-1], dep.column_name) for dep in deps}
        for column, deps in lineage.deps_by_column.items()
    }
    assert found["airline"] == {("airlines", "name")}
    assert ("flights", "carrier") in found["carrier"]
    columns = metadata["dagster/column_schema"].columns
    shown = {column.name: column.description for column in columns}
    assert shown["airline"] == "computed from airlines.name"  # by a left join: it may be null
    assert shown["carrier"] == ("the two letters of the airline that flies (from flights.carrier)")
    assert shown["tick"]
    landed = graph.get(dg.AssetKey(["flights", "landing", "weather"])).metadata
    says = {c.name: c.description for c in landed["dagster/column_schema"].columns}
    assert says["temperature"] == "in degrees Fahrenheit"
    assert says["origin"] is None


def test_assets_say_how_their_flow_can_be_cut_into_shards():
    graph = defs.resolve_asset_graph()
    for asset in ("new_routes", "state/today_state"):
        said = graph.get(dg.AssetKey(["flights", *asset.split("/")])).metadata["shards"].value
        assert "flights cannot be cut into shards." in said
        assert "It would have `airlines` routed by carrier, `flights` routed by carrier." in said


def test_a_program_that_does_not_compile_takes_out_its_own_flow_alone(tmp_path):
    broken = tmp_path / "broken.hydro"
    broken.write_text("flights -> persst() -> departures\n", encoding="utf-8")
    flows = [CHAT, replace(FLIGHTS, program=broken)]
    found = project_definitions(flows, TickRunner(ProjectSettings(home=tmp_path)))
    dg.Definitions.validate_loadable(found)
    graph = found.resolve_asset_graph()
    whole = {key for key in graph.materializable_asset_keys if key.path[0] == "chat"}
    assert whole
    assert graph.materializable_asset_keys == whole
    departures = graph.get(dg.AssetKey(["flights", "departures"]))
    assert departures.group_name == "flights"
    assert "persst" in departures.description
    assert "did you mean `persist`" in departures.description


def test_a_declaration_that_is_wrong_takes_out_its_own_flow_alone(tmp_path, monkeypatch):
    declare_yaml(tmp_path, "sound")
    declare_yaml(tmp_path, "wrong", ticks="{begin: 2026-01-01}")
    declare_yaml(tmp_path, "no name")
    declare_yaml(tmp_path, "owned", more="owners: [ann]\n")
    (tmp_path / "assets" / "one").mkdir()
    (tmp_path / "assets" / "one" / "asset.py").write_text("1 / 0\n", encoding="utf-8")
    declare_py(tmp_path, "two", "twice")
    declare_py(tmp_path, "three", "twice")
    monkeypatch.setenv("HYDROTICK_PROJECT", str(tmp_path))
    monkeypatch.delenv("HYDROTICK_HOME", raising=False)
    monkeypatch.delitem(sys.modules, "hydrotick.definitions")
    found = importlib.import_module("hydrotick.definitions").defs
    dg.Definitions.validate_loadable(found)
    graph = found.resolve_asset_graph()
    assert {key.path[0] for key in graph.materializable_asset_keys} == {"sound"}
    told = {
        "wrong": "`ticks` has no `begin`",
        "no_name": "'no name' is no name",
        "owned": "'ann' is no owner",
        "one": "ZeroDivisionError: division by zero",
        "twice": "there are 2 flows `twice`",
    }
    for name, says in told.items():
        assert says in graph.get(dg.AssetKey([name, "program"])).description
    assert {key.path[0] for key in graph.get_all_asset_keys()} == {"sound", *told}


def test_what_the_program_says_of_an_output_is_its_description(tmp_path):
    silent = replace(FLIGHTS, outputs={})
    found = project_definitions([silent], TickRunner(ProjectSettings(home=tmp_path)))
    graph = found.resolve_asset_graph()

    def described(output):
        return graph.get(dg.AssetKey(["flights", output])).description

    assert described("back_in_service") == "Aircraft that fly today and did not fly yesterday."
    assert described("delay_statistics").startswith("Running delay statistics per carrier")
    place = graph.get(dg.AssetKey(["flights", "new_routes"])).metadata["dagster/code_references"]
    (reference,) = place.code_references
    line = Path(reference.file_path).read_text(encoding="utf-8").splitlines()
    assert "new_routes" in line[reference.line_number - 1]


def test_links_to_code_lead_to_the_line_on_the_web_or_in_an_editor(tmp_path, monkeypatch):
    declare_yaml(tmp_path, "linked", more="owners: [ann@example.org]\n")
    (tmp_path / "hydrotick.toml").write_text(
        '[dagster]\ncode_url = "https://code.example/shop/main/"\n', encoding="utf-8"
    )
    monkeypatch.delenv("HYDROTICK_HOME", raising=False)
    found = load_definitions(tmp_path)
    graph = found.resolve_asset_graph()
    node = graph.get(dg.AssetKey(["linked", "landing", "payments"]))
    (link,) = node.metadata["dagster/code_references"].code_references
    assert link.url == "https://code.example/shop/main/assets/linked/totals.hydro#L2"
    assert link.label == "totals.hydro:2"
    (tmp_path / "hydrotick.toml").unlink()
    graph = load_definitions(tmp_path).resolve_asset_graph()
    (here,) = graph.get(node.key).metadata["dagster/code_references"].code_references
    assert (here.label, here.line_number) == ("totals.hydro:2", 2)
    assert here.file_path == str(tmp_path / "assets" / "linked" / "totals.hydro")
    assert node.owners == ["ann@example.org"]


def test_status_says_why_a_program_does_not_compile(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "broken.hydro"
    broken.write_text("add_member -> persst() -> notify\n", encoding="utf-8")
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    serve(monkeypatch, [replace(CHAT, program=broken), FLIGHTS])
    assert run_command(["status"]) == 1
    said = capsys.readouterr().out
    assert "error[unknown-operator]: " in said
    assert said.count("does not compile") == 1
    assert "flights" in said


def test_every_declared_expectation_is_a_blocking_check():
    graph = defs.resolve_asset_graph()
    checks = {check.to_user_string() for check in graph.asset_check_keys}
    assert "flights/delay_statistics:flights_between" in checks
    assert "flights/back_in_service:tail_number_unique" in checks
    warns = {key for key in graph.asset_check_keys if key.asset_key.path[1] == "landing"}
    of_weather = {key.name for key in warns if key.asset_key.path[-1] == "weather"}
    assert of_weather == {"rows_landed", "no_late_rows", "committed_rows_stand"}
    for check in graph.asset_check_keys:
        assert graph.get(check).blocking == (check not in warns)


def test_assets_say_what_the_program_says_of_them():
    graph = defs.resolve_asset_graph()

    def shown(asset):
        return graph.get(dg.AssetKey(["flights", *asset.split("/")]))

    today = shown("state/today_state")
    comment, mechanics = today.description.split("\n\n")
    assert comment == "Aircraft that fly today and did not fly yesterday."
    assert mechanics == "The items of `today` of the last tick, for `prev` in line 62."
    assert today.metadata["written by"] == "`unique` in line 61"
    assert today.metadata["stratum"].startswith("0 of 3: as rows arrive")
    assert shown("delay_statistics").metadata["stratum"] == "2 of 3: delta"
    weather = shown("landing/weather")
    assert "cut into ticks by `day`" in weather.description
    (where,) = weather.metadata["dagster/code_references"].code_references
    assert where.line_number == 16


def test_a_job_says_what_its_flow_is_about(tmp_path):
    declare_yaml(tmp_path, "told")
    (program,) = tmp_path.glob("assets/told/*.hydro")
    text = program.read_text(encoding="utf-8")
    program.write_text(f"# What every user has paid.\n\n{text}", encoding="utf-8")
    from hydro_core.project.discover import found_in

    (flow,) = found_in(tmp_path).flows
    found = project_definitions([flow], TickRunner(ProjectSettings(home=tmp_path)))
    job = found.resolve_job_def("told_job")
    assert job.description.startswith("What every user has paid.\n\nRuns ticks of told")
    assert "data:image/svg+xml" in job.metadata["program"].value
