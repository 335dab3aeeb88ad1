"""No operator's and no aggregate's name outside the catalogue, definitions and registrations.

What an operator or an aggregate is stands in its entry; who asks for it by its name does not know
of the others. A lowering is registered by the name of what it lowers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import hydro_core
from hydro_core.catalog import aggregates
from hydro_core.catalog.internal import INTERNAL
from hydro_core.catalog.registry import NAMES

ROOT = Path(hydro_core.__file__).parent
OPERATORS = frozenset({*NAMES, *INTERNAL})
ALLOWED = ("catalog", "reference/definitions", "agg.py", "over.py")
"""Of the last two the names are what users call."""
LOWERINGS = ROOT / "spark" / "lower"

PYTHON = "a function or method of Python's"
TEXT = "a function's text, or its record"
FIRST = "a function that gives the first of a pair"
TOTAL = "a function that has a value for every item"
COLUMN = "a column"
FOREIGN = "what users of other systems write"
Words = Mapping[str, Mapping[str, str]]
OTHER_WORDS: Words = {
    "__init__.py": {"over": "the module of its functions"},
    "analysis/slices.py": {"null": "a value as users read it"},
    "cli/table.py": {"partition": "a command"},
    "artifact/codecs.py": {"source": TEXT, "aggregate": "what a record holds"},
    "artifact/functions.py": {"source": TEXT},
    "functions/allowed.py": {"sort": PYTHON},
    "functions/forms.py": {"source": TEXT},
    "functions/library/collections.py": {"enumerate": PYTHON, "union": PYTHON, "zip": PYTHON},
    "functions/library/texts.py": {"join": PYTHON, "partition": PYTHON},
    "functions/library/times.py": {"fold": "a field of Python's datetime"},
    "lang/arguments.py": {"aggregate": "what an argument is"},
    "project/failing.py": {"source": COLUMN},
    "project/quarantine.py": {"source": COLUMN},
    "project/check.py": {"tick": "a column of outputs"},
    "project/yaml_text.py": {"map": "a kind of node of YAML", "null": "a tag of YAML"},
    "project/flow_asset.py": {"tick": "a column of outputs"},
    "ticks/tick_range.py": {"latest": "pandas' word for a time that does not exist"},
    "spark/functions/columns/choices.py": {"enumerate": PYTHON, "zip": PYTHON},
    "spark/inputs/differences.py": {"tick": "a column of a stored list"},
    "spark/lower/explained.py": {"aggregate": "how a function runs"},
    "spark/session/training.py": {"delta": "Spark's name of a format"},
    "spark/session/jars.py": {"delta": "Spark's name of a format"},
    "spark/session/ready.py": {"delta": "Spark's name of a format"},
    "spark/session/failures.py": {"tick": "what a message tells"},
    "spark/files/frames.py": {"delta": "Spark's name of a format"},
    "spark/lower/linear.py": {"tick": "a column of the tick's row", "source": COLUMN},
    "spark/lower/over_time.py": {"persist": "a command's word"},
    "spark/pipeline/kept_plan.py": {"tick": "a column of the tick's row"},
    "spark/pipeline/copies.py": {"tick": "what a message tells"},
    "spark/frames/relation.py": {"changes": "a field of a relation"},
    "spark/store/schema.py": {"tick": "a column of outputs"},
    "files/outputs.py": {"tick": "a column of outputs"},
    "types/ddl.py": {"map": "a type of Spark's", "null": "a word of Spark's DDL"},
}
"""By module: words that are an operator's name, too, with what they mean there."""
WORDS_OF_AGGREGATES: Words = {
    "cli/run.py": {"every": "a word of a calendar"},
    "functions/library/collections.py": dict.fromkeys(("count", "max", "min", "sum"), PYTHON),
    "functions/library/texts.py": {"count": PYTHON},
    "lang/foreign.py": {"count": FOREIGN, "sum": FOREIGN},
    "optimize/compare.py": {"sum": "two streams added up"},
    "optimize/calls.py": {"total": TOTAL},
    "optimize/rule.py": {"first": FIRST, "total": TOTAL},
    "optimize/rules/facts.py": {"first": FIRST, "total": TOTAL},
    "project/asset_yaml.py": {"count": "a key of asset.yaml"},
    "running.py": {"every": "a word of a calendar"},
    "spark/executor/fixpoint.py": {"count": COLUMN},
    "spark/files/run.py": {"count": COLUMN},
    "spark/functions/columns/calls.py": {"max": PYTHON, "min": PYTHON, "sum": PYTHON},
    "spark/inputs/snapshot.py": {"first": "a key of a record", "last": "a key of a record"},
    "spark/inputs/batches.py": {
        "max": "Arrow's word",
        "min": "Arrow's word",
        "count": "Arrow's word",
    },
    "spark/inputs/reading.py": {"sum": "Arrow's word"},
    "spark/lower/over_time.py": {"first": COLUMN},
    "spark/lower/aggregates.py": {
        "mean": "what a message tells",
        "sum": "what a message tells",
    },
    "spark/store/earlier_tables.py": {
        "max": "a column's statistics",
        "min": "a column's statistics",
    },
    "ticks/calendar.py": {"every": "a word of a calendar"},
}
"""By module: words that are an aggregate's name, too."""


def _strings(tree: ast.AST, names: Collection[str]) -> Iterator[ast.Constant]:
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in names)


def _operators_lowered(tree: ast.AST) -> Iterator[ast.AST]:
    """`lowers("map")` says of which operators a function is the lowering."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield from [call] if call.func.id == "lowers" else []


def _aggregates_lowered(tree: ast.AST) -> Iterator[ast.AST]:
    """The keys of a table at the top of a module say what its values are the lowerings of."""
    for statement in ast.iter_child_nodes(tree):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Dict):
            yield from filter(None, statement.value.keys)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What has names, and where these may stand."""

    names: Collection[str]
    words: Words
    lowered: Callable[[ast.AST], Iterator[ast.AST]]

    def named(self, file: Path) -> Iterator[tuple[str, int]]:
        """The names that a module writes out, each with its line."""
        tree = ast.parse(file.read_text(encoding="utf-8"))
        known = self.lowered(tree) if LOWERINGS in file.parents else ()
        registered = {name for part in known for name in _strings(part, self.names)}
        found = _strings(tree, self.names)
        yield from ((str(n.value), n.lineno) for n in found if n not in registered)

    def found(self) -> Mapping[str, list[tuple[str, int]]]:
        """By module, what is named outside the catalogue and the definitions."""
        files = {file.relative_to(ROOT).as_posix(): file for file in sorted(ROOT.rglob("*.py"))}
        found = {n: list(self.named(f)) for n, f in files.items() if not n.startswith(ALLOWED)}
        return {name: names for name, names in found.items() if names}


AGGREGATES = frozenset({*aggregates.NAMES, *aggregates.AGGREGATES})
KINDS = (
    pytest.param(_Kind(OPERATORS, OTHER_WORDS, _operators_lowered), id="operators"),
    pytest.param(_Kind(AGGREGATES, WORDS_OF_AGGREGATES, _aggregates_lowered), id="aggregates"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_named_outside_the_catalogue(kind: _Kind) -> None:
    named = [
        f"{module}:{line}: {name!r}"
        for module, names in kind.found().items()
        for name, line in names
        if name not in kind.words.get(module, {})
    ]
    assert named == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_other_word_is_there(kind: _Kind) -> None:
    found = {module: {name for name, _ in names} for module, names in kind.found().items()}
    assert {module: set(words) for module, words in kind.words.items()} == found
