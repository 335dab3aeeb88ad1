"""What is said to be the same is tried on random ticks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.ir.graph import Endpoint
from hydro_core.optimize.optimizer import optimize
from hydro_core.program_change.difference import difference
from hydro_core.validation.claims import Claim, ClaimMismatch, try_claims, try_out

FLIGHTS = Path(__file__).parents[3] / "assets" / "flights" / "flights.hydro"
SOURCE = 'a = source("k long, v long, w string")\n'


def deployed(text: str) -> Deployment:
    compiled = compile_text(text)
    return deployment_of("flow", compiled.typed, optimize(compiled.typed))


def tried(before: str, after: str, columns: tuple[str, ...] = ()) -> ClaimMismatch | None:
    """Whether `out` of both is seen to differ, were it said to be the same."""
    one, other = (compile_text(SOURCE + text).typed for text in (before, after))
    claim = Claim(*((t.graph.sinks["out"][0].inputs[0],) for t in (one, other)), columns)
    found, runs = try_claims(one, other, {"out": claim})
    assert runs == 20
    return found.get("out")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a -> filter(lambda r: r.v > 731) -> out", "a -> filter(lambda r: r.v > 732) -> out"),
        ("a -> filter(lambda r: r.v > 731) -> out", "a -> filter(lambda r: r.v >= 731) -> out"),
        ("a -> persist() -> out", "a -> persist() -> unique() -> out"),
        ("a -> persist() -> out", "a -> old() -> out"),
        ("a -> window(2) -> out", "a -> window(3) -> out"),
        ("a -> filter(lambda r: r.w == 'DE') -> out", "a -> filter(lambda r: r.w == 'FR') -> out"),
        (
            "a -> sort_by_key(lambda r: r.v or 0) -> out",
            "a -> sort_by_key(lambda r: r.k or 0) -> out",
        ),
        ("a -> map(lambda r: r.v) -> out", "a -> map(lambda r: r.v or 0) -> out"),
    ],
)
def test_a_wrong_claim_is_found(before: str, after: str) -> None:
    found = tried(before, after)
    assert found is not None
    assert "`out` is not the same: in tick" in str(found)
    assert "the inputs of the ticks were" in str(found)


def test_what_is_true_stays() -> None:
    assert (
        tried("a -> persist() -> unique() -> out", "a -> unique() -> persist() -> unique() -> out")
        is None
    )


def test_only_the_columns_that_both_have_are_compared() -> None:
    wide, narrow = "a -> out", "a -> select('v', 'k') -> out"
    assert tried(wide, narrow, ("v", "k")) is None
    assert (
        tried(wide, "a -> select(v=lambda r: r.k, k=lambda r: r.v) -> out", ("v", "k")) is not None
    )


def test_where_one_fails_they_are_compared_up_to_there() -> None:
    assert (
        tried("a -> map(lambda r: 1) -> out", "a -> map(lambda r: 1 // (0 * r.v)) -> out") is None
    )


def test_an_input_of_another_type_gets_items_of_its_own() -> None:
    one = compile_text('a = source("long"); b = source("long"); b -> out').typed
    other = compile_text('a = source("string"); b = source("long"); b -> out; a -> x').typed
    claim = Claim((Endpoint("b"),), (Endpoint("b"),))
    assert try_claims(one, other, {"out": claim}) == ({}, 20)


def test_a_difference_that_says_too_much_is_corrected() -> None:
    text = SOURCE + "a -> persist() -> unique() -> out"
    before = deployed(text)
    tables = {
        f"{t.role}/{t.name}": {"role": t.role, "of": t.name, "kind": "E", "ordered": False}
        for t in before.tables
    }
    honest = difference(before, deployed(text), tables)
    assert try_out(honest).corrected(honest).outputs == honest.outputs
    # as if the comparison were wrong: the new program is another one than was compared
    changed = deployed(
        text.replace("persist() -> unique()", "filter(lambda r: r.k > 1) -> persist() -> unique()")
    )
    programs = (*honest.programs[:2], changed.program.typed, honest.programs[3])
    wrong = type(honest)(before, honest.after, honest.tables, honest.streams, programs)
    trial = try_out(wrong, seed=7)
    assert set(trial.outputs) == {"out"}
    assert wrong.outputs["out"].change == "same"
    assert trial.corrected(wrong).outputs["out"].change == "changed"


def test_flights_are_tried_in_less_than_a_second() -> None:
    before = deployed(FLIGHTS.read_text())
    found = difference(before, before, {})
    start = time.process_time()
    trial = try_out(found, seconds=60)  # of the clock, which others on the machine stretch
    assert time.process_time() - start < 1
    assert (trial.runs, trial.outputs, trial.states) == (20, {}, {})
