"""What the rounds of cycles look up, and what a tick with such cycles still reads of its slots."""

from __future__ import annotations

import pytest

from hydro_core.compile import best_plan, compile_graph, compile_text, planned
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.plan.cycles import cycles_within_ticks, in_planned_rounds
from hydro_core.plan.lookups import lookups, round_lookups
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.types.ddl import parse_ddl

EDGES = """
.input edge(src: long, dst: long)
.output path
edge(x, y)@next :- edge(x, y).
path(x, y) :- edge(x, y).
"""
LEFT = EDGES + "path(x, z) :- path(x, y), edge(y, z)."
BOTH = EDGES + "path(x, z) :- path(x, y), path(y, z)."


def of_rules(text: str) -> TickPlan:
    """The best plan of rules."""
    program = compile_graph(graph_of_rules(read_rules(text)))
    return planned(program, best_plan(program))


def in_rounds(made: TickPlan) -> dict[str, list[str]]:
    """By slots, by which fields of what rounds look them up."""
    found: dict[str, list[str]] = {}
    for one in round_lookups(made).values():
        for slot, looked_up in one.found.items():
            found.setdefault(slot, []).extend(map(str, looked_up))
    return {slot: sorted(by) for slot, by in found.items()}


def by_arrivals(made: TickPlan) -> dict[str, list[str]]:
    """By slots, by which fields of what arrives a tick looks them up."""
    needed = lookups(made, made.graph.sinks, round_lookups(made))
    return {slot: sorted(map(str, one.found)) for slot, one in needed.items()}


@pytest.mark.parametrize(
    ("rules", "rounds", "arrivals"),
    [
        (
            LEFT,
            {"rename_4": ["path_new: y=y"], "path_new": ["path_3: x=x, y=y"]},
            {"rename_4": [], "path_new": ["edge: y=src"]},
        ),
        (
            BOTH,
            {
                "path_new": ["path_3: x=x, y=y", "rename_2_2: y=y"],
                "rename_2_2": ["path_new: y=y"],
            },
            {"rename_2_2": [], "path_new": []},
        ),
    ],
    ids=["left", "both"],
)
def test_what_was_there_is_looked_up_by_what_is_new(
    rules: str, rounds: dict[str, list[str]], arrivals: dict[str, list[str]]
) -> None:
    made = of_rules(rules)
    assert in_rounds(made) == rounds
    found = by_arrivals(made)
    assert {slot: found[slot] for slot in arrivals} == arrivals


HEADER = 'a = source("(long, long)"); b = source("(long, long)"); h = b -> persist()\n'


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("x = union() -> unique(); a -> x; x -> join(right=h) -> map(lambda k, p: p) -> x", True),
        # Without a set nothing says what is new: each round has what the one before it gave.
        ("x = union(); a -> x; x -> join(right=h) -> map(lambda k, p: p) -> x", False),
        # All that is new must be known to be of the tick.
        ("x = union() -> unique(); h -> x; x -> map(lambda k, p: (p, k)) -> x", False),
    ],
)
def test_which_cycles_are_planned_once(text: str, how: bool) -> None:
    types = dict.fromkeys("ab", parse_ddl("(long, long)"))
    made = plan(compile_text(f"{HEADER}{text}; x -> out", types).typed)
    [cycle] = cycles_within_ticks(made)
    assert in_planned_rounds(made, cycle) is how
    assert in_rounds(made) == ({"b": ["x: 0=0"]} if how else {})


def test_what_others_read_whole_is_not_looked_up() -> None:
    text = "x = union() -> unique(); a -> x; x -> join(right=h) -> map(lambda k, p: p) -> x"
    types = dict.fromkeys("ab", parse_ddl("(long, long)"))
    made = plan(compile_text(f"{HEADER}{text}; x -> out; h -> all", types).typed)
    assert in_rounds(made) == {"b": ["x: 0=0"]}
    assert "b" not in lookups(made, (), round_lookups(made))
    assert lookups(made, ("all",), round_lookups(made))["b"].found == frozenset()
