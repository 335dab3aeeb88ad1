"""How programs can be cut into shards: what is believed, what is asked, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.analysis.partition.locations import locate
from hydro_core.analysis.partition.partitioning import Partitioning, judge, partition
from hydro_core.analysis.partition.steps import steps_of
from hydro_core.analysis.partition.terms import FieldAt
from hydro_core.catalog.internal import INTERNAL
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import OnAnyField, OnKey
from hydro_core.compile import compile_graph, compile_text
from hydro_core.errors import ProgramError
from hydro_core.running import read_ticks
from hydro_core.types.ddl import parse_ddl
from tests.support.shards import Routing, bags, is_right
from tests.unit.shared import or_skipped, vectors

SUM = "fold_keyed(0, lambda s, v: s + v, commutative=True)"


def answer(text: str, **bindings: Any) -> Partitioning:
    return partition(compile_text(text, bindings=bindings).typed)


def keys(text: str, **bindings: Any) -> list[dict[str, list[str]]]:
    found: list[dict[str, list[str]]] = answer(text, **bindings).as_json()["keys"]
    return found


def test_integers_of_two_widths_are_one_key_and_doubles_are_not() -> None:
    joined = "a -> join(right=b) -> out"
    text = 'a = source("({}, long)"); b = source("(long, long)"); ' + joined
    assert keys(text.format("int")) == [{"a": ["0"], "b": ["0"]}]
    assert not answer(text.format("double")).partitionable


def test_a_function_of_doubles_is_no_key() -> None:
    # 0.0 and −0.0 are equal items whose texts differ: they would be on two shards.
    text = 'a = source("({}, long)"); a -> ' + SUM + " -> x; "
    text += "a -> map(lambda k, v: (str(k), v)) -> " + SUM + " -> y"
    assert keys(text.format("long")) == [{"a": ["0", "=str(_)"]}]
    assert not answer(text.format("double")).partitionable


def test_a_function_that_declares_its_result_is_no_key() -> None:
    text = 'a = source("(long, long)"); a -> map({}) -> ' + SUM + " -> out"
    assert keys(text.format("lambda k, v: (k % 2, v)")) == [{"a": ["0", "=_ % 2"]}]
    declared = text.format('lambda k, v: (k % 2, v), returns="(double, long)"')
    assert not answer(declared).partitionable


def test_dependencies_follow_each_other() -> None:
    text = (
        'a = source("day string, month string, year string, n long", '
        'fds={"day": "month", "month": "year"})\n'
        'a -> aggregate(by="day", n=count()) -> x\n'
        'a -> select("day", "year") -> aggregate(by="year", n=count()) -> z'
    )
    assert keys(text) == [{"a": ["year"]}]


def test_two_inputs_with_like_dependencies_need_not_have_the_same_function() -> None:
    text = (
        'a = source("k long, g long", fds={"k": "g"})\n'
        'b = source("k long, g long", fds={"k": "g"})\n'
        'a -> drop("g") -> join(right=b, on="k") -> out'
    )
    assert keys(text) == [{"a": ["k"], "b": ["k"]}]


def test_what_a_kept_column_determines_is_together_as_well() -> None:
    text = 'a = source("k long, g long"{}); a -> drop("g") -> unique() -> out'
    assert keys(text.format("")) == [{"a": ["k"]}]
    assert answer(text.format(', fds={"k": "g"}')).any


def test_what_puts_nothing_out_needs_nothing() -> None:
    text = 'a = source("(long, long)"); a -> fold(0, lambda s, x: s, commutative=True) -> null()'
    assert answer(text + "; a -> out").any


def test_parts_that_have_nothing_in_common_are_cut_as_they_like() -> None:
    text = 'a = source("(long, long)"); b = source("(long, long)"); a -> unique() -> x; '
    assert keys(text + f"b -> {SUM} -> y") == [{"b": ["0"]}]
    assert len(keys(text + "b -> map(lambda k, v: (k, v, 1)) -> y")) == 0


def test_literals_are_cut_where_they_meet_an_input() -> None:
    text = f'a = source("(long, long)"); z = source_iter([(1, 2)]); z -> union(a) -> {SUM} -> out'
    steps = steps_of(compile_text(text).typed)
    found = locate(steps, {"a": FieldAt(("0",))})
    assert not found.failed
    assert list(found.splits.values()) == [FieldAt(("0",))]


def test_one_term_is_taken_where_a_literal_is_cut() -> None:
    # Items of a lie at both fields, which are equal there. Those of z cannot lie at both.
    both = "a -> map(lambda k, v: (k, k)) -> union(z)"
    swapped = "u -> map(lambda k, v: (v, k))"
    text = f'a = source("(long, long)"); z = source_iter([(1, 2), (2, 1)]); u = {both}\n'
    assert keys(text + f"u -> {SUM} -> x") == [{"a": ["0"]}]
    assert not answer(text + f"u -> {SUM} -> x; {swapped} -> {SUM} -> y").partitionable


def test_a_padded_side_that_all_shards_have_is_cut_by_the_other_ones_key() -> None:
    text = (
        'a = source("(long, long)"); z = source_iter([(1, 2)]); z -> join(right=a, how="{}") -> out'
    )
    assert answer(text.format("inner")).any
    assert keys(text.format("left")) == [{"a": ["0"]}]


def test_one_choice_is_judged() -> None:
    typed = compile_text(
        'a = source("k struct<x: long, y: long>, v long"); a -> aggregate(by="k", n=count()) -> out'
    ).typed
    assert judge(typed, {"a": "k.x"}).partitionable
    assert judge(typed, {"a": "k"}).partitionable
    assert judge(typed, {"a": ["k.y", "k.x"]}).partitionable
    refused = judge(typed, {"a": ["k.x", "v"]})
    assert not refused.partitionable
    assert "by this choice" in str(refused)
    assert "`a` routed by k.x" in str(refused)


def test_a_scalar_is_routed_whole() -> None:
    typed = compile_text('a = source("long"); a -> unique() -> out').typed
    assert judge(typed, {"a": ""}).partitionable


@pytest.mark.parametrize(
    ("on", "words"),
    [
        ({"aa": "k"}, ["`aa` is not an input", "did you mean `a`?"]),
        ({"a": "kk"}, ["`a` has no field 'kk'", "did you mean `k`?"]),
        ({"a": "q"}, ["its fields are k, v"]),
    ],
)
def test_a_choice_that_cannot_be(on: dict[str, str], words: list[str]) -> None:
    typed = compile_text('a = source("k long, v long"); a -> unique() -> out').typed
    with pytest.raises(ProgramError) as caught:
        judge(typed, on)
    assert caught.value.code == "input"
    assert all(word in str(caught.value) for word in words)


def test_the_python_form() -> None:
    flow = Flow("visits")
    visits = flow.source("visits", "user string, page string")
    visits.map(lambda r: (r.user, 1)).reduce_keyed(lambda x, y: x + y, commutative=True).sink("n")
    assert flow.partition().as_json()["keys"] == [{"visits": ["user"]}]
    assert not flow.partition({"visits": "page"}).partitionable


def test_ordered_outputs_are_told() -> None:
    found = answer('a = source("long"); a -> sort() -> x; a -> y')
    assert found.any
    assert found.ordered == ("x",)
    assert "`x` is ordered" in str(found)


KEYED = [
    op
    for op in (*CATALOG.values(), *INTERNAL.values())
    if isinstance(op.partition, OnKey | OnAnyField)
]


@pytest.mark.parametrize("op", KEYED, ids=lambda op: op.name)
def test_the_key_of_an_operator_stands_where_its_lineage_says(op: Any) -> None:
    """The catalogue says twice where a key is in the output: it must say the same."""
    example = op.example
    schemas = {name: parse_ddl(ddl) for name, ddl in example.schemas.items()}
    program = compile_text(example.program, schemas)
    for step in steps_of(program.typed):
        if step.key is None or step.node.op is not op:
            continue
        for way, table in zip(step.key.fields, step.forward, strict=True):
            for name, places in step.key.output.items():
                known = [p for field in way[name] for p in table.get(field, ())]
                assert not known or set(places) <= set(known)


@pytest.mark.parametrize(
    "vector",
    or_skipped([v for v in vectors("partition") if v.get("wrong")]),
    ids=lambda v: v["name"],
)
def test_the_judge_sees_what_is_wrong(vector: dict[str, Any]) -> None:
    """Where a vector has data on which a choice fails, shards that run it fail."""
    schemas = {name: parse_ddl(ddl) for name, ddl in vector["schemas"].items()}
    if "functions" in vector:
        pytest.skip("its functions are bound by the vectors' own test")
    program = compile_text(vector["program"], schemas)
    steps = steps_of(program.typed)
    for wrong in (w for w in vector["wrong"] if w["keys"]):
        ticks = list(read_ticks(program.typed, wrong.get("ticks", [])))
        choice = {name: FieldAt(tuple(path)) for name, path in wrong["keys"].items()}
        if not ticks or any(
            source.item != parse_ddl("(long, long)") for source in steps.sources.values()
        ):
            continue
        whole = bags(program, ticks)
        runs = [is_right(steps, ticks, whole, choice, Routing(2, seed)) for seed in range(40)]
        assert not all(runs)


def test_a_plan_is_cut_as_its_program_is() -> None:
    text = f'a = source("(long, long)"); a -> persist() -> {SUM} -> delta() -> out'
    typed = Flow.parse(text).optimize().graph
    assert partition(compile_graph(typed).typed).as_json()["keys"] == [{"a": ["0"]}]


CHAIN = """
a = source("k long, l long, m long, v long")
b = source("k long, w long")
s0 = a -> join(right=b, on="k", how="semi") -> unique()
s1 = s0 -> latest(by=["k", "l"], order="v") -> delta()
s2 = s1 -> join(right=b, on="k", how="semi") -> unique() -> persist()
s2 -> aggregate(by="k", n=count()) -> per_k
s2 -> aggregate(by="m", n=count()) -> per_m
"""


def test_of_many_operators_that_want_one_thing_the_first_is_named() -> None:
    found = answer(CHAIN)
    assert [blocker.operator for blocker in found.blockers] == ["join", "aggregate"]
    assert [blocker.details for blocker in found.blockers] == [
        ("It would have `a` routed by k, `b` routed by k.",),
        ("It would have `a` routed by m.",),
    ]


def test_sets_of_whole_inputs_are_found_among_many() -> None:
    inputs = "".join(f'a{i} = source("k long, l long")\n' for i in range(9))
    joins = "".join(
        f'x{i} = a{i} -> join(right=a{i + 1}, on="k", how="semi") -> '
        f'aggregate(by="{"kl"[i % 2]}", n=count()) -> o{i}\n'
        for i in range(8)
    )
    found = answer(inputs + joins)
    assert found.complete
    (partial,) = found.partial
    assert partial.replicate == tuple(f"a{i}" for i in range(1, 9))


def test_a_cycle_has_to_do_with_what_it_reads() -> None:
    text = """
    edges = source("(long, long)"); all_nodes = source("long")
    reached = union() -> unique()
    source_iter([0]) -> reached
    reached -> map(lambda v: (v, 0)) -> join(right=edges) -> map(lambda k, v: v[1]) -> reached
    missed = difference(); all_nodes -> [pos]missed; reached -> [neg]missed; missed -> out
    """
    found = answer(text)
    assert not found.partitionable
    assert [blocker.operator for blocker in found.blockers] == ["unique"]
