"""Trees as deployments of formats 4 to 6 have them: a name with a value, a loop and a function had
a node each then, before 6 so had tuples, rows and lists, and in 4 each kind of operation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hydro_core.artifact.codecs import Read, read_tree
from hydro_core.artifact.older import view_of
from hydro_core.functions.kinds import Place
from tests.support.functions import text

TREES = [
    tree
    for number in (4, 5, 6)
    for tree in json.loads(
        (Path(__file__).parent / f"trees_of_format_{number}.json").read_text("utf-8")
    )
]
NO_TABLES: dict[str, Any] = {"types": [], "spans": [], "functions": []}


@pytest.mark.parametrize(("source", "record"), TREES, ids=[source for source, _ in TREES])
def test_a_tree_is_the_one_that_was_written(source: str, record: Any) -> None:
    written, read = text(source).tree, read_tree(Read(NO_TABLES), record)
    assert read == written
    assert _places(read) == _places(written)


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ([[], [], [], False, True], "lambda x: x"),
        ([["n"], [], [], False, False], "lambda x: None if x is None else x.n"),
        (
            [[], [[[1], [], [], False, False], [[], [], [], True, False]], [], False, False],
            "lambda x, missing: (None if x is None else x[1], missing)",
        ),
        (
            [[], [[[], [], [], False, True]], ["a"], False, False],
            "lambda x: {'a': x}",
        ),
    ],
)
def test_a_view_of_before_format_7_is_a_tree(record: Any, source: str) -> None:
    assert view_of(record) == text(source).tree


def _places(tree: Any) -> list[Place]:
    todo, found = [tree], []
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo.extend(part)
        elif hasattr(part, "place"):
            found.append(part.place)
            todo.extend(getattr(part, name) for name in part.__slots__ if name != "place")
    return found
