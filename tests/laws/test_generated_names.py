"""A program's names mean nothing: no statement or column gets in the way of one that a plan adds.

Each program is planned, and changed so that it has the names that the plan adds itself: a statement
of it gets such a name, or a new statement, of the same operator and arguments on another input; an
aggregate gets a neighbour that is called like a stored part. The new plan still agrees with its
program.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from hydro_core.catalog.internal import RUNNING_OVER
from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.catalog.ordered import OVER
from hydro_core.catalog.spec import Aggregate, Args, OverFunction
from hydro_core.compile import CompiledProgram, compile_graph, compile_text, optimized
from hydro_core.errors import HydroError
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, free_name, source_args
from hydro_core.lang.load import load_text
from hydro_core.lang.resolve import parse
from hydro_core.running import given_types
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import LONG, Field, Row
from hydro_core.validation.random_ticks import validate_randomly
from tests.golden.cases import Case, all_cases
from tests.golden.test_dedalus import RIGHT
from tests.laws.programs import template_program
from tests.laws.templates import TEMPLATES, Template
from tests.laws.test_loops import GROWING
from tests.support.selection import mostly_slow

RUNS = 6
MOST_CHANGES = 4

CASES = {
    "columns that nobody reads": """
        a = source("k long, v long, w long")
        b = source("k long, v long"); n = source("k long, v long")
        a -> persist() -> aggregate(by="k", m=median("v")) -> out
        b -> unique() -> two
        n -> select("v") -> three""",
    "columns of several outputs": """
        a = source("k long, v long, w long"); b = source("k long, v long")
        parts = a -> partition(lambda r: "even" if (r.k or 0) % 2 == 0 else "odd", ["even", "odd"])
        parts[even] -> persist() -> aggregate(by="k", m=median("v")) -> out
        parts[odd] -> persist() -> aggregate(by="k", m=median("w")) -> more
        b -> unique() -> two""",
    "a sequence as a bag": """
        n = source("long"); m = source("long")
        sums = n -> sort() -> scan(0, lambda s, x: s + (x or 0))
        sums -> persist() -> filter(lambda x: x > 0) -> two
        m -> unique() -> three""",
    "a cycle that grows": GROWING["reachable"],
    "equal rows": """
        a = source("k long, v long, at long")
        a -> persist()
          -> over(by="k", order="at", total=running(sum("v"), peers=True)) -> out""",
    "equal rows and a mean": """
        a = source("k long, v long, at long")
        a -> persist() -> over(
            by="k", order="at", m=running(avg("v"), peers=True), n=running(count())) -> out""",
}
PROGRAMS = [case for case in all_cases() if case.error is None]


def _renamed(graph: Graph, old: NodeId, new: NodeId) -> Graph:
    """The graph with another name for one statement; inputs and outputs are called as before."""

    def called(name: NodeId) -> NodeId:
        return new if name == old else name

    return Graph.of(
        node.with_(
            id=called(node.id),
            inputs=tuple(Endpoint(called(e.node), e.port) for e in node.inputs),
        )
        for node in graph
    )


def _intruded(program: CompiledProgram, plan: CompiledProgram, added: Node) -> Graph:
    """The graph with a statement like one that the plan adds, under its name, on new inputs."""
    nodes = list(program.graph)
    taken = {*program.graph.nodes, added.id}
    inputs = []
    for read in added.inputs:
        name = free_name("other", taken)
        taken.add(name)
        nodes.append(Node(name, SOURCE, source_args(name, schema=plan.typed.types[read].item)))
        inputs.append(Endpoint(name))
    nodes.append(added.with_(inputs=tuple(inputs)))
    sink = Node(free_name("intruder", taken), SINK, Args((("name", "intruder"),)))
    return Graph.of((*nodes, sink.with_(inputs=(Endpoint(added.id),))))


def _beside(graph: Graph, column: str) -> Iterator[Graph]:
    """The graph with a column of this name beside the results of one node, or in one input."""
    for node in graph:
        changed = None
        if node.args.get("aggregates"):
            wider = (*node.args["aggregates"], (column, Aggregate("count", ())))
            changed = node.args.with_(aggregates=wider)
        if node.op is OVER:
            wider = (*node.args["functions"], (column, OverFunction("row_number")))
            changed = node.args.with_(functions=wider)
        if node.op is SOURCE and isinstance(node.args["schema"], Row):
            row = Row((*node.args["schema"].fields, Field(column, LONG)))
            changed = node.args.with_(schema=row)
        if changed is not None:
            yield Graph.of(n.with_(args=changed) if n is node else n for n in graph)


def _columns(of: CompiledProgram) -> set[str]:
    rows = (stream.item for stream in of.typed.types.values())
    return {name for row in rows if isinstance(row, Row) for name in row.names}


def _declared(program: CompiledProgram) -> Graph:
    """The graph with the schema of every input in its statement."""
    return Graph.of(
        n.with_(args=n.args.with_(schema=program.typed.of(n.id).item)) if n.op is SOURCE else n
        for n in program.graph
    )


def _changes(program: CompiledProgram) -> Iterator[tuple[str, Graph]]:
    """The program with names that its plan adds, and what is changed."""
    graph, plan = program.graph, optimized(program)
    for added in plan.graph:
        if added.id in graph.nodes:
            continue
        yield f"another {added.id}", _intruded(program, plan, added)
        for name in graph.nodes:
            if not added.id.startswith(name):
                yield f"{name} is called {added.id}", _renamed(graph, name, added.id)
    for column in sorted(_columns(plan) - _columns(program)):
        for changed in _beside(graph, column):
            yield f"a column {column}", changed


def _parts_are_apart(plan: CompiledProgram) -> bool:
    """True if no stored aggregate so far has the name of a column that shows something else."""
    for node in plan.graph.named(RUNNING_OVER.name):
        shown = dict(node.args["functions"])
        for name, part in node.args["parts"]:
            if name in shown and shown[name] != OverFunction("running", (part, False)):
                return False
    return True


def _check(program: CompiledProgram, most: int | None = None, seed: object = 0) -> int:
    program = compile_graph(_declared(program))
    changes = list(_changes(program))
    if most is not None and len(changes) > most:
        changes = Random(f"{seed}").sample(changes, most)
    tried = 0
    for title, graph in changes:
        try:
            changed = compile_graph(graph)
        except HydroError:
            continue  # a function takes no row of one more column
        tried += 1
        plan = optimized(changed)
        assert _parts_are_apart(plan), title
        found = validate_randomly(plan, changed, RUNS)
        assert found is None, f"{title}\n{found}"
    return tried


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_any_name_that_a_plan_adds_may_be_in_its_program(text: str) -> None:
    assert _check(compile_text(text))


@pytest.mark.parametrize("template", mostly_slow(TEMPLATES, 12), ids=str)
def test_operators_with_the_names_of_their_plans(template: Template) -> None:
    text, schemas = template_program(template)
    text = f"in_all = a -> persist()\n{text.replace('a ->', 'in_all ->', 1)}\na -> all"
    _check(compile_text(text, {n: parse_ddl(s) for n, s in schemas.items()}), MOST_CHANGES)


@pytest.mark.parametrize("case", mostly_slow(PROGRAMS, 12), ids=lambda case: case.name)
def test_programs_with_the_names_of_their_plans(case: Case) -> None:
    graph = parse(case.program)
    _check(compile_graph(graph, given_types(graph, case.schemas, case.ticks)), MOST_CHANGES)


@pytest.mark.parametrize("case", mostly_slow(RIGHT, 4), ids=lambda case: case.name)
def test_rules_with_the_names_of_their_plans(case: Case) -> None:
    graph = load_text(case.program, "case.dl")
    _check(compile_graph(graph, given_types(graph, case.schemas, case.ticks)), MOST_CHANGES)
