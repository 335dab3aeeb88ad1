"""What all tests share: the option that rewrites expected files, fixed random choices in CI, one
Spark."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from hydro_core.settings import SparkSettings
from tests.support.selection import can_match, unnamed_marks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.refused import Refused
    from tests.support.store_server import StoreServer

pytest.register_assert_rewrite("tests.spark.engines", "tests.support.refused")

# Spark's JVMs of tests, and of the commands that they start, live for minutes: a fifth of their
# processor time would go into code that is optimized for hours.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write expected files instead of comparing"
    )
    stories = parser.getgroup("tests/operating")
    stories.addoption("--story", type=int, metavar="SEED", help="only the story of this seed")
    stories.addoption(
        "--told-for", type=float, default=3600, metavar="SECONDS", help="how long the slow one runs"
    )
    parser.addoption("--part", metavar="K/N", help="the K-th of N parts of the selected tests")
    parser.addoption(
        "--first-seed", type=int, default=1000, help="where random stored programs begin"
    )


def pytest_configure(config: pytest.Config) -> None:
    if part := config.getoption("--part"):
        from tests.support.selection import Part

        config.pluginmanager.register(Part(part))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that cannot have a test of the run's marks are not imported."""
    expression = config.getoption("markexpr")
    if not expression or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if can_match(expression, text) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if unnamed := unnamed_marks(items):
        raise pytest.UsageError(f"the file of {unnamed[0]} does not name its marks")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests whose refusals stand in golden files have a mark: `make golden` runs them."""
    if "refused" in getattr(item, "fixturenames", ()):
        item.add_marker("refuses")


def pytest_collection_finish() -> None:
    """What was collected stays until the end: going through it again and again to find what is
    garbage takes a tenth of all processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def refused(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, update_golden: bool
) -> Refused:
    """Judges what is refused in a test: see `tests.support.refused`."""
    from tests.support.refused import Refused

    temporary = tmp_path_factory.getbasetemp()
    return Refused(request.node.nodeid, temporary, update=update_golden)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one session of the test run, with the memory that a user's has."""
    from hydro_core.spark.session.session import shared_session

    return shared_session(SparkSettings(master="local[2]"))


@pytest.fixture(scope="session")
def _store_server() -> Iterator[StoreServer]:
    from tests.support.store_server import store_server

    with store_server() as found:
        yield found


@pytest.fixture
def server(_store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """The object store of the test run: its bucket is empty, and nothing was asked of it."""
    from tests.support.store_server import emptied

    return emptied(_store_server, monkeypatch)
