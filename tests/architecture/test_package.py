"""One wheel with the packages `hydro_core` and `hydrotick`, each under one name."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hydro_core

ROOT = Path(__file__).parents[2]
FOLDERS = {"hydro_core": "hydro_core", "hydrotick": "orchestration"}
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]


def test_every_folder_with_modules_is_listed() -> None:
    there = {
        ".".join((package, *file.parent.relative_to(ROOT / folder).parts))
        for package, folder in FOLDERS.items()
        for file in (ROOT / folder).rglob("*.py")
    }
    assert set(SETUPTOOLS["packages"]) == there
    assert len(SETUPTOOLS["packages"]) == len(there)


def test_every_folder_with_modules_is_a_package() -> None:
    for folder in FOLDERS.values():
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").is_file(), file


def test_there_is_no_second_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import orchestration.settings"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError: this package is `hydrotick`, not `orchestration`" in done.stderr


@pytest.mark.parametrize("name", hydro_core.__all__)
def test_what_is_public_is_there(name: str) -> None:
    assert getattr(hydro_core, name) is not None


def test_what_is_public_costs_nothing_until_it_is_used() -> None:
    loaded = (
        "import hydro_core, sys; print(*(m for m in sys.modules if m.startswith('hydro_core')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["hydro_core"]


def test_benchmarks_go_with_what_they_measure() -> None:
    """They run by hand alone: a name that has moved would be noticed when somebody measures."""
    files = sorted((ROOT / "benchmarks").rglob("*.py"))
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    imports = "\n".join(f"import {name}" for name in sorted(names) if "__main__" not in name)
    done = subprocess.run(
        [sys.executable, "-c", imports], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert len(names) > 30
    assert done.returncode == 0, done.stderr
