"""What a flow with a quarantine is refused for, and that its program is the one that is written
otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from hydro_core.artifact.deployment import program_meaning
from hydro_core.compile import best_plan, stratified
from hydro_core.errors import ProgramError
from hydro_core.project.flow_asset import FlowAsset, Landing, OnError, Shards, Ticks
from hydro_core.project.program import in_shards, program_of
from hydro_core.reference.interpreter import run_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import WRONG
from hydro_core.types.values import RowItem
from tests.support.refused import Refused

PROGRAM = """
payments = source("user string not null, amount long")
payments -> map(lambda p: (p.user, 100 // p.amount)) -> shares
"""
SOME = OnError(3)


def flow(folder: Path, text: str, of_input: OnError | None, of_flow: OnError | None) -> FlowAsset:
    program = folder / "p.hydro"
    program.write_text(text, encoding="utf-8")
    return FlowAsset(
        name="p",
        program=program,
        ticks=Ticks(datetime(2026, 1, 1)),
        inputs={"payments": Landing("payments", "day", on_error=of_input)},
        on_error=of_flow,
    )


@pytest.mark.parametrize(
    ("text", "of_input", "of_flow", "message"),
    [
        (
            'payments = source("a long"); payments -> quarantine',
            SOME,
            None,
            "the program has an output `quarantine`",
        ),
        (
            'payments = source("quarantine_row long"); payments -> out',
            SOME,
            None,
            "`inputs.payments.on_error`: it has a column `quarantine_row`",
        ),
        ("payments -> out", SOME, None, "without a type of its rows none of them is wrong"),
        (
            'payments = source("a long"); payments -> sort() -> scan(0, lambda s, x: s + 1) -> out',
            None,
            SOME,
            "`scan`: the function lambda s, x: s + 1 is called with an accumulator",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    text: str,
    of_input: OnError | None,
    of_flow: OnError | None,
    message: str,
    refused: Refused,
) -> None:
    with refused(ProgramError, "config") as caught:
        program_of(flow(tmp_path, text, of_input, of_flow))
    (found,) = caught.value.diagnostics
    assert found.code == "config"
    assert found.help


def test_types_are_those_of_the_program(tmp_path: Path) -> None:
    plain = program_of(flow(tmp_path, PROGRAM, None, None)).typed
    for of_input, of_flow in ((SOME, None), (None, SOME), (SOME, SOME)):
        typed = program_of(flow(tmp_path, PROGRAM, of_input, of_flow)).typed
        assert typed.outputs["shares"] == plain.outputs["shares"]
        assert str(typed.outputs["quarantine"].item) == (
            "row<source string, place string, reason string, row string>"
        )


def test_functions_that_never_fail_are_left_alone(tmp_path: Path) -> None:
    text = 'payments = source("a long"); payments -> map(lambda a: (a, a is None)) -> out'
    quarantining = program_of(flow(tmp_path, text, None, SOME)).graph
    assert quarantining.nodes == program_of(flow(tmp_path, text, None, None)).graph.nodes


def test_where_a_function_stands_is_part_of_the_quarantine_alone(tmp_path: Path) -> None:
    _, before = program_meaning(program_of(flow(tmp_path, PROGRAM, SOME, SOME)).typed)
    moved = flow(tmp_path, f"# Another line.\n{PROGRAM}", SOME, SOME)
    _, after = program_meaning(program_of(moved).typed)
    assert before["shares"] == after["shares"]
    assert before["quarantine"] != after["quarantine"]


@pytest.mark.parametrize("rows", [0, -1, True])
def test_a_number_of_rows_is_one(tmp_path: Path, rows: int, refused: Refused) -> None:
    for made in (
        flow(tmp_path, PROGRAM, OnError(rows), None),
        flow(tmp_path, PROGRAM, None, OnError(rows)),
    ):
        with refused(ProgramError, "config"):
            program_of(made)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("when", "the program declares no column `when` of it"),
        ("amount", "`amount` is long, which is no time"),
        ("quarantine_row", "the program declares no column `quarantine_row` of it"),
    ],
)
def test_the_time_of_events_is_a_column(
    tmp_path: Path, event: str, message: str, refused: Refused
) -> None:
    made = flow(tmp_path, PROGRAM, SOME, None)
    landing = replace(made.landings["payments"], event=event)
    with refused(ProgramError, "config"):
        program_of(replace(made, inputs={"payments": landing}))


def test_the_number_is_no_part_of_the_program(tmp_path: Path) -> None:
    made = flow(tmp_path, PROGRAM, SOME, SOME)
    other = replace(made, on_error=OnError(9))
    assert program_of(made).graph == program_of(other).graph


REPLICATED = """
payments = source("user string, rate string, amount long")
rates = source("rate string, per long")
payments -> join(right=rates, on="rate") -> with_columns(x=lambda p: p.amount // p.per) -> out
"""


def landed(wrong: str | None = None, **columns: object) -> RowItem:
    told = dict.fromkeys(WRONG, wrong)
    return RowItem({**columns, **told})


def test_shards_that_all_have_an_input_put_its_wrong_rows_there_once(tmp_path: Path) -> None:
    made = flow(tmp_path, REPLICATED, SOME, SOME)
    inputs = dict.fromkeys(("payments", "rates"), made.landings["payments"])
    made = replace(made, inputs=inputs, shards=Shards(2, {"payments": "user"}, ("rates",)))
    program = program_of(made)
    cut = in_shards(made, program, best_plan)
    assert cut is not None
    payments = [
        *(landed(user=user, rate="a", amount=1) for user in ("ann", "bob", "cat")),
        landed(user="dan", rate="b", amount=1),
        landed("wrong", user=None, rate=None, amount=None),
    ]
    rates = [
        *(landed(rate="a", per=0), landed(rate="b", per=1)),
        landed("wrong, too", rate=None, per=None),
    ]
    ticks = [TickInput({"payments": payments, "rates": rates})]
    shards = stratified(cut[1].optimized().typed)
    whole, parts = (list(run_ticks(p.typed, p.strata, ticks)) for p in (program, shards))
    assert whole == parts
    found = [row["source"] for row in whole[0]["quarantine"]]
    assert sorted(found) == ["payments", "rates", *["with_columns()"] * 3]
