"""What commands load before they do anything: nothing heavy that they have no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hydrotick.cli.init import put_project

RUN = """
import sys
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext, DefinitionsLoadType,
)
from dagster._core.definitions.metadata.metadata_value import (
    CodeLocationReconstructionMetadataValue,
)
from dagster._core.definitions.repository_definition.repository_definition import (
    RepositoryLoadData,
)
kept = {k: CodeLocationReconstructionMetadataValue(v) for k, v in eval(sys.argv[1]).items()}
data = RepositoryLoadData(reconstruction_metadata=kept)
kind = DefinitionsLoadType.RECONSTRUCTION
DefinitionsLoadContext.set(DefinitionsLoadContext(kind, repository_load_data=data))
import hydrotick.definitions
hydrotick.definitions.defs.get_repository_def()
import hydrotick.worker.client
print(*sys.modules)
"""
"""The process of a run, as Dagster's launcher starts it, up to where it asks a worker."""

SHOWN = """
from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext, DefinitionsLoadType,
)
from hydrotick.flows.flows import Flows
from hydrotick.project import project
found = project.current()
Flows(found.settings).deployments.prepare(found.flows[0])
DefinitionsLoadContext.set(DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION))
import hydrotick.definitions
print(dict(DefinitionsLoadContext.get().get_pending_reconstruction_metadata()))
"""
"""A code server, which tells what goes with runs."""

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


@pytest.mark.dagster
def test_a_run_that_asks_a_worker_loads_no_engine_and_no_compiler(shop: Path) -> None:
    kept = _printed(shop, SHOWN)
    assert "'hydrotick/totals/sampled': 'totals'" in kept
    loaded = set(_printed(shop, RUN, kept).split())
    assert {"dagster", "hydrotick.worker.client"} <= loaded
    not_needed = HEAVY - {"dagster", "pyarrow"}
    not_needed |= {"hydro_core.compile", "hydro_core.lang.parser", "hydro_core.validation.sliced"}
    assert not loaded & not_needed
    assert not [name for name in loaded if name.startswith(("hydro_core.opti", "hydro_core.ref"))]


def _printed(shop: Path, script: str, *words: str) -> str:
    """The last line that a script prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=shop,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]
