"""The programs of the paper: their plans, the derivation that is printed, and what is shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydro_core.compile import compile_graph, compile_text
from hydro_core.ir.sexpr import flatten, show, to_tree
from hydro_core.ir.term import to_terms
from hydro_core.lang.resolve import parse
from hydro_core.optimize import optimizer
from hydro_core.optimize.optimizer import optimize
from hydro_core.optimize.rule import Fact
from hydro_core.types.ddl import parse_ddl
from hydro_core.validation.random_ticks import validate_randomly
from tests.support import rewriting

DERIVATION = Path(__file__).parent / "two_way_cross.txt"
CHAT = """
add_member -> persist() -> [0] broadcast
messages   -> persist() -> [1] broadcast
broadcast  = cross() -> delta() -> notify
"""
TWO_WAY = "(delta (cross (persist a) (persist b)))"
PAPERS_TWO_WAY = "(chain (cross (old a) b) (chain (cross a (old b)) (cross a b)))"
THREE_WAY = "(delta (cross (persist a) (cross (persist b) (persist c))))"
PAPERS_THREE_WAY = """(chain (cross a (cross (old b) (old c)))
  (cross (persist a) (chain (cross b (old c)) (cross (persist b) c))))"""


def _cost(text: str) -> float:
    """What an expression costs as it is written."""
    return optimize(rewriting.program(text).typed).cost_before


def _planned(text: str) -> float:
    return optimize(rewriting.program(text).typed).cost_after


def test_plans_are_at_most_as_dear_as_the_papers() -> None:
    for program, papers in ((TWO_WAY, PAPERS_TWO_WAY), (THREE_WAY, PAPERS_THREE_WAY)):
        for op in ("cross", "join"):
            ours, theirs = program.replace("cross", op), papers.replace("cross", op)
            assert _planned(ours) <= _cost(theirs) < _cost(ours)


def test_the_papers_plans_mean_the_same() -> None:
    for program, papers in ((TWO_WAY, PAPERS_TWO_WAY), (THREE_WAY, PAPERS_THREE_WAY)):
        assert validate_randomly(rewriting.program(papers), rewriting.program(program), 60) is None


def test_the_chat_of_the_paper(update_golden: bool) -> None:
    schemas = {name: parse_ddl("long") for name in ("add_member", "messages")}
    typed = compile_text(CHAT, schemas).typed
    found = optimize(typed, explain=True)
    (term,) = to_terms(found.graph).values()
    plan = "(chain (cross (old add_member) messages) (cross add_member (persist messages)))"
    assert show(term) == plan
    (derivation,) = found.derivations
    used = [rule.name for rule in derivation.rules]
    assert (used[0], used[-1]) == ("induction", "delta-persist")
    assert {*used[1:-1]} == {
        "persist-split",
        "old-is-prev",
        "cross-split-left",
        "cross-split-right",
        "cross-before",
        "chain-assoc",
    }
    printed = derivation.render() + "\n"
    if update_golden:
        DERIVATION.write_text(printed, encoding="utf-8")
    assert printed == DERIVATION.read_text(encoding="utf-8")


def test_the_rules_of_a_derivation_are_enough_to_reach_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = rewriting.program(THREE_WAY).typed
    found = optimize(typed, explain=True)
    (derivation,) = found.derivations
    everything = optimizer.rules_for

    def only_these(*args: Any) -> Any:
        rules, shapes = everything(*args)
        return tuple(r for r in rules if r in derivation.rules or isinstance(r.rhs, Fact)), shapes

    monkeypatch.setattr(optimizer, "rules_for", only_these)
    again = optimize(typed)
    assert again.cost_after == found.cost_after
    assert [*map(show, to_terms(again.graph).values())] == [
        *map(show, to_terms(found.graph).values())
    ]


MEETUP = """
members = add_member -> persist() -> tee()
meetup = cross()
members -> map(with_school) -> filter(berkeley) -> [0] meetup
members -> map(with_school) -> filter(stanford) -> [1] meetup
meetup -> {end} pairs
"""


def _meetup(end: str) -> str:
    schools = ("berkeley", "stanford")
    bindings = {
        "with_school": lambda m: (m, "berkeley" if m % 2 else "stanford"),
        schools[0]: lambda x: x[1] == "berkeley",
        schools[1]: lambda x: x[1] == "stanford",
    }
    graph = parse(MEETUP.format(end=end), bindings=bindings)
    program = compile_graph(graph, {"add_member": parse_ddl("long")})
    found = optimize(program.typed)
    plan = compile_graph(found.graph, {"add_member": parse_ddl("long")})
    assert validate_randomly(plan, program, 40) is None
    assert len(found.graph.named("map")) == 1, "what is shared is computed once"
    (term,) = to_terms(found.graph).values()
    return flatten(to_tree(term, {n.args["f"]: n.args["f"].name for n in graph if "f" in n.args}))


_PAIRS = "(chain (cross (old filter_3) filter_4) (cross filter_3 (persist filter_4)))"
_SHARED = (
    "(let map_3 (map with_school add_member) (let filter_3 (filter berkeley map_3)"
    f" (let filter_4 (filter stanford map_3) {_PAIRS})))"
)


def test_the_meetup_of_the_paper_pays_for_shared_work_once() -> None:
    assert _meetup("") == _SHARED.replace(_PAIRS, f"(persist {_PAIRS})")


def test_the_zipper_example_ends_in_its_sharing() -> None:
    """A filter on either side of one shared `with_school`, and then made incremental."""
    assert _meetup("delta() ->") == _SHARED
