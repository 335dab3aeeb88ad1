"""No operator's name outside the catalogue, the meanings and the lowerings' registrations.

What an operator is stands in its entry; who asks for it by its name does not know of the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import hydro_core
from hydro_core.catalog.internal import INTERNAL
from hydro_core.catalog.registry import NAMES

ROOT = Path(hydro_core.__file__).parent
OPERATORS = frozenset({*NAMES, *INTERNAL})
ALLOWED = ("catalog", "reference/meanings")
LOWERINGS = ROOT / "spark" / "lower"

PYTHON = "a function or method of Python's"
GOAL = "what a plan is for: a tick or a range"
TEXT = "a function's text, or its record"
OTHER_WORDS: Mapping[str, Mapping[str, str]] = {
    "analysis/slice_wording.py": {"null": "a value as users read it"},
    "cli/main.py": {"partition": "a command"},
    "cli/optimize.py": {"tick": GOAL},
    "cli/run_files.py": {"tick": GOAL},
    "compile.py": {"tick": GOAL},
    "deploy/decode.py": {"source": TEXT, "aggregate": "what a record holds"},
    "deploy/encode.py": {"source": TEXT, "aggregate": "what a record holds"},
    "deploy/functions.py": {"source": TEXT},
    "engines.py": {"tick": GOAL},
    "functions/allowed.py": {"sort": PYTHON},
    "functions/boolean.py": {"source": TEXT},
    "functions/constant_limits.py": {"join": PYTHON},
    "functions/made.py": {"source": TEXT},
    "functions/normal.py": {"source": TEXT},
    "functions/typing_calls.py": {"enumerate": PYTHON, "zip": PYTHON},
    "functions/typing_methods.py": {"join": PYTHON},
    "functions/typing_parts.py": {"fold": "a field of Python's datetime"},
    "optimize/cost.py": {"tick": GOAL},
    "optimize/optimizer.py": {"tick": GOAL},
    "plan/tick_plan.py": {"changes": "how a table is stored"},
    "project/asset_yaml.py": {"unique": "a key of asset.yaml"},
    "project/flow_asset.py": {"tick": "a column of outputs"},
    "shards/run.py": {"tick": GOAL},
    "shards/traffic.py": {"tick": GOAL},
    "ticks/axis.py": {"latest": "pandas' word for a time that does not exist"},
    "spark/functions/columns/arrays.py": {"enumerate": PYTHON},
    "spark/functions/columns/methods.py": {"join": PYTHON},
    "spark/lower/explained.py": {"aggregate": "how a function runs"},
    "spark/session/failures.py": {"tick": "what a message tells"},
    "spark/files/frames.py": {"delta": "Spark's name of a format"},
    "spark/lower/io.py": {"tick": "a column of the tick's row"},
    "spark/lower/state.py": {"persist": "a command's word"},
    "spark/pipeline/verify.py": {"tick": "what a message tells"},
    "spark/frames/relation.py": {"changes": "a field of a relation"},
    "spark/store/schema.py": {"tick": "a column of outputs"},
    "files/outputs.py": {"tick": "a column of outputs"},
    "types/ddl.py": {"map": "a type of Spark's", "null": "a word of Spark's DDL"},
}
"""By module: words that are an operator's name, too, with what they mean there."""


def _strings(tree: ast.AST) -> Iterator[ast.Constant]:
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in OPERATORS)


def _registered(call: ast.AST) -> bool:
    """Whether it is `lowers("map")`, which says of which operators a function is the lowering."""
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "lowers"
    )


def _named(file: Path) -> Iterator[tuple[str, int]]:
    """The operators' names that a module writes out, each with its line."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    calls = filter(_registered, ast.walk(tree)) if LOWERINGS in file.parents else ()
    registered = {name for call in calls for name in _strings(call)}
    yield from ((str(n.value), n.lineno) for n in _strings(tree) if n not in registered)


def _found() -> Mapping[str, list[tuple[str, int]]]:
    files = {file.relative_to(ROOT).as_posix(): file for file in sorted(ROOT.rglob("*.py"))}
    found = {n: list(_named(f)) for n, f in files.items() if not n.startswith(ALLOWED)}
    return {name: names for name, names in found.items() if names}


def test_no_operator_is_named_outside_the_catalogue() -> None:
    named = [
        f"{module}:{line}: {name!r}"
        for module, names in _found().items()
        for name, line in names
        if name not in OTHER_WORDS.get(module, {})
    ]
    assert named == []


def test_every_other_word_is_there() -> None:
    found = {module: {name for name, _ in names} for module, names in _found().items()}
    assert {module: set(words) for module, words in OTHER_WORDS.items()} == found
