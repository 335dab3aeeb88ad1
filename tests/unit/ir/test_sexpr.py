"""S-expressions and terms: what is printed is read back, graphs survive the way through terms."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import compile_graph, compile_text
from hydro_core.ir.sexpr import flatten, function_names, read, read_all, show
from hydro_core.ir.term import to_terms
from hydro_core.lang.resolve import parse as parse_program
from hydro_core.optimize.optimizer import optimize
from hydro_core.running import given_types
from hydro_core.validation.random_ticks import random_ticks, validate
from tests.laws.programs import random_program
from tests.support.flows import typed_program
from tests.support.rewriting import FUNCTIONS
from tests.support.sexpr_programs import parse, to_graph

EXPRESSIONS = (
    "(delta (cross (persist add_member) (persist messages)))",
    "(map f (filter p x))",
    "(let v (map f x) (cross v v))",
    "(letrec x (chain (prev x) d) x)",
    "(letrec (x (chain (prev y) d) y (chain (prev x) e)) (join x y))",
    "(join on=('k',) how='left' suffix='_r' a b)",
    "(aggregate by=('k',) n=count() total=sum('v') rows)",
    "(limit n=3 (sort a))",
    "(fold add init=0 x)",
    "(fold add init=(1, None, 'a b', [1.5, (2,)]) x)",
    "(partition[yes] f ports=('yes', 'no') a)",
    "(select columns=('a', 'b') c=f rows)",
    "(latest by=('k',) order=f rows)",
    "(rename new='old' rows)",
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_what_is_read_is_printed_again(text: str) -> None:
    term = parse(text, FUNCTIONS)
    assert flatten(read(show(term, {fn: name for name, fn in FUNCTIONS.items()}))) == text


@pytest.mark.parametrize("text", ["(map f", "map f)", "", "(a) (b)", "(nothing x)", "((f) x)"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse(text, FUNCTIONS)


def test_comments_and_brackets_in_literals() -> None:
    assert len(read_all("; nothing\n(f x) (g init=')' y) ; more")) == 2


def _programs() -> list[str]:
    return [typed_program(Random(seed), 5)[0] for seed in range(12)]


@pytest.mark.parametrize("text", _programs())
def test_a_graph_survives_the_way_through_terms(text: str) -> None:
    compiled = compile_text(text)
    for graph in (compiled.graph, optimize(compiled.typed).graph):
        terms = to_terms(graph)
        names = function_names(terms.values())
        functions = {name: fn for fn, name in names.items()}
        sources = {a.args["name"]: a for t in terms.values() for a in _sources(t)}
        again = {s: parse(show(t, names), functions, sources) for s, t in terms.items()}
        back = compile_graph(to_graph(again, {s: graph[s] for s in terms}))
        assert validate(back, compiled, random_ticks(compiled, Random(text))) is None


@pytest.mark.parametrize("seed", range(20))
def test_any_program_survives_the_way_through_text(seed: int) -> None:
    made = random_program(seed, steps=6, cycles=False)
    graph = parse_program(made.text)
    types = given_types(graph, made.schemas, made.ticks)
    terms = to_terms(graph)
    names = function_names(terms.values())
    functions = {name: fn for fn, name in names.items()}
    sources = {a.args["name"]: a for t in terms.values() for a in _sources(t)}
    for name, term in terms.items():
        assert show(parse(show(term, names), functions, sources), names) == show(term, names), name
    assert types is not None


def _sources(term: object) -> list[object]:
    from hydro_core.ir.term import applications

    return [a for a in applications(term) if a.op.name == "source"]  # type: ignore[arg-type]


def test_places_survive() -> None:
    compiled = compile_text(
        'a = source("long")\nb = a -> persist()\nb -> delta() -> map(lambda x: x) -> out'
    )
    graph = optimize(compiled.typed).graph
    (node,) = graph.named("map")
    assert node.span is not None
    assert (node.span.line, node.args["f"].span.line) == (3, 3)
    back = to_graph(to_terms(graph), {"out": graph["out"]})
    assert back.named("map")[0].span == node.span
