"""What stored state is known by: the same however a program is written, and in every release.

`semantic_hashes.json` holds the hashes of today. It is not rewritten with the other expected files:
a hash that changes without a new `VERSION` would lose the state of every pipeline that has run.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.catalog.registry import CATALOG
from hydro_core.compile import CompiledProgram, best_plan, compile_text, planned
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.plan.planner import plan
from hydro_core.plan.semantic_hash import VERSION, program_hashes
from hydro_core.types.ddl import parse_ddl

RECORD = Path(__file__).parent / "semantic_hashes.json"
ROWS = 'a = source("k long, v long"); b = source("k long, w long")\n'
PAIRS = 'a = source("(long, string)")\n'


def _found(text: str, node: str = "out") -> str:
    return program_hashes(compile_text(text).typed)[node]


def test_meanings_are_those_that_were_recorded() -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert recorded["version"] == VERSION, "a new version needs a new record"
    assert recorded["meanings"] == _of_today()


def _of_today() -> dict[str, dict[str, str]]:
    found = {}
    for op in CATALOG.values():
        schemas = {name: parse_ddl(text) for name, text in op.example.schemas.items()}
        typed = compile_text(op.example.program, schemas).typed
        found[op.example.program] = dict(program_hashes(typed))
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a -> filter(lambda x: x[0] > 1) -> out", "a -> filter(lambda y: y._1 > 1) -> out"),
        ("a -> map(lambda x: x[1]) -> out", "a -> map(lambda k, v: v) -> out"),
        ("a -> unique() -> out", "seen = a -> identity() -> unique(); seen -> out"),
        ("x = a -> union(a); x -> out", "y = a -> tee(); y -> union(a) -> out"),
        (
            "a -> sort() -> fold(0, lambda s, x: s + x[0]) -> out",
            "a -> sort() -> fold(0, lambda total, p: total + p._1) -> out  # the sum",
        ),
    ],
)
def test_how_it_is_written_does_not_count(one: str, other: str) -> None:
    assert _found(PAIRS + one) == _found(PAIRS + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('a -> select("k") -> out', 'a -> drop("v") -> out'),
        ('a -> rename(z="v") -> out', 'a -> map(lambda r: {"k": r.k, "z": r["v"]}) -> out'),
        ('a -> join(right=b, on="k") -> out', 'a -> join(right=b, on=("k",), how="inner") -> out'),
    ],
)
def test_spellings_of_one_operator(one: str, other: str) -> None:
    assert _found(ROWS + one) == _found(ROWS + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a -> filter(lambda r: r.v == 1) -> out", "a -> filter(lambda r: r.v == 2) -> out"),
        ("a -> filter(lambda r: r.v == 1) -> out", "a -> filter(lambda r: r.v == True) -> out"),
        ("a -> filter(lambda r: r.k == 1) -> out", "b -> filter(lambda r: r.k == 1) -> out"),
        ("a -> window(2) -> out", "a -> window(3) -> out"),
        ('a -> join(right=b, on="k") -> out', 'b -> join(right=a, on="k") -> out'),
        ('a -> select("k", "v") -> out', 'a -> select("v", "k") -> out'),
        ("a -> persist() -> out", "a -> old() -> out"),
        ("a -> sort() -> out", "a -> sort_by_key(lambda r: r.k) -> out"),
    ],
)
def test_what_is_computed_does(one: str, other: str) -> None:
    assert _found(ROWS + one) != _found(ROWS + other)


def test_a_declared_schema_is_what_an_undeclared_one_is_found_to_be() -> None:
    said = compile_text("a -> unique() -> out", {"a": parse_ddl("k long")})
    declared = compile_text('a = source("k long")\na -> unique() -> out')
    assert program_hashes(said.typed)["out"] == program_hashes(declared.typed)["out"]


COUNTS = ROWS + 'a -> persist() -> aggregate(by="k", n=count(), s=sum("v")) -> out\n'
KNOWN = ROWS + "a -> persist() -> unique() -> filter(lambda r: r.v == 1) -> out\n"
JOINED = ROWS + 'x = a -> persist(); x -> join(right=b -> persist() -> unique(), on="k") -> out\n'


def _state(program: CompiledProgram, stats: Statistics | None = None) -> dict[str, str]:
    made = planned(program, best_plan(program, stats))
    return {slot.semantic_hash: slot.id for slot in made.slots}


def test_another_plan_of_a_program_takes_its_state_over() -> None:
    program = compile_text(COUNTS)
    many = Statistics(ticks=5000, inputs={"a": InputStatistics(rows=2, history=1e9)})
    assert _state(program) == _state(program, many)
    renamed = compile_text(COUNTS.replace("a -> persist", "a -> identity() -> persist"))
    assert _state(program).keys() == _state(renamed).keys()


def test_a_stream_of_the_program_is_known_by_what_it_is_there() -> None:
    program = compile_text(COUNTS)
    hashes = program_hashes(program.typed)
    made = planned(program, best_plan(program))
    (kept,) = {made.hashes[s.stream.node] for s in made.slots}
    assert kept == hashes["aggregate_1"]


def test_the_program_as_written_and_its_plan_store_one_history_alike() -> None:
    program = compile_text(ROWS + 'a -> old() -> join(right=b, on="k") -> out')
    written = {s.semantic_hash for s in plan(program.typed).slots}
    assert written == _state(program).keys()
