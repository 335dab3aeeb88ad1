"""What runs in Spark's workers is what was checked: no module beside the program is reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from tests.support.escapes import ESCAPES, MODULE, lay, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _import(module: str) -> str:
    return str(__import__(module).__name__)


@pytest.fixture(scope="module")
def marker(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the module beside makes when it is imported."""
    folder = tmp_path_factory.mktemp("beside")
    made = lay(folder)
    spark.sparkContext.addPyFile(str(folder / f"{MODULE}.py"))
    return made


def test_the_module_beside_tells_when_it_is_imported(spark: SparkSession, tmp_path: Path) -> None:
    marker = lay(tmp_path, "is_imported_by_a_worker")
    spark.sparkContext.addPyFile(str(tmp_path / "is_imported_by_a_worker.py"))
    spark.sparkContext.parallelize(["is_imported_by_a_worker"], 1).map(_import).collect()
    assert marker.exists()


@pytest.mark.parametrize(
    "name", [n for n, (_, code) in ESCAPES.items() if code in (None, "runtime")]
)
def test_nothing_beside_the_program_is_reached(
    spark: SparkSession, marker: Path, name: str
) -> None:
    function, code = ESCAPES[name]
    found = None
    try:
        run(function, Options("spark", spark=spark))
    except HydroError as problem:
        found = problem.code
    assert found == code
    assert not marker.exists()
    assert MODULE not in sys.modules
