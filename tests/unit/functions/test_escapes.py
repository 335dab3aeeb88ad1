"""What a text program's function runs is what was checked, and no module can be reached from it."""

from __future__ import annotations

import ast
import importlib
import pickle
import sys
from pathlib import Path

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError, TypeProblem
from hydro_core.functions.call import TextCall
from hydro_core.functions.from_tree import python_text
from hydro_core.lang.print import to_text
from hydro_core.lang.resolve import parse
from tests.support.escapes import ESCAPES, MODULE, lay, run

ESCAPES_IN_BRACES = sys.version_info >= (3, 12)
"""Whether texts within the braces of f-strings may have escapes."""


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_beside_the_program_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, optimized: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    marker = lay(tmp_path)
    function, code = ESCAPES[name]
    found = None
    try:
        run(function, Options(optimized=optimized))
    except HydroError as problem:
        found = problem.code
    assert found == code
    assert not marker.exists()
    assert MODULE not in sys.modules


def test_the_module_beside_tells_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    marker = lay(tmp_path, "is_imported")
    importlib.import_module("is_imported")
    assert marker.exists()


@pytest.mark.parametrize("name", ESCAPES)
def test_a_text_reads_back_as_the_same_function(name: str) -> None:
    function, code = ESCAPES[name]
    refused, written = None, ""
    try:
        written = to_text(
            parse(f'a = source("string")\na -> map({function}, returns="string") -> out')
        )
    except HydroError as problem:
        refused = problem.code
    assert refused in (None, code)
    if refused is None:
        assert to_text(parse(written)) == written


@pytest.mark.parametrize(
    ("source", "same"),
    [
        (r"lambda x: f'{x:\x7b0\x7d}'", True),
        (r"lambda x: f'{x:{x}\x7b}\x7d'", True),
        ("lambda x: f'{x:{5}}'", True),
        ("lambda x: f\"{x + '\u200b'}\"", ESCAPES_IN_BRACES),
        ("lambda x: f\"{x + '\u200b':\\x7b>{len('\u200b') + 8}}\"", ESCAPES_IN_BRACES),
        ("lambda x: f'''{x + \"\"\"\n\"\"\"}'''", True),
        (r"lambda x: f'\ue07b{x:\x7b}'", True),
        (r"lambda x: '\ud800'", True),
    ],
)
def test_texts_of_trees(source: str, same: bool) -> None:
    tree = ast.parse(source, mode="eval").body
    written = python_text(tree)
    read = ast.parse(written, mode="eval").body
    assert (ast.dump(read) == ast.dump(tree)) is same
    if not same:
        assert TextCall(read, {})("a") == TextCall(tree, {})("a")


def test_a_tree_is_checked_where_it_runs() -> None:
    node = ast.parse("lambda x: x", mode="eval").body
    call = pickle.loads(pickle.dumps(TextCall(node, {})))
    assert call(1) == 1
    unchecked = TextCall(ast.parse("lambda x: x.__class__", mode="eval").body, {})
    with pytest.raises(TypeProblem, match="__class__"):
        pickle.loads(pickle.dumps(unchecked))(1)
