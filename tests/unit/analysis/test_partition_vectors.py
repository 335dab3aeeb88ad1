"""The shared partition vectors: every minimal choice, every wrong one, and who is to blame."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hydro_core.analysis.partition.locations import locate
from hydro_core.analysis.partition.partitioning import partition
from hydro_core.analysis.partition.steps import steps_of
from hydro_core.analysis.partition.terms import FieldAt, KeyTerm, of_tree, rewritten, whole
from hydro_core.catalog.spec import functions_of
from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.functions.lineage import field_map
from hydro_core.functions.tree import children, with_children
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType, at
from tests.unit.shared import or_skipped, vectors

Vector = dict[str, Any]
NOT_REACHED: dict[str, str] = {}
"""Vectors by their names, with the reason why they are not reached."""


def cases() -> list[Any]:
    return [pytest.param(v, id=v["name"], marks=_marks(v["name"])) for v in vectors("partition")]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.xfail(reason=NOT_REACHED[name], strict=True)] if name in NOT_REACHED else []


@pytest.mark.parametrize("vector", or_skipped(cases()))
def test_vector(vector: Vector, tmp_path: Path) -> None:
    bound = _bound(vector, tmp_path)
    program = _compiled(vector, bound)
    found = partition(program.typed).as_json()
    expected = vector["expect"]
    assert found["partitionable"] is expected["partitionable"]
    assert found["any"] is expected.get("any", False)
    keys = {frozenset(_terms(c, program, bound).items()) for c in found["keys"]}
    assert keys == _expanded(expected.get("keys", []), program, bound)
    assert set(found["blocked_by"]) == set(expected.get("blocked_by", []))
    if "partial" in expected:
        assert _partial(found, program, bound) == _partial(expected, program, bound)


@pytest.mark.parametrize("vector", or_skipped(cases()))
def test_what_is_wrong_is_refused(vector: Vector, tmp_path: Path) -> None:
    bound = _bound(vector, tmp_path)
    program = _compiled(vector, bound)
    steps = steps_of(program.typed)
    for wrong in vector.get("wrong", []):
        choice = _terms(wrong["keys"], program, bound)
        assert locate(steps, choice).failed


def _compiled(vector: Vector, bound: Mapping[str, Any]) -> CompiledProgram:
    schemas = {name: parse_ddl(ddl) for name, ddl in vector["schemas"].items()}
    return compile_text(vector["program"], schemas, bindings=bound)


def _bound(vector: Vector, folder: Path) -> dict[str, Any]:
    """The functions that the caller binds, from a file: so their source can be read."""
    functions = vector.get("functions", {})
    file = folder / "bound.py"
    file.write_text("".join(f"{name} = {text}\n" for name, text in functions.items()))
    spec = importlib.util.spec_from_file_location("bound", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: getattr(module, name) for name in functions}


def _terms(
    choice: Vector, program: CompiledProgram, bound: Mapping[str, Any]
) -> dict[str, KeyTerm]:
    types = {name: stream.item for name, stream in program.typed.inputs.items()}
    return {name: _term(path, types[name], bound) for name, path in choice.items()}


def _term(path: list[str], item: ItemType, bound: Mapping[str, Any]) -> KeyTerm:
    if not path or not path[-1].startswith("="):
        return whole(item, tuple(path))
    *around, text = path
    inner = at(item, tuple(around))
    assert inner is not None
    program = compile_text(f"i -> map(lambda _: {text[1:]}) -> o", {"i": inner}, bindings=bound)
    (function,) = [fn for node in program.graph for fn in functions_of(node.args)]
    term = of_tree(field_map(function, (inner,)).made[()], inner)
    assert term is not None
    return _below(term, tuple(around))


def _below(term: KeyTerm, around: tuple[str, ...]) -> KeyTerm:
    if isinstance(term, FieldAt):
        return FieldAt((*around, *term.path))
    return with_children(term, (_below(part, around) for part in children(term)))


def _expanded(
    keys: list[Vector], program: CompiledProgram, bound: Mapping[str, Any]
) -> set[frozenset[tuple[str, KeyTerm]]]:
    """Choices by leaves: one of a tuple or row stands for one of each of its leaves."""
    found = set()
    for choice in keys:
        terms = _terms(choice, program, bound)
        first = next(iter(terms.values()))
        if isinstance(first, FieldAt) or choice[next(iter(choice))][-1].startswith("="):
            found.add(frozenset(terms.items()))
            continue
        parts = {name: _leaves(term) for name, term in terms.items()}
        for together in zip(*parts.values(), strict=True):
            found.add(frozenset(zip(parts, together, strict=True)))
    return found


def _leaves(term: KeyTerm) -> list[KeyTerm]:
    if isinstance(term, FieldAt):
        return [term]
    return [leaf for part in children(term) for leaf in _leaves(part)]


def _partial(answer: Vector, program: CompiledProgram, bound: Mapping[str, Any]) -> set[Any]:
    return {
        (
            frozenset(partial["replicate"]),
            partial.get("any", False),
            frozenset(_expanded(partial.get("keys", []), program, bound)),
        )
        for partial in answer["partial"]
    }


def test_the_comparison_tells_functions_apart(tmp_path: Path) -> None:
    item, bound = (
        parse_ddl("(long, long)"),
        _bound({"functions": {"f": "lambda x: x % 2"}}, tmp_path),
    )
    assert _term(["0", "=f(_)"], item, bound) == _term(["0", "=_ % 2"], item, bound)
    assert _term(["=f(_[0])"], item, bound) == _term(["0", "=_ % 2"], item, bound)
    assert _term(["0", "=_ % 3"], item, bound) != _term(["0", "=_ % 2"], item, bound)
    assert rewritten(_term(["0", "=_ % 2"], item, bound), {FieldAt(("0",)): (FieldAt(("1",)),)})
