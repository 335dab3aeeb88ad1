"""Programs in shards: what is routed by what, what is made in a last step, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hydro_core.analysis.partition.terms import FieldAt
from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.engines import Options
from hydro_core.errors import ProgramError
from hydro_core.functions.tree import Const, Op
from hydro_core.running import read_ticks, run_items
from hydro_core.shards.program import ShardedProgram, arguments, sharded
from hydro_core.shards.together import run_shards
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused

ORDERS = 'orders = source("user long, amount long")\n'
PER_USER = ORDERS + 'orders -> aggregate(by="user", n=count()) -> out'
Ticks = Sequence[Mapping[str, list[Any]]]


def outputs(program: CompiledProgram | ShardedProgram, ticks: Ticks, **options: Any) -> Any:
    given = Options(**options)
    if isinstance(program, ShardedProgram):
        typed = program.first.typed
        return list(run_shards(program, list(read_ticks(typed, ticks)), given))
    return list(run_items(program, list(read_ticks(program.typed, ticks)), given))


def assert_same(text: str, ticks: Ticks, shards: int = 3, **cut: Any) -> ShardedProgram:
    program = compile_text(text)
    found = sharded(program, shards, **cut)
    wanted = outputs(program, ticks, optimized=False)
    assert outputs(found, ticks, optimized=False) == wanted
    assert outputs(found, ticks) == wanted
    return found


def rows(*pairs: tuple[int | None, int]) -> dict[str, list[Any]]:
    return {"orders": [{"user": user, "amount": amount} for user, amount in pairs]}


TICKS = [rows((1, 5), (2, 7), (3, 1), (None, 1)), {}, rows((1, 5), (4, 70), (None, 2))]


def test_every_shard_has_a_part_of_the_keys() -> None:
    found = assert_same(PER_USER, TICKS)
    parts = [
        run_items(found.of(k), read_ticks(found.first.typed, TICKS), Options()) for k in (0, 1)
    ]
    users = [{row["user"] for tick in part for row in tick["out"]} for part in parts]
    assert users[0]
    assert users[1]
    assert not users[0] & users[1]


@pytest.mark.parametrize(
    "aggregate",
    [
        "fold(100, lambda x, y: x + y, commutative=True, associative=True)",
        "reduce(lambda x, y: max(x, y), commutative=True, associative=True)",
    ],
)
def test_one_result_of_all_items_is_refused(aggregate: str, refused: Refused) -> None:
    with refused(ProgramError, "config", at="1:26"):
        sharded(compile_text(f'a = source("long"); a -> {aggregate} -> out'), 2)


def test_two_keys_are_refused_and_an_input_on_all_shards_cures_it(refused: Refused) -> None:
    text = """
    orders = source("user long, item long")
    users = source("user long, city string")
    items = source("item long, price long")
    orders -> join(right=users, on="user") -> join(right=items, on="item") -> out
    """
    with refused(ProgramError, "config", at="5:15"):
        sharded(compile_text(text), 2)
    ticks: list[dict[str, list[Any]]] = [
        {
            "orders": [{"user": u, "item": i} for u in range(3) for i in range(4)],
            "users": [{"user": u, "city": "x"} for u in range(3)],
            "items": [{"item": i, "price": 2 * i} for i in range(3)],
        }
    ]
    found = assert_same(text, ticks, replicate=["items"])
    assert found.described.startswith("3 shards: orders by user, users by user; every shard has")


def test_a_result_that_meets_what_is_cut_is_refused(refused: Refused) -> None:
    text = ORDERS + "t = orders -> aggregate(n=count())\norders -> cross_singleton(single=t) -> out"
    with refused(ProgramError, "config", at="2:15"):
        sharded(compile_text(text), 2)


def test_an_ordered_output_is_sorted_again() -> None:
    by_amount = "orders -> sort_by_key(lambda r: r.amount, descending=True)"
    for rest, then in {
        "filter(lambda r: r.amount > 1) -> out": ["sort_by_key"],
        "map(lambda r: r.amount) -> out": ["sort_by_key", "map"],
        'filter(lambda r: r.amount > 1) -> limit(1, by="user") -> out': ["sort_by_key"],
    }.items():
        found = assert_same(f"{ORDERS}{by_amount} -> {rest}", TICKS)
        assert [node.op.name for node in found.merges["out"]] == then
        # what comes behind the sort and keeps the items is done by the shards
        assert {n.op.name for n in found.first.graph} & {"map"} == set()


def test_an_order_of_two_streams_is_refused(refused: Refused) -> None:
    text = 'a = source("long"); b = source("long")\n'
    text += "x = a -> sort()\nb -> sort() -> chain(right=x) -> out"
    with refused(ProgramError, "config", at="3:34"):
        sharded(compile_text(text), 2)


def test_literals_are_put_out_once_and_split_where_they_meet_what_is_cut() -> None:
    text = 'a = source("long"); l = source_iter([1, 2, 3])\n'
    text += "a -> unique() -> out; l -> out; l -> names; l -> sort() -> in_order\n"
    text += "u = union(); a -> u; l -> u; u -> unique() -> all; tick() -> select('tick') -> t"
    assert_same(text, [{"a": [1, 2, 5]}, {"a": [1]}])


def test_replicated_inputs_are_on_all_shards_and_put_out_once() -> None:
    text = 'a = source("long"); b = source("long"); a -> cross(right=b) -> out; b -> twice'
    ticks = [{"a": [1, 2, 3], "b": [7, 8]}, {"a": [4], "b": [7]}]
    found = assert_same(text, ticks, replicate=["b"])
    assert found.replicated == ("b",)
    assert "every shard has all of b" in found.described


def test_inputs_that_would_have_to_be_whole_are_proposed_where_they_are_many(
    refused: Refused,
) -> None:
    text = "".join(f'{name} = source("long")\n' for name in "abcd")
    text += "a -> cross(right=b) -> cross(right=c) -> cross(right=d) -> out"
    with refused(ProgramError, "config", at="5:6"):
        sharded(compile_text(text), 2)


def test_a_choice_may_be_given(refused: Refused) -> None:
    both = 'a = source("k long, l long"); a -> unique() -> out'
    ticks = [{"a": [{"k": k, "l": k % 3} for k in range(9)]}]
    assert assert_same(both, ticks, on={"a": "l"}).choice != sharded(compile_text(both), 2).choice
    assert_same(both, ticks, on={"a": ["k", "l"]})
    with refused(ProgramError, "config", at="2:11") as caught:
        sharded(compile_text(PER_USER), 2, {"orders": "amount"})
    assert caught.value.diagnostics[0].operator == "aggregate"
    with refused(ProgramError, "input"):
        sharded(compile_text(PER_USER), 2, {"orders": "usr"})
    with refused(ProgramError, "input"):
        sharded(compile_text(PER_USER), 2, {"ordres": "user"})


def test_fields_are_taken_before_functions_and_before_what_has_two_values() -> None:
    text = 'a = source("flag boolean, k long, z long"); a -> drop("z") -> unique() -> out'
    assert sharded(compile_text(text), 2).described == "2 shards: a by k"


SUM = "fold_keyed(0, lambda s, v: s + v, commutative=True)"


def test_a_function_of_fields_may_be_what_is_routed_by() -> None:
    text = f'a = source("(long, long)"); a -> map(lambda k, v: (k % 4, v)) -> {SUM} -> x; '
    text += f"a -> {SUM} -> y"
    found = assert_same(text, [{"a": [[k, k] for k in range(12)]}])
    assert found.described == "3 shards: a by _[0] % 4"


def test_items_on_which_the_function_fails_go_to_one_shard() -> None:
    text = 'a = source("(long, long)"); '
    text += f"a -> filter(lambda k, v: k > 0) -> map(lambda k, v: (12 // k, v)) -> {SUM} -> x; "
    text += f"a -> {SUM} -> y"
    found = assert_same(text, [{"a": [[k, 1] for k in (0, 0, 1, 2, 5, 6, 0)]}])
    assert "12 // " in found.described


def test_a_function_that_is_known_by_name_only_is_no_way_to_route() -> None:
    pair = parse_ddl("(long, long)")
    read = Op("%", (FieldAt(("0",)), Const(4)))
    assert arguments(read, pair, 2) is not None
    assert arguments(Op("bucket", (FieldAt(("0",)),)), pair, 2) is None


def test_numbers_of_shards(refused: Refused) -> None:
    with refused(ProgramError, "config"):
        sharded(compile_text(PER_USER), 0)
    assert_same(PER_USER, TICKS, shards=1)
    assert_same(PER_USER, TICKS, shards=17)
