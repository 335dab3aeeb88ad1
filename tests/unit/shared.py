"""What lies beside the repository: the language page and its vectors, where they are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def shared(name: str) -> Path | None:
    """A file or folder of `shared`, beside any folder above this one."""
    for folder in Path(__file__).resolve().parents:
        for found in (folder / "shared" / name, folder.parent / "shared" / name):
            if found.exists():
                return found
    return None


def or_skipped(cases: list[Any], what: str = "the shared vectors") -> list[Any]:
    """The cases of a test, or where there are none one that is skipped and says why."""
    missing = pytest.mark.skip(reason=f"{what} do not lie beside this checkout")
    return cases or [pytest.param(None, id="missing", marks=missing)]


def vectors(*names: str) -> list[dict[str, Any]]:
    """The vectors of folders, in the order of their files."""
    folders = [folder for name in names if (folder := shared(f"vectors/{name}"))]
    files = [file for folder in folders for file in sorted(folder.glob("*.json"))]
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [v for c in contents for v in (c if isinstance(c, list) else [c])]
