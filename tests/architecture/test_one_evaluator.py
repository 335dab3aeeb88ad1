"""What is written in a program runs in one way: text becomes code in one place, once checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKES_CODE = ("eval", "exec", "compile", "__import__")
MAY_CALL = re.compile(rf"(?<![.\w])({'|'.join(MAKES_CODE)})\(")
PLACES = {
    # functions of programs, constants and deployments: syntax that was checked, or made of trees
    ("hydro_core/functions/from_tree.py", "compile"),
    ("hydro_core/functions/from_tree.py", "eval"),
    # a live function's source, which is compared with the function and never runs
    ("hydro_core/functions/reading/scope.py", "compile"),
}


def test_text_becomes_code_in_one_place() -> None:
    assert set(_places()) == PLACES


def _places() -> Iterator[tuple[str, str]]:
    for root in ("hydro_core", "orchestration"):
        for file in sorted((ROOT / root).rglob("*.py")):
            text = file.read_text("utf-8")
            for node in ast.walk(ast.parse(text)) if MAY_CALL.search(text) else ():
                match node:
                    case ast.Call(ast.Name(name)) if name in MAKES_CODE:
                        yield str(file.relative_to(ROOT)), name
