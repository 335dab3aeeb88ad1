"""Statistics of a deployed pipeline: from its ledger alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.compile import compile_text
from hydro_core.errors import DataError
from hydro_core.optimize.cost import ROWS, TICKS, InputStatistics, Statistics
from hydro_core.optimize.optimizer import OptimizedProgram, optimize
from hydro_core.spark.pipeline.statistics import deployed_statistics, recorded_statistics
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.records import Commit, InputRead
from tests.support.refused import Refused

NOW = datetime(2026, 1, 2, tzinfo=UTC)
JOINS = """
a = source("x long, p long"); b = source("x long, y long"); c = source("y long, q long")
pa = a -> persist(); pb = b -> persist(); pc = c -> persist()
pa -> join(right=pb, on="x") -> join(right=pc, on="y") -> delta() -> out
"""


def _commit(sequence: int, first: int, last: int, rows: int, **inputs: int) -> Commit:
    return Commit(
        sequence=sequence,
        first=first,
        last=last,
        plan="p",
        versions={},
        rows={"state/kept-1": rows, "state/last-2": 7, "outputs/out": 99},
        started=NOW,
        committed=NOW,
        inputs=tuple(InputRead(name, count) for name, count in inputs.items()),
        tables={
            "state/kept-1": {"role": "state", "of": "kept", "mode": "append"},
            "state/last-2": {"role": "state", "of": "totals", "mode": "changes"},
            "outputs/out": {"role": "output", "of": "out", "mode": "append"},
        },
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path)
    made.create()
    return made


def test_rows_of_a_tick_and_of_history(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 0, 4, a=10, b=1))
    ledger.append(_commit(1, 1, 4, 16, a=90, b=3))
    found = deployed_statistics(ledger.directory)
    assert found.ticks == 5
    # what the first commit loaded says less of what ticks bring
    assert found.inputs["a"] == InputStatistics(rows=22.5, history=100.0)
    assert found.inputs["b"] == InputStatistics(rows=0.75, history=4.0)
    # a log of changes does not tell how many items a stream has
    assert found.streams == {"kept": InputStatistics(rows=4.0, history=20.0)}


def test_a_range_that_was_loaded_counts_while_few_ticks_came_later(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 9, 0, a=1000, b=100))
    ledger.append(_commit(1, 10, 10, 0, a=10, b=0))
    found = deployed_statistics(ledger.directory)
    assert found.inputs["a"] == InputStatistics(rows=1010 / 11, history=1010.0)
    ledger.append(_commit(2, 11, 21, 0, a=110, b=0))
    found = deployed_statistics(ledger.directory)
    assert found.inputs["a"] == InputStatistics(rows=10.0, history=1120.0)
    assert found.inputs["b"] == InputStatistics(rows=1e-3, history=100.0)


def test_what_ticks_have_read_stands_after_a_deployment(ledger: Ledger) -> None:
    for tick in range(12):
        ledger.append(_commit(tick, tick, tick, 4, a=10, b=tick % 2))
    before = recorded_statistics(ledger.directory)
    unread = tuple(InputRead(name, None) for name in ("a", "b"))
    ledger.append(replace(_commit(12, 0, 11, 48), plan="q", inputs=unread))
    assert recorded_statistics(ledger.directory) == before
    found = deployed_statistics(ledger.directory)
    assert found.inputs["a"] == InputStatistics(rows=10.0, history=120.0)


def test_a_correction_of_some_ticks_leaves_those_before(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 9, 0, a=100))
    ledger.append(_commit(1, 8, 9, 0, a=40))
    found = deployed_statistics(ledger.directory)
    assert (found.ticks, found.inputs["a"].history) == (10, 120.0)


def test_what_few_ticks_say_is_not_recorded(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 8, 0, a=90))
    assert recorded_statistics(ledger.directory) is None
    ledger.append(_commit(1, 9, 9, 0, a=10))
    assert recorded_statistics(ledger.directory) is not None


def test_a_young_pipeline_is_planned_as_one_that_has_grown(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 0, 0, a=2, b=50))
    ledger.append(_commit(1, 1, 20, 0, a=40, b=0))
    found = recorded_statistics(ledger.directory)
    assert found is not None
    assert found.ticks == TICKS
    assert found.inputs["a"].rows == ROWS
    assert found.inputs["a"].history == pytest.approx((42 + 2 * 79) * 500)
    b = found.inputs["b"]
    assert (b.rows < 1, b.history) == (True, pytest.approx(25_000, rel=0.01)), "loaded once"


def test_the_plan_that_serves_stays_unless_another_one_is_notably_cheaper() -> None:
    typed = compile_text(JOINS).typed
    guess = optimize(typed)

    def planned(known: InputStatistics, of: str) -> tuple[OptimizedProgram, OptimizedProgram]:
        given = Statistics(inputs={of: known})
        return optimize(typed, given), optimize(typed, given, served_by=Statistics())

    own, stays = planned(InputStatistics(rows=0.01, history=5), "a")
    assert own.graph != guess.graph
    assert (stays.graph, stays.statistics) == (guess.graph, Statistics())
    own, turned = planned(InputStatistics(rows=0.01, history=10), "c")
    assert own.graph != guess.graph
    assert (turned.graph, turned.statistics) == (own.graph, own.statistics)


def test_a_tick_that_was_made_again_counts_once(ledger: Ledger) -> None:
    ledger.append(_commit(0, 0, 0, 4, a=10))
    ledger.append(_commit(1, 1, 1, 4, a=1000))
    ledger.append(replace(_commit(2, 1, 0, 0), rows={}, inputs=()))  # it was taken back
    ledger.append(_commit(3, 1, 1, 4, a=30))
    assert deployed_statistics(ledger.directory).inputs["a"].history == 40


def test_without_a_tick_nothing_is_known(ledger: Ledger, refused: Refused) -> None:
    with refused(DataError, "state"):
        deployed_statistics(ledger.directory)


def test_the_command_takes_a_directory(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.hydro"
    program.write_text(JOINS, encoding="utf-8")
    ledger.append(_commit(0, 0, 9, 0, a=20000, b=20000, c=10))
    assert main(["optimize", str(program), "--format", "sexpr"]) == 0
    by_default = capsys.readouterr().out
    options = ["--format", "sexpr", "--stats", str(ledger.directory)]
    assert main(["optimize", str(program), *options]) == 0
    assert capsys.readouterr().out != by_default, "c is small, so it is joined first"
