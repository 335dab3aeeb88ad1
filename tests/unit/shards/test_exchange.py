"""Programs with several keys, in shards: what is exchanged between them, and what need not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.compile import compile_text
from hydro_core.engines import Options
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.statistics import InputStatistics, Statistics
from hydro_core.plan.semantic_hash import program_hashes
from hydro_core.running import read_ticks, run_items
from hydro_core.shards.exchange import Traffic, _cheapest_first
from hydro_core.shards.program import Sharded, sharded
from hydro_core.shards.run import run_shards
from hydro_core.shards.together import Together, as_written
from tests.support.refused import Refused

INPUTS = """
orders = source("user long, item long, amount long")
users = source("user long, city string")
items = source("item long, price long")
"""
PER_USER = 'aggregate(by="user", n=count()) -> per_user\n'
TWO_KEYS = f"""{INPUTS}
orders -> {PER_USER}
orders -> persist() -> aggregate(by="item", n=count()) -> per_item
"""
TWO_JOINS = INPUTS + 'orders -> join(right=users, on="user") -> join(right=items, on="item") -> out'


def known(**rows: float) -> Statistics:
    """Rows of inputs in a tick."""
    return Statistics(inputs={name: InputStatistics(rows=n) for name, n in rows.items()})


TICKS = [
    {
        "orders": [{"user": u, "item": i, "amount": u * i} for u in range(5) for i in range(n, 4)],
        "users": [{"user": u, "city": f"c{u % 2}"} for u in range(4)],
        "items": [{"item": i, "price": 2 * i} for i in range(3)],
    }
    for n in (0, 2)
]


def judged(text: str, stats: Statistics | None = None) -> Sharded:
    """The program in shards, which gives what the whole gives."""
    program = compile_text(text)
    cut = sharded(program, 3, stats=stats)
    ticks = list(
        read_ticks(
            program.typed, [{n: t[n] for n in program.graph.sources if n in t} for t in TICKS]
        )
    )
    whole = list(run_items(program, ticks, Options(optimized=False)))
    assert any(any(tick.values()) for tick in whole)
    for optimized in (False, True):
        assert list(run_shards(cut, ticks, Options(optimized=optimized))) == whole
    return cut


def test_an_input_is_routed_in_two_ways_and_nothing_is_exchanged() -> None:
    cut = judged(TWO_KEYS)
    assert [*cut.exchanged.values()] == ["orders"]
    assert "exchanged" not in cut.described


def test_what_one_join_gives_goes_to_the_shards_of_the_next() -> None:
    cut = judged(TWO_JOINS)
    assert [name for name, source in cut.exchanged.items() if source is None] == [
        "join_1 for join_2"
    ]
    assert "exchanged between them: join_1 for join_2" in cut.described


def test_what_needs_no_exchange_has_none() -> None:
    assert not sharded(compile_text(INPUTS + f"orders -> {PER_USER}"), 2).exchanged


def test_what_is_kept_of_a_stream_is_kept_behind_the_exchange() -> None:
    """Else all of it would be exchanged at every tick."""
    text = TWO_JOINS.replace("-> out", '-> persist() -> aggregate(by="city", n=count()) -> out')
    cut = judged(text)
    kept = [n for n in cut.first.graph if n.op.name == "persist"]
    assert kept
    for node in kept:
        sources = {cut.first.graph[end.node].op.name for end in node.inputs}
        assert sources == {"of_shard"}


def test_a_routing_that_somebody_has_chosen_is_right_or_refused(refused: Refused) -> None:
    with refused(ProgramError, "config", at="8:24"):
        sharded(compile_text(TWO_KEYS), 2, {"orders": "user"})


def test_nothing_helps_where_everything_meets_itself(refused: Refused) -> None:
    with refused(ProgramError, "config", at="5:11"):
        sharded(compile_text(INPUTS + "orders -> cross(right=orders) -> out"), 2)


def test_where_everything_meets_everything_the_side_with_fewer_bytes_is_whole() -> None:
    cut = judged(INPUTS + "orders -> cross(right=items) -> out")
    assert cut.replicated == ("items",)
    cut = judged(INPUTS + "orders -> cross(right=items) -> out", known(orders=2))
    assert cut.replicated == ("orders",)


def test_a_small_input_is_whole_where_that_spares_an_exchange() -> None:
    cut = judged(TWO_JOINS, known(items=10))
    assert cut.replicated == ("items",)
    assert not cut.exchanged
    assert cut.described == "3 shards: orders by user, users by user; every shard has all of items"


def test_it_is_not_whole_where_there_are_too_many_shards_for_that() -> None:
    few, many = (sharded(compile_text(TWO_JOINS), n, stats=known(items=100)) for n in (2, 64))
    assert (few.replicated, [*few.exchanged]) == (("items",), [])
    assert (many.replicated, [*many.exchanged]) == ((), ["join_1 for join_2"])


def test_where_nothing_is_known_streams_are_exchanged() -> None:
    assert not judged(TWO_JOINS).replicated
    assert not judged(TWO_JOINS, known(items=1_000)).replicated


def test_what_is_kept_of_an_input_counts_for_what_all_shards_read() -> None:
    """A few items a tick are many, where each tick joins all that there have ever been."""
    text = TWO_JOINS.replace("join(right=items", "join(right=all_items")
    text = text.replace("\norders ->", "\nall_items = items -> persist()\norders ->")
    kept = Statistics(inputs={"items": InputStatistics(rows=10, history=1e6)})
    assert not judged(text, kept).replicated


def test_what_somebody_has_chosen_to_be_whole_stays_so_beside_broadcasts() -> None:
    text = TWO_JOINS.replace("-> out", '-> join(right=cities, on="city") -> out')
    text = 'cities = source("city string, zip long")\n' + text
    cut = sharded(compile_text(text), 2, replicate=["cities"], stats=known(items=1))
    assert cut.replicated == ("cities", "items")
    assert not cut.exchanged


def test_two_small_inputs_are_whole_where_each_spares_an_exchange() -> None:
    text = f"""{TWO_JOINS}
calls = source("user long, zone long")
zones = source("zone long, zip long")
calls -> join(right=users, on="user") -> join(right=zones, on="zone") -> called
"""
    cut = sharded(compile_text(text), 2, stats=known(items=10, zones=10))
    assert cut.replicated == ("items", "zones")
    assert not cut.exchanged


def test_partition_shows_the_exchanges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.hydro"
    file.write_text(TWO_JOINS, encoding="utf-8")
    assert main(["partition", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "p cannot be cut into shards." in shown
    assert "With `--shards N` it runs like this:" in shown
    assert "exchanged between them: join_1 for join_2" in shown


def test_what_is_kept_behind_an_exchange_is_known_by_what_stands_before_it() -> None:
    """Else a deployment of another program would go on with tables of this one."""
    ends = '-> persist() -> aggregate(by="city", n=count()) -> out'
    joined = TWO_JOINS.replace("-> out", ends)
    other = joined.replace("orders ->", "orders -> filter(lambda o: o.amount > 3) ->")
    kept = []
    for text in (joined, other):
        program = compile_text(text)
        shards = Together.of(sharded(program, 2), as_written)
        found = shards.hashes(program_hashes(program.typed))
        kept.append({found[node.id] for node in shards.graph if node.op.name == "persist"})
    assert all(kept)
    assert kept[0].isdisjoint(kept[1])


def test_what_is_exchanged_is_what_has_the_fewest_bytes() -> None:
    """Behind `select`, and not before it: one field of three, for which there are two readers."""
    cut = judged(
        INPUTS
        + """
        known = orders -> join(right=users, on="user")
        known -> aggregate(by="user", n=count()) -> per_user
        known -> select("item") -> aggregate(by="item", n=count()) -> per_item
        """
    )
    assert [n for n, source in cut.exchanged.items() if source is None] == [
        "select_1 for aggregate_2"
    ]


def test_sets_of_cuts_come_by_their_costs() -> None:
    costs = {("a", 0): 1.0, ("b", 0): 2.0, ("b", 1): 4.0, ("c", 0): 4.5}
    found = list(_cheapest_first(costs))
    assert len({*found}) == len(found) == 2 ** len(costs) - 1
    totals = [sum(costs[edge] for edge in cuts) for cuts in found]
    assert totals == sorted(totals)


def test_history_is_more_than_a_batch() -> None:
    typed = compile_text(INPUTS + "orders -> select('user') -> persist() -> out").typed
    traffic = Traffic(typed)
    few, batch, history = (traffic.of(Endpoint(n)) for n in ("select_1", "orders", "persist_1"))
    assert few < batch < history
