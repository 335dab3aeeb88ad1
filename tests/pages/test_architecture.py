"""What the page of the architecture names is there, and its layers are those of the contracts."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.pages.blocks import ROOT, blocks_of

PAGE = ROOT / "docs/architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def test_files_and_folders_are_there() -> None:
    named = re.findall(r"`([\w./]+/[\w./]*)`", TEXT)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def drawn(block: str) -> list[set[str]]:
    """The names in a drawing of layers, line by line."""
    lines = block.split("───\n")[1].splitlines()
    return [set(line.strip().split("   ")[0].split(" · ")) for line in lines]


@pytest.mark.parametrize(
    ("container", "number"),
    [
        ("hydro_core", 0),
        ("hydro_core.spark", 1),
        ("hydro_core.spark.lower", 2),
        ("hydrotick", 3),
    ],
)
def test_the_drawings_have_the_layers_of_the_contracts(container: str, number: int) -> None:
    contracts = CONTRACTS["importlinter"]["contracts"]
    (contract,) = (c for c in contracts if c.get("containers") == [container])
    wanted = [set(re.findall(r"[\w.]+", layer)) for layer in contract["layers"]]
    assert drawn(blocks_of(PAGE)[number].text) == wanted
