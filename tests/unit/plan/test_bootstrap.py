"""What makes the tables that a plan wants, and from which tables it begins."""

from __future__ import annotations

from hydro_core.analysis.infer import infer
from hydro_core.ir.graph import Endpoint
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import Leaf, WantedTables, bootstrap, plan
from hydro_core.plan.tick_plan import TickPlan

PROGRAM = """
orders    = source("user string, amount long")
customers = source("user string, country string")
known     = customers -> persist()
joined    = join(on="user")
orders -> [0]joined
known -> [1]joined
joined -> persist() -> aggregate(by="country", total=sum("amount")) -> totals
known -> everybody
"""


def planned(text: str = PROGRAM) -> TickPlan:
    return plan(infer(parse(text)))


def slot(of: TickPlan, stream: str) -> str:
    [found] = [s.id for s in of.slots if str(s.stream) == stream]
    return found


def test_only_what_the_wanted_table_is_computed_from_runs() -> None:
    target = planned()
    made = bootstrap(target, WantedTables(slots=frozenset({slot(target, "customers")})), {})
    assert made.inputs == ("customers",)
    assert set(made.plan.graph.nodes) == {"customers", "known"}
    assert not made.plan.graph.sinks


def test_a_stored_stream_stands_for_the_inputs_behind_it() -> None:
    target = planned()
    wanted = WantedTables(outputs=frozenset({"totals"}))
    assert bootstrap(target, wanted, {}).inputs == ("orders", "customers")
    made = bootstrap(target, wanted, {Endpoint("customers"): Leaf("state/customers")})
    assert made.inputs == ("orders",)
    assert made.tables == {"state/customers": Leaf("state/customers")}
    made = bootstrap(target, wanted, {Endpoint("joined"): Leaf("state/joined")})
    assert made.inputs == ()


def test_what_grows_is_the_history_of_what_each_tick_adds() -> None:
    target = planned()
    wanted = WantedTables(outputs=frozenset({"totals"}))
    made = bootstrap(target, wanted, {Endpoint("known"): Leaf("outputs/everybody", grows=True)})
    assert made.inputs == ("orders",)
    assert made.plan.graph["known"].op.name == "persist"
    assert made.plan.graph["known_added"].args["name"] == "outputs/everybody"


def test_the_input_of_added_items_replaces_no_statement() -> None:
    big = "known_added = orders -> filter(lambda r: r.amount > 0)\nknown_added -> [0]joined"
    target = planned(PROGRAM.replace("orders -> [0]joined", big))
    wanted = WantedTables(outputs=frozenset({"totals"}))
    made = bootstrap(target, wanted, {Endpoint("known"): Leaf("outputs/everybody", grows=True)})
    assert made.plan.graph["known_added"] == target.graph["known_added"]
    [added] = made.plan.graph["known"].inputs
    assert made.plan.graph[added.node].args["name"] == "outputs/everybody"


def test_where_a_cut_would_store_something_else_nothing_is_cut() -> None:
    """An output that is a history is not made of the events that a table without it has."""
    target = planned()
    wanted = WantedTables(outputs=frozenset({"everybody"}))
    made = bootstrap(target, wanted, {Endpoint("known"): Leaf("outputs/everybody")})
    assert made.inputs == ("customers",)
    assert not made.tables
