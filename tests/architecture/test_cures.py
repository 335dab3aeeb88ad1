"""Every diagnostic says what helps: `help` has no default, and nobody leaves it empty."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from hydro_core.cli.main import commands
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
                name = ast.unparse(node.func)
                if name == "Diagnostic" or re.fullmatch(r"\w+Error\.of", name):
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
    assert len(MADE) > 200


@pytest.mark.parametrize("place", MADE)
def test_what_is_made_says_what_helps(place: str) -> None:
    """Where no type checker looks, too."""
    given = {keyword.arg: keyword.value for keyword in MADE[place].keywords}
    assert "help" in given
    for leaf in ast.walk(given["help"]):
        assert not (isinstance(leaf, ast.Constant) and leaf.value in (None, ""))


def _texts() -> Iterator[tuple[str, str]]:
    """The texts of the sources, but for those that say what a module, class or function is."""
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
        for node in texts:
            if isinstance(node.value, str) and id(node) not in said:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def _commands() -> frozenset[str]:
    return frozenset(commands())


def test_a_command_that_a_text_names_is_there() -> None:
    there = _commands()
    named = [
        (place, found)
        for place, text in _texts()
        for found in re.findall(r"`hydrotick ([a-z]\w*)", text)
    ]
    assert len(named) > 20
    assert [(place, found) for place, found in named if found not in there] == []


def test_an_option_that_a_text_names_is_there() -> None:
    texts = list(_texts())
    declared = {text for _, text in texts if re.fullmatch(r"--[a-z][a-z-]*", text)}
    named = [
        (place, found)
        for place, text in texts
        for found in re.findall(r"`hydrotick [^`]*?(--[a-z][a-z-]*)", text)
    ]
    assert [(place, found) for place, found in named if found not in declared] == []


def test_no_text_sends_anybody_to_what_a_wheel_does_not_have() -> None:
    """Nor to functions of Python where there is a command line."""
    beside = re.compile(r"\bdocs/|[a-z-]+\.md#|`rewind\(")
    assert [place for place, text in _texts() if beside.search(text)] == []
