"""What plans owe their programs beside their outputs: places of failures, and no chance in them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hydro_core.compile import compile_graph, compile_text, optimized
from hydro_core.errors import DataError
from hydro_core.ir.graph import Node
from hydro_core.optimize.optimizer import BrokenGraphError, optimize, verify
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.values import Struct

PAIRS = 'a = source("(long, long)"); b = source("(long, long)")\n'
FAILING = {
    "a map below a join": (
        PAIRS + "m = a -> persist()\n"
        "  -> map(lambda k, v: (k, 6 // v))\n"
        "m -> join(right=b) -> delta() -> out",
        3,
    ),
    "a filter that goes below a map": (
        PAIRS + "a -> persist() -> map(lambda k, v: (v, k))\n"
        "  -> filter(lambda v, k: 6 // v > 1) -> delta() -> out",
        3,
    ),
    "the second part of an `and`": (
        PAIRS + "a -> persist() -> filter(\n"
        "    lambda x: x[0] == 1 and 6 // x[1] > 1) -> delta() -> out",
        3,
    ),
    "a running fold": (
        PAIRS + "a -> persist() -> map(lambda k, v: v)\n"
        "  -> fold(1, lambda s, v: s // v, commutative=True) -> out",
        3,
    ),
    "a function of an aggregate in parts": (
        (
            'a = source("k long, v long")\n'
            "a -> persist()\n"
            '  -> aggregate(by="k", m=avg(lambda r: 6 // r.v)) -> delta() -> out'
        ),
        3,
    ),
    "a sum over a window beyond 64 bits": (
        (
            'a = source("k long, v long")\n'
            "a -> window(20)\n"
            '  -> aggregate(by="k", m=sum(lambda r: r.v * 4611686018427387904)) -> out'
        ),
        3,
    ),
}


@pytest.mark.parametrize(("text", "line"), FAILING.values(), ids=FAILING)
def test_a_failure_in_a_plan_names_the_line_of_the_program(text: str, line: int) -> None:
    program = compile_text(text, file="mine.hydro")
    plan = optimized(program)
    assert plan.graph.nodes != program.graph.nodes, "it has been optimized"
    rows = 'k long, v long"' in text
    items = [
        {"k": 1, "v": v} if rows else Struct((1, v)) for v in (2, 1 if "window" in text else 0)
    ]
    ticks = [TickInput({"a": [item]}) for item in items]
    found = []
    for compiled in (program, plan):
        with pytest.raises(DataError) as stopped:
            list(run_ticks(compiled.typed, compiled.strata, ticks))
        (diagnostic,) = stopped.value.diagnostics
        assert diagnostic.span is not None
        found.append((diagnostic.code, diagnostic.span.file, diagnostic.span.line))
    assert found[0] == found[1] == ("runtime", "mine.hydro", line)


SHOW = """
import sys
from random import Random
from hydro_core.compile import compile_graph, compile_text
from hydro_core.ir.term import to_terms
from hydro_core.ir.sexpr import show
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.optimize.compare import ComparedStream, proofs
from hydro_core.optimize.optimizer import optimize
from tests.support.flows import program
from tests.laws.test_orders import CHAIN
for text in (CHAIN, *(program(Random(seed), 5) for seed in (1, 4, 9))):
    try:
        found = optimize(compile_text(text).typed, explain=True)
    except Exception as problem:
        print(type(problem).__name__)
        continue
    print([show(t) for t in to_terms(found.graph).values()], list(found.graph.nodes))
    print(found.cost_after, found.notes, [d.render() for d in found.derivations])
RULES = '''
.input edge(src: string, dst: string)
.output reach
edge(x, y)@next :- edge(x, y).
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
'''
MORE = RULES.replace("reach\\n", "reach, loop\\n", 1) + "loop(x) :- edge(x, x)."
programs = [compile_graph(graph_of_rules(read_rules(text))).typed for text in (RULES, MORE)]
made = [of.graph.sinks["reach"][0].inputs[0] for of in programs]
print(proofs(programs, {"reach": [tuple(map(ComparedStream, (0, 1), made))]}))
"""


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    shown = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SHOW],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        shown.add(done.stdout)
    (output,) = shown
    assert "letrec" in output or "old" in output


def test_every_plan_is_a_sound_graph() -> None:
    plan = optimize(compile_text(PAIRS + "a -> persist() -> join(right=b) -> delta() -> out").typed)
    assert verify(plan.graph) is plan.graph
    broken = {**plan.graph.nodes, "out": plan.graph["out"].with_(inputs=())}
    with pytest.raises(BrokenGraphError, match="out: has 0 inputs"):
        verify(compile_graph(plan.graph).graph.of(broken.values()))
    assert all(isinstance(n, Node) for n in plan.graph)
