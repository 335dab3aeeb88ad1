"""Flows in somebody's own Dagster project, with Dagster's own commands and executors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.code_pointer import FileCodePointer
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext
from dagster._core.definitions.reconstruct import (
    initialize_repository_def_from_pointer,
    reconstruct_repository_def_from_pointer,
)
from dagster._core.definitions.repository_definition import RepositoryDefinition

from hydrotick.cli.init import put_project
from hydrotick.project.project import project_at
from hydrotick.runner.runner import TickRunner
from tests.pages.blocks import ALL

pytestmark = pytest.mark.dagster

MINE = """
from pathlib import Path

import dagster as dg
from hydrotick import load_definitions

TOTALS = [dg.AssetKey([flow, "totals"]) for flow in ("totals", "second")]


@dg.asset(deps=TOTALS, partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
def report(context: dg.AssetExecutionContext) -> None:
    context.log.info(f"report of {context.partition_key}")


@dg.asset(deps=[report])
def summary() -> None: ...


defs = dg.Definitions.merge(
    dg.Definitions(assets=[report, summary]),
    load_definitions(Path(__file__).parent / "shop"),
)
"""
SKELETON = {
    "pyproject.toml": """
[project]
name = "acme"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "acme"
""",
    "src/acme/__init__.py": "",
    "src/acme/defs/__init__.py": "",
    "src/acme/definitions.py": """
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
""",
}
"""What `create-dagster project acme` makes, as far as it matters here."""


PROGRAM = """
payments = source("user string, amount long")
seen = payments -> persist()
seen -> aggregate(by="user", total=sum("amount"), largest=max("amount")) -> delta() -> totals
seen -> filter(lambda p: p.amount > 3) -> aggregate(by="user", n=count()) -> delta() -> often
"""
"""As it is written it keeps what was paid, as it is deployed two aggregates."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a project of two flows, which were never deployed."""
    put_project(tmp_path / "shop", "totals")
    assets = tmp_path / "shop" / "assets"
    (assets / "totals" / "totals.hydro").write_text(PROGRAM)
    shutil.copytree(assets / "totals", assets / "second")
    return tmp_path


def _shown(file: str) -> str:
    (block,) = [b for b in ALL if b.file == file]
    return block.text


def _run(words: list[str], at: Path, **more: str) -> str:
    at.mkdir(exist_ok=True)
    (at / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(at),
        "PYTHONWARNINGS": "ignore",
        "DO_NOT_TRACK": "1",
        **more,
    }
    done = subprocess.run(
        words,
        cwd=at,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def _command(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_dagster_validates_the_definitions_on_the_page(place: Path, tmp_path: Path) -> None:
    file = place / "definitions.py"
    file.write_text(_shown("definitions.py"))
    words = [_command("dagster"), "definitions", "validate", "-f", str(file)]
    assert "All code locations passed validation" in _run(words, tmp_path / "elsewhere")


def test_dg_checks_the_component_on_the_page(place: Path) -> None:
    pytest.importorskip("dagster_dg_cli")
    acme = place / "acme"
    for name, text in SKELETON.items():
        file = acme / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    component = acme / "src" / "acme" / "defs" / "shop"
    shutil.copytree(place / "shop", component)
    (component / "defs.yaml").write_text(
        _shown("defs.yaml").replace("/mnt/shop", str(place / "data"))
    )
    # It is found where the project is installed; here its folder is named instead.
    said = _run([_command("dg"), "check", "defs"], acme, PYTHONPATH="src")
    assert "All definitions loaded successfully" in said
    assert "All component YAML validated successfully" in said


def _pointer(place: Path, name: str) -> FileCodePointer:
    """The definitions as a process of this name has them: a file is imported once in each."""
    file = place / f"{name}.py"
    file.write_text(MINE)
    return FileCodePointer(str(file), "defs", str(place))


def _assets_of(repository: RepositoryDefinition, flow: str) -> set[str]:
    keys = repository.asset_graph.executable_asset_keys
    return {key.to_user_string() for key in keys if key.path[0] == flow}


def test_a_run_has_the_assets_that_it_was_launched_with(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was deployed since: a step in a process of its own loads the definitions anew."""
    monkeypatch.setattr(DefinitionsLoadContext, "_instance", None)
    loaded = initialize_repository_def_from_pointer(_pointer(place, "code_server"))
    as_written = _assets_of(loaded, "totals")
    found = project_at(place / "shop")
    runner = TickRunner(found.settings)
    (flow,) = (flow for flow in found.flows if flow.name == "totals")
    runner.deployments.prepare(flow)

    monkeypatch.setattr(DefinitionsLoadContext, "_instance", None)
    step = _pointer(place, "step")
    later = reconstruct_repository_def_from_pointer(step, loaded.repository_load_data)
    assert _assets_of(later, "totals") == as_written
    monkeypatch.setattr(DefinitionsLoadContext, "_instance", None)
    again = initialize_repository_def_from_pointer(_pointer(place, "reloaded"))
    assert _assets_of(again, "totals") != as_written
    # What serves may be another by the time that a run is executed.
    deployed = _assets_of(again, "totals")
    program = place / "shop" / "assets" / "totals" / "totals.hydro"
    program.write_text(program.read_text() + "payments -> persist() -> everything\n")
    fresh = TickRunner(found.settings)
    fresh.deployments.prepare(flow)
    monkeypatch.setattr(DefinitionsLoadContext, "_instance", None)
    step = _pointer(place, "another_step")
    later = reconstruct_repository_def_from_pointer(step, again.repository_load_data)
    assert _assets_of(later, "totals") == deployed


@pytest.mark.slow
@pytest.mark.spark
def test_flows_that_were_never_deployed_and_assets_downstream_in_one_run(
    place: Path, tmp_path: Path
) -> None:
    """Each step is a process of its own, as Dagster's default executor has it."""
    file = place / "definitions.py"
    file.write_text(MINE)
    # As "Materialize all" asks for it, by all assets that the page has.
    names = ("totals", "often", "state/payments_state")
    keys = ["report", *(f"{flow}/{name}" for flow in ("totals", "second") for name in names)]
    selected = " or ".join(f'key:"{key}"' for key in keys)
    words = ["asset", "materialize", "-f", str(file), "-a", "defs", "--select", selected]
    words += ["--partition", "2026-01-01"]
    home = tmp_path / "home"
    said = _run([_command("dagster"), *words], home, HYDROTICK_SPARK_MASTER="local[1]")
    assert "report of 2026-01-01" in said
    assert _recorded(home) == {
        "totals": {"2026-01-01"},
        "second": {"2026-01-01"},
        "report": {"2026-01-01"},
    }


def _recorded(home: Path) -> Mapping[str, set[str]]:
    keys = {"totals": ["totals", "totals"], "second": ["second", "totals"], "report": ["report"]}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return {
            name: instance.get_materialized_partitions(dg.AssetKey(key))
            for name, key in keys.items()
        }
