"""What is in the wheel, and that a project works where nothing but the wheel is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"hydro_core": "hydro_core", "hydrotick": "orchestration"}
NO_DATA = {".py", ".pyc", ""}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network from a copy: what builds leave behind is not in it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for folder in ("assets", "tests", *FOLDERS.values()):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*build, "--no-build-isolation", "-w", out, source], check=True)
    (made,) = out.glob("*.whl")
    return made


def test_its_top_level_names_are_its_own(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        tops = {PurePosixPath(name).parts[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(FOLDERS)


def test_every_file_of_the_packages_is_in_it(wheel: Path) -> None:
    there = {
        str(PurePosixPath(package, *file.relative_to(ROOT / folder).parts))
        for package, folder in FOLDERS.items()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == there
    assert {"hydrotick/template/tests.yaml", "hydro_core/spark/session/log4j2.properties"} <= packed


@pytest.mark.slow
def test_a_project_where_only_the_wheel_is_installed(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    (own,) = place.glob("lib/python3*/site-packages")
    # The packages that it needs are those of this environment.
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--ignore-installed", "--prefix", place, wheel], check=True)
    (own / "others.pth").write_text(str(_packages_without_the_checkout(tmp_path)))

    def run(*words: str, cwd: Path) -> str:
        command = [place / "bin" / "python", "-m", "hydro_core.cli.main", *words]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HYDROTICK"))}
        done = subprocess.run(
            command, cwd=cwd, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "A project with the flow `totals`" in run("init", "shop", cwd=tmp_path)
    shop = tmp_path / "shop"
    assert "2 passed in " in run("test", cwd=shop)
    assert "totals" in run("check", "assets/totals/totals.hydro", cwd=shop)
    assert "totals" in run("status", cwd=shop)


def _packages_without_the_checkout(tmp_path: Path) -> Path:
    """This environment's packages, but for the editable installation of hydrotick."""
    packages = Path(pytest.__file__).parents[1]
    linked = tmp_path / "others"
    linked.mkdir()
    for entry in packages.iterdir():
        if "hydrotick" not in entry.name:
            (linked / entry.name).symlink_to(entry)
    return linked
