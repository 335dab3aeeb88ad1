"""A few programs in which everything occurs that ranges treat differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph, optimized
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.running import given_types
from tests.golden.vectors import Vector
from tests.support.selection import cover

Feature = tuple[str, ...]


def features(of: CompiledProgram) -> frozenset[Feature]:
    """The operators of a program with the kinds of their inputs, and how its parts run."""
    found = plan(of.typed)
    operators = set()
    for node in found.graph:
        kinds = [found.kinds[e.node].value for e in node.inputs]
        kinds = sorted(set(kinds)) if node.spec.variadic else kinds
        operators.add((node.op.name, str(node.args.get("how", "")), *kinds))
    return frozenset(operators | {("component", c.how) for c in found.components})


def compiled(vector: Vector, *, optimize: bool) -> CompiledProgram:
    """The program of a vector, as written or as its plan."""
    return _compiled(json.dumps(vector, sort_keys=True), optimize)


@cache
def _compiled(text: str, optimize: bool) -> CompiledProgram:
    """Once in a run: the vectors are chosen by their programs, which then run."""
    vector = json.loads(text)
    ticks = vector.get("ticks", [{}])
    graph = parse(vector["program"])
    found = compile_graph(graph, given_types(graph, vector.get("schemas", {}), ticks))
    return optimized(found) if optimize else found


def covering_programs(programs: Mapping[str, CompiledProgram]) -> list[str]:
    """Names of few programs that have all features which any of them has."""
    return cover({name: features(program) for name, program in programs.items()})


def errors_of(vector: Vector) -> list[str]:
    """The codes of the errors that a vector may end in, none where it has a result."""
    return [vector["error"], *vector.get("error_alternatives", [])] if "error" in vector else []


def covering(vectors: Iterable[Vector], *, optimize: bool) -> list[Vector]:
    """Few of the vectors that have all features which any of them has."""
    known: dict[str, frozenset[Feature]] = {}
    named = {v["name"]: v for v in vectors}
    for name, vector in named.items():
        try:
            known[name] = features(compiled(vector, optimize=optimize))
        except HydroError as problem:
            if problem.code not in errors_of(vector):
                raise
    return [named[name] for name in cover(known)]


def of_every_operator(vectors: Iterable[Vector], order: Callable[[str], Any] = str) -> list[Vector]:
    """Few vectors with all operators and classes, as written, that any of them has."""
    named = {v["name"]: v for v in vectors if v.get("ticks")}
    known: dict[str, frozenset[Feature]] = {}
    for name in sorted(named, key=order):
        try:
            graph = compiled(named[name], optimize=False).graph
        except HydroError as problem:
            if problem.code not in errors_of(named[name]):
                raise
            continue
        known[name] = frozenset(
            {(n.op.name,) for n in graph} | {(type(n.cls).__name__, "class") for n in graph}
        )
    return [named[name] for name in cover(known)]
