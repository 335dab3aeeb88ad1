"""Programs as problems."""

from __future__ import annotations

from hydro_core.compile import compile_graph, compile_text
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import validate_randomly


def test_columns_that_depend_on_the_arguments_make_two_shapes() -> None:
    text = (
        'a = source("k long, v long")\n'
        "s = a -> sort()\n"
        's -> limit(1) -> one; s -> limit(1, by="k") -> each\n'
        "a -> aggregate(n=count()) -> all; a -> aggregate(by='k', n=count()) -> by_key"
    )
    program = compile_text(text)
    names = set(load(program.typed).problem.shapes)
    assert {"aggregate", "aggregate:global"} <= names
    plan = compile_graph(optimize(program.typed).graph)
    assert validate_randomly(plan, program, 30) is None


def test_a_sequence_becomes_a_bag_where_nobody_looks_at_the_order() -> None:
    program = compile_text(
        'a = source("long"); a -> sort() -> map(lambda x: x) -> persist() -> out'
    )
    problem = load(program.typed).problem
    assert {"sort!", "map!", "bag", "persist"} <= set(problem.shapes)


def test_a_cycle_inside_a_tick_is_opaque() -> None:
    program = compile_text(
        'a = source("long"); x = union() -> unique(); a -> x; x -> out\n'
        "x -> map(lambda v: v % 3) -> x"
    )
    loaded = load(program.typed)
    assert list(loaded.loops) == ["loop:x"]
    assert "map" not in loaded.problem.shapes


def test_a_sum_of_other_types_stays_as_it_is() -> None:
    program = compile_text(
        'a = source("long"); b = source("double"); a -> union(b) -> map(lambda x: x) -> out'
    )
    assert "union:mixed:2" in load(program.typed).problem.shapes


def test_a_cycle_may_read_what_was_sorted() -> None:
    program = compile_text(
        'a = source("(long, long)"); s = a -> sort() -> zip(right=s2); s2 = a -> sort()\n'
        "known = s -> map(lambda x, y: (x[0], y[1])) -> persist()\n"
        "x = union() -> unique(); known -> x\n"
        "x -> map(lambda k, v: (v, k)) -> join(right=known) -> map(lambda k, p: p) -> x; x -> out"
    )
    plan = compile_graph(optimize(program.typed).graph)
    assert validate_randomly(plan, program, 20) is None


def test_a_program_of_many_shapes() -> None:
    # a dozen shapes before an ordered sum: names of the e-graph must not run into each other
    program = compile_text(
        """
        a = source("(string, long)"); b = source("long"); c = source("(long, long)")
        b -> out0; c -> flat_map(lambda x, y: (y, x)) -> out1
        t = tick() -> map(lambda r: r.tick % 3) -> partition(lambda x: (x or 0) % 3, [0, 1, 2])
        f = t[0] -> filter(lambda x: x != 9); g = t[1] -> filter(lambda x: x != 9)
        h = t[2] -> filter(lambda x: x != 9); f -> out2
        k = a -> sort() -> unique_keyed(); a -> difference(neg=k) -> out3
        i = h -> sort(); g -> sort() -> chain(right=i) -> out4
        """
    )
    plan = compile_graph(optimize(program.typed, explain=True).graph)
    assert validate_randomly(plan, program, 10) is None
