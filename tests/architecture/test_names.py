"""A name stands for one class: who meets it in a signature or an error need not ask which."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def classes(package: str) -> list[tuple[str, str]]:
    """The public classes of a package: their names, and the files that define them."""
    return [
        (node.name, str(file.relative_to(ROOT)))
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_no_two_classes_have_one_name() -> None:
    found = defaultdict(list)
    for name, file in classes("hydro_core") + classes("orchestration"):
        found[name].append(file)
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
