"""Every diagnostic says what helps: `help` has no default, and nobody leaves it empty."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from hydro_core.errors import Diagnostic

ROOT = Path(__file__).parents[2]
SOURCES = [
    p
    for folder in ("hydro_core", "orchestration", "assets")
    for p in ROOT.glob(f"{folder}/**/*.py")
]


def _made() -> Iterator[tuple[str, ast.Call]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name == "Diagnostic":
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


MADE = dict(_made())


def test_help_must_be_given() -> None:
    (helps,) = (f for f in fields(Diagnostic) if f.name == "help")
    assert helps.kw_only
    assert helps.default is MISSING
    assert str(helps.type) == "str"


def test_no_type_checker_is_told_to_look_away() -> None:
    for place, call in MADE.items():
        path = ROOT / place.rpartition(":")[0]
        lines = path.read_text(encoding="utf-8").splitlines()
        assert "type: ignore" not in "".join(lines[call.lineno - 1 : call.end_lineno]), place


def test_there_are_diagnostics() -> None:
    assert len(MADE) > 70


@pytest.mark.parametrize("place", MADE)
def test_what_is_made_says_what_helps(place: str) -> None:
    """Where no type checker looks, too."""
    given = {keyword.arg: keyword.value for keyword in MADE[place].keywords}
    assert "help" in given
    for leaf in ast.walk(given["help"]):
        assert not (isinstance(leaf, ast.Constant) and leaf.value in (None, ""))
