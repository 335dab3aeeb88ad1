"""Who asks something of several classes of operators says what holds of each of them.

A class that is new, or was forgotten, must not get an answer that was meant for others: so a
`match` of classes ends in `assert_never`, and no test of two classes at once stands for a property
that they have in common.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import hydro_core
from hydro_core.catalog import classes

ROOT = Path(hydro_core.__file__).parent
OF_GROUP = {
    group.__name__: {cls.__name__ for cls in get_args(classes.OpClass) if issubclass(cls, group)}
    for group in (
        classes.StreamEnd,
        classes.Linear,
        classes.PerKey,
        classes.PerPosition,
        classes.OverTime,
    )
}
CLASSES = frozenset(cls.__name__ for cls in get_args(classes.OpClass))


def _known(tree: ast.Module) -> set[str]:
    """The names by which a module knows the classes: another module may have such a name, too."""
    imports = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
    names = {a.name for n in imports if n.module == classes.__name__ for a in n.names}
    return names & (CLASSES | OF_GROUP.keys())


def _asked(tree: ast.AST) -> set[str]:
    """The classes that a pattern or an expression names."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return (names & CLASSES).union(*(OF_GROUP[name] for name in names & OF_GROUP.keys()))


def _is_closed(match: ast.Match) -> bool:
    last = match.cases[-1]
    [statement, *_] = last.body
    return (
        isinstance(last.pattern, ast.MatchAs)
        and last.pattern.pattern is None
        and last.guard is None
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "assert_never"
    )


def _question(test: ast.expr) -> tuple[str, set[str]] | None:
    """What a test asks about, and for which classes."""
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return _question(inner)
        case ast.Call(ast.Name("isinstance"), [subject, named]):
            return ast.unparse(subject), _asked(named)
        case ast.Compare(subject, _, values):
            return ast.unparse(subject), {name for value in values for name in _asked(value)}
        case _:
            return None


def _mixed(tests: list[ast.expr]) -> bool:
    """Whether together they ask of one thing whether it is of several classes."""
    found: dict[str, set[str]] = {}
    for subject, named in filter(None, map(_question, tests)):
        found.setdefault(subject, set()).update(named)
    return any(len(named) > 1 for named in found.values())


def _open_questions(text: str) -> Iterator[int]:
    """The lines at which several classes are asked for, and others get an answer by default."""
    tree = ast.parse(text)
    if not _known(tree):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Match(cases=cases) if any(_asked(case.pattern) for case in cases):
                if not _is_closed(node):
                    yield node.lineno
            case ast.BoolOp(values=values) if _mixed(values):
                yield node.lineno
            case ast.Call() | ast.Compare() if _mixed([node]):
                yield node.lineno


def test_no_class_gets_an_answer_by_default() -> None:
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if file.name == "classes.py":
            text = f"from {classes.__name__} import Sum\n{text}"
        found += [f"{file.relative_to(ROOT)}:{line}" for line in _open_questions(text)]
    assert found == []


OPEN = (
    "match cls:\n    case Sum():\n        x = 1\n    case _:\n        x = 2\n",
    "match cls:\n    case Sum(True) | Window():\n        x = 1\n",
    "match node.cls:\n    case Sum():\n        x = 1\n    case other if other:\n        x = 2\n",
    "match cls:\n    case OverTime():\n        x = 1\n    case _:\n        x = 2\n",
    "x = isinstance(cls, OverTime)\n",
    "x = isinstance(cls, Sum | Window)\n",
    "x = isinstance(cls, (Sum, Window))\n",
    "x = cls in (Sum(), Window())\n",
    "x = a and (isinstance(node.cls, Sum) or node.cls == Window())\n",
    "x = not isinstance(cls, Sum) and cls != Window()\n",
)
CLOSED = (
    "match cls:\n    case Sum():\n        x = 1\n    case _:\n        assert_never(cls)\n",
    "match gives:\n    case ItemEffect.SAME:\n        x = 1\n    case _:\n        x = 2\n",
    "x = isinstance(cls, Sum) and cls.widens\n",
    "x = isinstance(one.cls, Sum) and isinstance(other.cls, Window)\n",
)
IMPORTS = "from hydro_core.catalog.classes import ItemEffect, OverTime, Sum, Window\n"


@pytest.mark.parametrize("text", OPEN)
def test_open_questions_are_found(text: str) -> None:
    assert len(list(_open_questions(IMPORTS + text))) == 1


@pytest.mark.parametrize("text", CLOSED)
def test_others_are_not(text: str) -> None:
    assert list(_open_questions(IMPORTS + text)) == []
