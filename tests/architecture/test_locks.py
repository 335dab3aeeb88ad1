"""The locks: every package by exact version and hash, no host named, one version of Delta
everywhere."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest

from hydro_core.spark.session.jars import DELTA_PACKAGE, DELTA_VERSION, HADOOP_VERSION

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(lock: Path) -> list[str]:
    """The requirements of a lock, their lines joined, without comments."""
    lines = [line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")]
    return [one for one in "\n".join(lines).replace("\\\n", " ").splitlines() if one.strip()]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_has_one_version_and_hashes(lock: Path) -> None:
    found = requirements(lock)
    assert found
    for requirement in found:
        assert re.match(rf"{NAME}(\[[a-z,]+\])?==[^ ;]+( ;[^\\]*?)?  ", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_host_and_no_path(lock: Path) -> None:
    assert not re.search(r"://|--index|--find-links|file:| /", lock.read_text())


def test_what_the_project_needs_is_locked() -> None:
    locked = {
        normal(re.match(NAME, one)[0])  # type: ignore[index]
        for one in requirements(ROOT / "requirements" / "lock.txt")
    }
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    names = {normal(re.match(NAME, one)[0]) for one in needed}  # type: ignore[index]
    assert names - locked == set()


def test_delta_is_one_version() -> None:
    assert f"delta-spark=={DELTA_VERSION}" in PROJECT["dependencies"]
    assert DELTA_PACKAGE.endswith(f":{DELTA_VERSION}")
    assert version("delta-spark") == DELTA_VERSION
    assert DELTA_PACKAGE.split("_")[1] == ".".join(version("pyspark").split(".")[:2])


def test_hadoops_file_systems_are_of_sparks_hadoop() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    found = [jar.stem.rpartition("-")[2] for jar in jars.glob("hadoop-client-api-*.jar")]
    assert found == [HADOOP_VERSION]
