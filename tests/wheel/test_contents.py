"""What is in the wheel."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from tests.pages.blocks import ROOT

pytestmark = pytest.mark.wheel

FOLDERS = {"hydro_core": "hydro_core", "hydrotick": "orchestration"}


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
