"""Filters that are asked earlier: where they may, that plans agree, and where they may not."""

from __future__ import annotations

import pytest

from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.optimize.egraph import EGraph
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import optimize, prepare
from hydro_core.validation.random_ticks import validate_randomly

PAIRS = 'a = source("(long, long)"); b = source("(long, long)")\n'
ROWS = 'a = source("k long, v long"); b = source("k long, w long")\n'
RIGHT = "j = a -> join(right=b{how}); j -> filter({p}) -> out"
CASES = {
    "filter-join-left": (
        PAIRS + RIGHT.format(how="", p="lambda k, p: p[0] == 1"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda r: r.v != 2"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda r: (r.v or 0) > 1"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda r: r.v is not None and r.v > 1"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda r: r.v is None or not r.v > 1"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda r: r.v > 1 if r.v is not None else False"),
    ),
    "filter-join-right": (
        PAIRS + RIGHT.format(how="", p="lambda x: x[1][1] in (1, 2)"),
        ROWS + RIGHT.format(how=', on="k", suffix="_r"', p="lambda r: not r.w"),
        ROWS + RIGHT.format(how=', on="k"', p="lambda k, v, w: w == k"),
    ),
    "filter-left-join": (PAIRS + RIGHT.format(how=', how="left"', p="lambda k, p: p[0] == 1"),),
    "filter-right-join": (
        ROWS + RIGHT.format(how=', on="k", how="right"', p="lambda r: r.w == 1"),
    ),
    "filter-cross-left": (
        PAIRS + "a -> cross(right=b) -> filter(lambda x, y: x != (1, 2)) -> out",
    ),
    "filter-cross-right": (
        PAIRS + "a -> cross(right=b) -> filter(lambda x: x[1] != (1, 2)) -> out",
    ),
    "filter-latest": (
        ROWS + 'a -> persist() -> latest(by="k", order="v") -> filter(lambda r: r.k > 1) -> out',
    ),
    "filter-aggregate": (
        ROWS
        + 'a -> persist() -> aggregate(by="k", n=count()) -> filter(lambda r: r.k == 1) -> out',
    ),
    "filter-fold-keyed": (
        ROWS
        + 'a -> persist() -> fold_keyed(0, lambda s, r: s + (r.v or 0), by="k", commutative=True)'
        + " -> filter(lambda r: r.k == 1) -> out",
    ),
    "filter-reduce-keyed": (
        ROWS
        + "p = a -> persist(); "
        + 'p -> reduce_keyed(lambda x, y: max(x, y, key=str), by="k", commutative=True)'
        + " -> filter(lambda r: r.k != 1) -> out",
    ),
    "filter-map": (
        PAIRS + "a -> map(lambda x, y: (y, x)) -> unique() -> filter(lambda x: x[0] == 1) -> out",
        PAIRS
        + "a -> persist() -> join(right=b) -> map(lambda k, p: (p[0], p[1] + k if k else 0))"
        + " -> filter(lambda x, y: x == 1) -> out",
        ROWS + 'a -> map(lambda r: {"v": r.v, "z": 1}) -> filter(lambda r: r.v == 1) -> out',
    ),
    "filter-select": (
        ROWS + 'a -> select("v", w=lambda r: r.k) -> filter(lambda r: r.v == 1) -> out',
    ),
    "filter-with-columns": (
        ROWS + "a -> with_columns(w=lambda r: r.k) -> filter(lambda k, v, w: v == k) -> out",
    ),
    "filter-rename": (
        ROWS + 'a -> rename(w="v") -> filter(lambda r: r.w == r.k) -> out',
        # with the same arguments on rows of another type
        ROWS + 'a -> rename(z="k") -> filter(lambda r: r.z == 1) -> out; b -> rename(z="k") -> c',
    ),
    "filter-drop": (
        ROWS + 'a -> drop("v") -> filter(lambda r: r.k == 1) -> out',
        ROWS + 'a -> drop("k") -> filter(lambda r: r.v == 1) -> out; b -> drop("k") -> more',
    ),
    "filter-semi": (
        PAIRS + "a -> join(right=b, how='semi') -> filter(lambda x, y: x == 1 or y == 1) -> out",
    ),
    "filter-anti": (
        ROWS + "a -> join(right=b, on='k', how='anti') -> filter(lambda r: 1 == 1) -> out",
    ),
    "filter-anti-join": (
        PAIRS + "n = b -> map(lambda x, y: x)\n"
        "a -> anti_join(neg=n) -> filter(lambda x: x is not None) -> out",
    ),
    "filter-difference": (
        PAIRS + "a -> difference(neg=b) -> filter(lambda x: x is not None) -> out",
    ),
    "filter-and": (
        ROWS + 'a -> join(right=b, on="k") -> filter(lambda r: r.v == 1 and r.w == 2) -> out',
        # the second part reads what the first one binds
        ROWS + "a -> filter(lambda r: (y := r.v) is not None and y > 0) -> out",
        ROWS + "a -> filter(lambda r: (r := r.v) is not None and r > 0) -> out",
        ROWS + "a -> filter(lambda r: (y := r.v) is not None and y > 0 and r.k == 1) -> out",
        ROWS
        + 'a -> join(right=b, on="k") -> with_columns(t=lambda r: (r.v or 0) + (r.w or 0))'
        + " -> filter(lambda r: r.t > 1 and r.w == 2) -> out",
    ),
    "filter-swap": (
        # a row that a join makes is no null
        ROWS
        + 'a -> persist() -> join(right=b, on="k") -> filter(lambda r: r.v + r.w > 1 if r.v and r.w'
        + " else r.v is None) -> filter(lambda r: r.v == 1) -> out",
        PAIRS
        + "a -> persist() -> join(right=b) -> filter(lambda k, p: p[0] + p[1] > 1 if p[0] and p[1]"
        + " else k is None) -> filter(lambda x: x is not None and x != (1, (1, 1))) -> out",
        # what goes before the other filter goes before the join as well
        PAIRS
        + "a -> persist() -> join(right=b) -> filter(lambda k, p: p[0] + p[1] > 1 if p[0] and p[1]"
        + " else k is None) -> filter(lambda x: False if x is None else x[0] == 1) -> out",
    ),
}
REORDERED = {
    "filter-and",
    "filter-swap",
    "filter-semi",
    "filter-anti",
    "filter-anti-join",
    "filter-difference",
}
"""After these, a filter may still come last."""
SILENT = {
    "filter-map": (
        # it looks at what is computed
        PAIRS + "a -> map(lambda x, y: (y or 0) + 1) -> filter(lambda x: x == 1) -> out",
        # an element of a string is no field
        'a = source("string") -> map(lambda x: x[0]) -> filter(lambda x: x == "a") -> out',
    ),
    "filter-select": (
        ROWS + 'a -> select("v", w=lambda r: r.k) -> filter(lambda r: r.w == 1) -> out',
    ),
    "filter-with-columns": (
        ROWS + "a -> with_columns(v=lambda r: r.k) -> filter(lambda r: r.v == 1) -> out",
    ),
    # what is left does not say which column was there
    "filter-drop": (
        """
        a = source("k long, v long"); b = source("k string, v long"); b -> drop("k") -> more
        a -> drop("k") -> filter(lambda r: r.v == 1) -> out
        """,
    ),
    "filter-and": (PAIRS + "a -> filter(lambda x: x == (1, 1) or x is None) -> out",),
    "filter-swap": (
        # a row may be null
        ROWS
        + 'a -> join(right=b, on="k", how="semi") -> filter(lambda r: r.k != 1)'
        + " -> filter(lambda r: r.v == 1) -> out",
        PAIRS + "a -> filter(lambda x: x != (1, 1)) -> filter(lambda x, y: x > y) -> out",
        # neither gets any further
        PAIRS + "a -> filter(lambda x: x != (1, 1)) -> filter(lambda x: x is None) -> out",
    ),
    "filter-join-left": (
        # it fails on null, and would be asked about items without a partner
        PAIRS + RIGHT.format(how="", p="lambda k, p: p[0] > 1"),
        PAIRS + RIGHT.format(how="", p="lambda k, p: 6 // p[0] > 1"),
        # it fails on what may be within the values, or has no element
        *(
            f'a = source("(long, {item})"); b = source("(long, long)")\n'
            + RIGHT.format(how="", p=f"lambda k, p: {p}")
            for item, p in (
                ("array<long>", "False if p[0] is None else p[0] > [1]"),
                ("array<long>", "(None if p[0] is None else p[0][0]) == 1"),
                ("string", "(None if p[0] is None else p[0][0]) == 'a'"),
                ("decimal(9,2)", "False if p[0] is None else p[0] < float('nan')"),
                ("(long, long)", "False if p[0] is None else p[0] < (1, 1)"),
                ("timestamp", "p[0] is None or p[0] - p[0] > timedelta(days=1)"),
            )
        ),
        # it looks at both sides
        PAIRS + RIGHT.format(how="", p="lambda k, p: p[0] == p[1]"),
        PAIRS + RIGHT.format(how="", p="lambda x: x[1] == (1, 1)"),
        # rows of the left side are padded
        PAIRS + RIGHT.format(how=', how="right"', p="lambda k, p: p[0] == 1"),
        # the key of the join has another type than that of the side
        'a = source("(long, long)"); b = source("(double, long)")\n'
        + RIGHT.format(how="", p="lambda x: x[0] == 1"),
    ),
    "filter-join-right": (PAIRS + RIGHT.format(how=', how="left"', p="lambda k, p: p[1] == 1"),),
    "filter-left-join": (PAIRS + RIGHT.format(how=', how="left"', p="lambda k, p: p[1] == 1"),),
    "filter-right-join": (PAIRS + RIGHT.format(how=', how="right"', p="lambda k, p: p[0] == 1"),),
    "filter-cross-left": (PAIRS + "a -> cross(right=b) -> filter(lambda x, y: x == y) -> out",),
    "filter-cross-right": (PAIRS + "a -> cross(right=b) -> filter(lambda x, y: x[0] > 1) -> out",),
    "filter-latest": (
        ROWS + 'a -> persist() -> latest(by="k", order="v") -> filter(lambda r: r.v == 1) -> out',
    ),
    "filter-aggregate": (
        ROWS
        + 'a -> persist() -> aggregate(by="k", n=count()) -> filter(lambda r: r.n == 1) -> out',
    ),
    "filter-fold-keyed": (
        ROWS
        + 'a -> persist() -> fold_keyed(0, lambda s, r: s + (r.v or 0), by="k", commutative=True)'
        + " -> filter(lambda r: r.value == 1) -> out",
    ),
    "filter-reduce-keyed": (
        ROWS
        + "p = a -> persist(); "
        + 'p -> reduce_keyed(lambda x, y: max(x, y, key=str), by="k", commutative=True)'
        + " -> filter(lambda r: r.v != 1) -> out",
    ),
}


def _fired(program: CompiledProgram) -> set[str]:
    problem, rules = prepare(load(program.typed))
    egraph = EGraph(problem, rules, log=True)
    egraph.saturate()
    return {rule.name for rule, _ in egraph.firings()}


@pytest.mark.parametrize(("rule", "text"), [(r, t) for r, texts in CASES.items() for t in texts])
def test_a_filter_is_asked_earlier(rule: str, text: str) -> None:
    program = compile_text(text)
    assert rule in _fired(program)
    found = optimize(program.typed)
    plan = compile_graph(found.graph)
    (last,) = plan.graph.sinks["out"]
    if rule not in REORDERED:
        assert plan.graph[last.inputs[0].node].op.name != "filter", (
            "it went before the other operator"
        )
    assert validate_randomly(plan, program, 60) is None


@pytest.mark.parametrize(("rule", "text"), [(r, t) for r, texts in SILENT.items() for t in texts])
def test_a_filter_stays(rule: str, text: str) -> None:
    program = compile_text(text)
    assert rule not in _fired(program)
    assert validate_randomly(compile_graph(optimize(program.typed).graph), program, 30) is None


def test_two_joins_with_the_same_arguments_on_other_rows_are_not_confused() -> None:
    program = compile_text(
        """
        a = source("k long, v long"); b = source("k long, w long")
        c = source("k long, w long"); d = source("k long, v long")
        p = a -> join(right=b, on="k") -> select("k", "v", "w") -> filter(lambda r: r.v == 1)
        q = c -> join(right=d, on="k") -> filter(lambda r: r.v == 1)
        p -> out; q -> more
        """
    )
    assert validate_randomly(compile_graph(optimize(program.typed).graph), program, 60) is None


def test_a_join_made_of_one_that_keeps_rows_is_not_confused_with_another() -> None:
    """Both give rows of one type, of which `v` comes from another side."""
    program = compile_text(
        """
        a = source("k long, u long"); b = source("k long, v long, w long")
        c = source("k long, u long, v long"); d = source("k long, w long")
        left = a -> persist() -> join(right=bs, on="k", how="left"); bs = b -> persist()
        left -> delta() -> filter(lambda r: r.v == 1) -> out
        c -> join(right=d, on="k") -> filter(lambda r: r.v == 1) -> more
        """
    )
    assert validate_randomly(compile_graph(optimize(program.typed).graph), program, 60) is None


def test_a_second_join_on_the_same_column_leaves_the_first_as_it_is() -> None:
    """What is known of a join is known of those that give the same rows, not of all at once."""
    one = """
    a = source("k long, v long"); b = source("k long, w long"); c = source("k long, z long")
    a -> join(right=b, on="k") -> filter(lambda r: r.w == 1) -> out
    """
    for text in (one, one + 'c -> join(right=b, on="k") -> filter(lambda r: r.w == 1) -> more'):
        program = compile_text(text)
        plan = compile_graph(optimize(program.typed).graph)
        for sink in plan.graph.named("sink"):
            assert plan.graph[sink.inputs[0].node].op.name == "join"
        assert validate_randomly(plan, program, 60) is None
