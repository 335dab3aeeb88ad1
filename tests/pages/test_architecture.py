"""What the page of the architecture names is there, and its layers are those of the contracts."""

from __future__ import annotations

import re
import tomllib

from tests.pages.blocks import ROOT, blocks_of

PAGE = ROOT / "docs/architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def test_files_and_folders_are_there() -> None:
    named = re.findall(r"`([\w./]+/[\w./]*)`", TEXT)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_drawing_has_the_layers_of_the_contracts() -> None:
    (contract,) = (
        c for c in CONTRACTS["importlinter"]["contracts"] if c.get("containers") == ["hydro_core"]
    )
    wanted = [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    drawn = blocks_of(PAGE)[0].text.split("───\n")[1].splitlines()
    names = [set(re.split(r" · ", line.strip().split("   ")[0])) for line in drawn]
    assert names == wanted
