"""The examples in docstrings hold. Those of the Spark engine are shown, not run: they need a
session."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import hydro_core

ROOT = Path(hydro_core.__file__).parent
MODULES = [
    ".".join(("hydro_core", *file.relative_to(ROOT).with_suffix("").parts))
    for file in sorted(ROOT.rglob("*.py"))
    if ">>> " in file.read_text() and file.relative_to(ROOT).parts[0] != "spark"
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name.removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
