"""Planning ends for programs with cycles, as written and optimized, and asks for few lookups.

A search along inputs that does not notice that it comes round recurses without end, or never
returns; one that adds a step in each round ends with thousands of lookups.
"""

from __future__ import annotations

import pytest

from hydro_core.compile import CompiledProgram, best_plan, compile_graph, compile_text, planned
from hydro_core.lang.resolve import parse
from hydro_core.plan.lookups import lookups, round_lookups
from hydro_core.types.ddl import parse_ddl
from tests.laws.programs import random_program

MOST_LOOKUPS = 100
PROGRAMS = {
    "paths": """
edges = source("(long, long)") -> persist() -> unique()
paths = union() -> unique()
edges -> map(lambda a, b: (a, b, [a, b])) -> [0]paths
paths -> filter_map(lambda a, b, p: None if p[0] in p[1:] else (b, (a, p))) -> [0]longer
edges -> [1]longer
longer = join() -> map(lambda m, pc: (pc[0][0], pc[1], pc[0][1] + [pc[1]]))
longer -> filter(lambda a, b, p: b not in p[1:-1]) -> [1]paths
paths -> filter_map(lambda a, b, p: p if a == b else None) -> unique() -> delta() -> out""",
    "a join that is a set": """
link = source("(long, long)")
edge = union()
link -> persist() -> [0]edge
both = join() -> unique()
edge -> map(lambda a, k: (k, a)) -> [0]both
link -> persist() -> [1]both
both -> map(lambda k, ab: ab) -> [1]edge
both -> delta() -> out""",
    "a semi join": """
s = source("(long, long)") -> persist()
x = union() -> unique()
s -> x
x -> map(lambda a, b: (b, a)) -> join(right=s, how="semi") -> x
x -> out""",
    "rows that few others let pass": """
n = source("k long, m long")
few = source("k long, z long") -> latest(by="k", order="z") -> filter(lambda r: r.z == 1)
x = union() -> unique()
n -> persist() -> x
x -> join(right=few, on="k", how="semi") -> with_columns(m=lambda r: (r.m + 1) % 3) -> x
d = source("k long, w long") -> persist()
d -> join(right=x, on="k") -> delta() -> out""",
    "three joins": "\n".join(
        (
            "p = union() -> unique()",
            *(
                f'e{i} = source("(long, long)") -> persist()\ne{i} -> p\n'
                f"p -> map(lambda a, b: (b, a)) -> join(right=e{i}) -> map(lambda k, ab: ab) -> p"
                for i in range(3)
            ),
            "p -> delta() -> out",
        )
    ),
    "operators of one input": """
s = filter(lambda k, v: True)
s -> filter(lambda k, v: k > 0) -> s
h = source("(long, long)") -> persist()
s -> join(right=h) -> out""",
    "pairs of a cycle of one input": """
s = filter(lambda k, v: True)
s -> s
a = source("(long, long)")
old = a -> persist()
z = union()
s -> join(right=old) -> z
s -> join(right=a) -> z
z -> out""",
    "a sum in rounds": """
a = source("(long, long)")
b = source("(long, long)")
x = union()
b -> persist() -> x
x -> filter(lambda p, q: p > 0) -> map(lambda p, q: (p - 1, q)) -> x
r = union() -> unique()
a -> r
r -> join(right=x) -> map(lambda k, p: p) -> r
r -> out""",
}


@pytest.mark.parametrize("optimize", [False, True], ids=["written", "optimized"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cycle(name: str, optimize: bool) -> None:
    assert_plannable(compile_text(PROGRAMS[name]), optimize=optimize)


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        random_one(seed, optimize=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
def test_more_random_programs(part: int) -> None:
    for seed in range(1000 + part * 100, 1100 + part * 100):
        random_one(seed, optimize=bool(seed % 4 == 0))


def random_one(seed: int, *, optimize: bool) -> None:
    made = random_program(seed, steps=8)
    types = {name: parse_ddl(schema) for name, schema in made.schemas.items()}
    assert_plannable(compile_graph(parse(made.text), types), optimize=optimize)


def assert_plannable(program: CompiledProgram, *, optimize: bool) -> None:
    plan = planned(program, best_plan(program) if optimize else None)
    in_rounds, outputs = round_lookups(plan), list(program.typed.outputs)
    for added in ((), outputs):
        for needed in (lookups(plan, added), lookups(plan, added, in_rounds)):
            assert sum(len(rows.found) for rows in needed.values()) <= MOST_LOOKUPS
