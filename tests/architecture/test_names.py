"""A name stands for one type: who meets it in a signature or an error need not ask which.

Modules may share a name: their packages say of what they are the `group` or the `registry`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [p for package in ("hydro_core", "orchestration") for p in (ROOT / package).rglob("*.py")]


def classes(tree: ast.Module) -> Iterator[str]:
    """The classes of a module."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def aliases(tree: ast.Module) -> Iterator[str]:
    """The types of a module that are another name of a type: `Batches = Mapping[str, Batch]`."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Subscript() | ast.BinOp()):
                yield from [name] if name != name.upper() and name[0].isupper() else []
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=ast.Name("NewType"))):
                yield name


def defined(text: str) -> list[str]:
    """The public types that a module defines."""
    tree = ast.parse(text)
    return [name for name in (*classes(tree), *aliases(tree)) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class Batch: ...", ["Batch"]),
        ("Batches = Mapping[str, Batch]", ["Batches"]),
        ("Either = int | str", ["Either"]),
        ("NodeId = NewType('NodeId', str)", ["NodeId"]),
        ("LIMITS = TABLE['x']; count = a | b; T = TypeVar('T'); class _Own: ...", []),
    ],
)
def test_types_are_found(text: str, names: list[str]) -> None:
    assert defined(text.replace("; class", "\nclass")) == names


def test_no_two_types_have_one_name() -> None:
    found = defaultdict(list)
    for file in sorted(FILES):
        for name in defined(file.read_text(encoding="utf-8")):
            found[name].append(str(file.relative_to(ROOT)))
    assert len(found) > 400
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
