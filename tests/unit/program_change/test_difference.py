"""What becomes of outputs and states when another program is deployed."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.optimize.optimizer import OptimizedProgram, optimize
from hydro_core.program_change.difference import (
    Difference,
    DisprovedOutput,
    difference,
    with_column_order,
)
from tests.support.deployments import records

SOURCES = """
orders = source("user string, product string, amount long")
users = source("user string, country string")
"""
BEFORE = """
known = users -> persist()
orders -> join(right=known, on="user") -> german
orders -> persist() -> aggregate(by="product", total=sum("amount"), n=count()) -> totals
orders -> select("user") -> persist() -> unique() -> delta() -> firsts
"""


def deployed(text: str) -> Deployment:
    compiled = compile_text(SOURCES + dedent(text))
    found = optimize(compiled.typed)
    return deployment_of("shop", compiled.typed, found)


def changed(before: str, after: str) -> Difference:
    old = deployed(before)
    return difference(old, deployed(after), records(old))


def outputs(found: Difference) -> dict[str, str]:
    return {name: output.change for name, output in found.outputs.items()}


def test_the_same_program_keeps_everything() -> None:
    found = changed(BEFORE, BEFORE)
    assert found.is_nothing
    assert not found.wanted


def test_a_program_in_other_words_keeps_everything() -> None:
    found = changed(
        BEFORE,
        """
        # renamed, the incremental form by hand, statements in another order
        seen = orders -> select("user") -> unique()
        news = seen -> difference(neg=before)
        before = news -> old()
        news -> firsts
        everybody = users -> persist()
        history = orders -> persist()
        history -> aggregate(by="product", total=sum("amount"), n=count()) -> totals
        orders -> join(right=everybody, on="user") -> german
        """,
    )
    assert outputs(found) == {"firsts": "same", "totals": "same", "german": "same"}
    assert {state.change for state in found.states.values()} == {"kept"}
    assert found.is_nothing


def test_a_column_more_is_seen_and_made_anew() -> None:
    found = changed(BEFORE, BEFORE.replace("n=count()", 'n=count(), most=max("amount")'))
    assert outputs(found)["totals"] == "columns"
    assert found.outputs["totals"].columns == ("most",)
    assert found.wanted.outputs == {"totals"}
    assert found.made_by.inputs == ("orders",)


def test_a_column_less_is_seen() -> None:
    found = changed(BEFORE, BEFORE.replace(", n=count()", ""))
    assert outputs(found)["totals"] == "columns"
    assert found.outputs["totals"].columns == ("n",)


def test_another_constant_is_another_output_and_the_others_stay() -> None:
    filtered = BEFORE.replace('on="user") ->', 'on="user") -> filter(lambda r: r.amount > 5) ->')
    found = changed(filtered, filtered.replace("> 5", "> 6"))
    assert outputs(found) == {"german": "changed", "totals": "same", "firsts": "same"}
    assert found.wanted.outputs == {"german"}
    assert not found.wanted.slots


def test_what_is_new_begins_with_what_is_stored() -> None:
    """The users are stored, so their landed past is not read; that of the orders is."""
    found = changed(
        BEFORE, BEFORE + 'users -> persist() -> aggregate(by="country", n=count()) -> lands'
    )
    assert outputs(found)["lands"] == "new"
    assert found.made_by.inputs == ()
    assert [leaf.table for leaf in found.made_by.tables.values()] == ["state/users"]
    made = [s for s in found.states.values() if s.change == "derived"]
    assert made
    assert {t for s in made for t in s.tables} == {"state/users"}


def test_what_is_gone_and_dropped_is_said() -> None:
    fewer = "\n".join(line for line in BEFORE.splitlines() if "totals" not in line)
    found = changed(BEFORE, fewer)
    assert outputs(found)["totals"] == "gone"
    assert [n for n, s in found.states.items() if s.change == "dropped"]
    assert not found.wanted
    assert not found.is_nothing


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('total=sum("amount")', 'total=max("amount")'),
        ('by="product"', 'by="user"'),
        ("persist() -> unique()", "window(3) -> unique()"),
    ],
)
def test_what_is_not_the_same_is_not_said_to_be(one: str, other: str) -> None:
    found = changed(BEFORE, BEFORE.replace(one, other))
    assert "changed" in outputs(found).values()
    assert found.wanted.outputs


CYCLE = """
x = orders -> union(y)
y = x -> prev() -> filter(lambda r: r.amount == 1) -> filter(lambda r: r.user == 'a')
x -> out
"""
TWICE = (
    CYCLE
    + """
w = orders -> union(z)
z = w -> prev() -> filter(lambda r: r.user == 'a') -> filter(lambda r: r.amount == 1)
w -> more
"""
)


def as_written(text: str) -> Deployment:
    compiled = compile_text(SOURCES + text)
    return deployment_of("shop", compiled.typed, OptimizedProgram(compiled.typed, 0.0, 0.0))


def test_a_table_serves_one_state() -> None:
    """Two states that are proved equal are two tables, and stay so."""
    once, twice = as_written(CYCLE), as_written(TWICE)
    again = difference(twice, twice, records(twice))
    assert {name: state.table for name, state in again.states.items()} == {
        "x": "state/x",
        "w": "state/w",
    }
    more = difference(once, twice, records(once))
    assert {name: state.change for name, state in more.states.items()} == {
        "x": "kept",
        "w": "rebuilt",
    }


def test_what_a_test_has_disproved_is_changed_and_made_anew() -> None:
    found = changed(BEFORE, BEFORE)
    slot = next(iter(found.states))
    wrong = replace(found, disproved=DisprovedOutput(frozenset({"totals"}), frozenset({slot})))
    assert outputs(wrong) == {"german": "same", "totals": "changed", "firsts": "same"}
    assert wrong.states[slot].change != "kept"
    assert wrong.wanted.outputs == {"totals"}
    assert wrong.wanted.slots == {slot}


def test_the_columns_of_a_changed_output_are_told_too() -> None:
    other = BEFORE.replace('total=sum("amount"), n=count()', 'total=max("amount"), m=count()')
    found = changed(BEFORE, other)
    assert outputs(found)["totals"] == "changed"
    assert found.outputs["totals"].columns == ("m", "n")


def test_columns_in_another_order_are_the_same() -> None:
    after = """
    known = users -> persist()
    orders -> join(right=known, on="user") -> select("country", "user", "product", "amount")
      -> german
    orders -> persist() -> aggregate(by="product", n=count(), total=sum("amount")) -> totals
    orders -> select("user") -> persist() -> unique() -> delta() -> firsts
    """
    old, new = deployed(BEFORE), deployed(after)
    found = difference(old, new, records(old))
    assert set(outputs(found).values()) == {"same"}
    assert found.turned == ("german", "totals")
    as_stored = with_column_order(old, new, found.turned)
    assert as_stored.plan.typed.outputs == old.plan.typed.outputs
    again = difference(old, as_stored, records(old))
    assert set(outputs(again).values()) == {"same"}
    assert not again.turned
    assert not again.wanted.outputs
    assert all(again.proofs[name] for name in outputs(again))


def test_the_stored_order_of_columns_replaces_no_statement() -> None:
    before = "german_as_stored = orders -> unique()\norders -> german\ngerman_as_stored -> two"
    after = before.replace(
        "orders -> german", 'orders -> select("amount", "product", "user") -> german'
    )
    old, new = deployed(before), deployed(after)
    as_stored = with_column_order(old, new, ["german"])
    statement = as_stored.plan.graph["german_as_stored"]
    assert statement == new.plan.graph["german_as_stored"]
    assert as_stored.plan.typed.outputs == old.plan.typed.outputs


def test_an_output_is_narrowed_beside_a_statement_of_any_name() -> None:
    before = """
    narrowed = orders -> filter(lambda r: r.amount > 1)
    narrowed -> select("user", "product") -> totals"""
    after = before.replace(' -> select("user", "product")', "")
    found = changed(before, after)
    assert outputs(found) == {"totals": "columns"}
