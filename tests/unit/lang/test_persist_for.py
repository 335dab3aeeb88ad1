"""`persist(for_=…, by=…)`: in text and Python, what it refuses, where ticks have no times."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.cli.main import main
from hydro_core.compile import best_plan, compile_text, optimized, planned
from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.plan.streams import stream_forms
from hydro_core.running import run_json
from tests.support.refused import Refused

TEXT = """\
a = source("user string, at timestamp")
a -> persist(for_=timedelta(days=2), by="at") -> out
"""
ROWS = [{"user": "ann", "at": "2026-01-01T10:00:00Z"}, {"user": "bob", "at": None}]
OPTIONS = Options(optimized=False)


def test_text_and_python_are_one_program() -> None:
    flow = Flow("flow")
    stream = flow.source("a", "user string, at timestamp")
    stream.persist(for_=timedelta(days=2), by="at").sink("out")
    assert flow.to_text() == TEXT
    assert Flow.parse(TEXT).to_text() == TEXT
    bare = parse(TEXT.replace('for_=timedelta(days=2), by="at"', ""))
    assert dict(bare["persist_1"].args) == {}, "it is the operator that it has always been"
    given = flow.run([{"a": ROWS}, {}, {}], start="2026-01-01", every="1d")
    assert [len(tick["out"]) for tick in given] == [1, 1, 0]


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("for_=timedelta(days=2)", "arity", "`persist` needs the argument `by`"),
        ('by="at"', "arity", "`persist` needs the argument `for_`"),
        ("timedelta(days=2)", "arity", "`persist` takes at most 0 by place"),
        ('for_=2, by="at"', "type", "`for_` must be a length of time"),
        ('for_=timedelta(days=-1), by="at"', "type", "not negative"),
        ('for_=timedelta(days=1), by="ta"', "type", "ta"),
        ('for_=timedelta(days=1), by="user"', "type", "`by`: the column 'user' is of type string"),
        ('for_=timedelta(days=1), by=["at"]', "type", "`by` must be a name in quotes"),
    ],
)
def test_what_is_wrong_with_it(call: str, code: str, says: str) -> None:
    with pytest.raises(HydroError) as caught:
        compile_text(TEXT.replace('for_=timedelta(days=2), by="at"', call))
    assert (caught.value.code, says in str(caught.value)) == (code, True), caught.value


def test_scalars_have_no_column() -> None:
    with pytest.raises(HydroError) as caught:
        compile_text('a = source("long")\na -> persist(for_=timedelta(1), by="at") -> out\n')
    assert caught.value.code == "type"


@pytest.mark.parametrize("times", [{}, {"start": None}])
def test_ticks_without_times_are_refused(times: dict[str, Any], refused: Refused) -> None:
    with refused(HydroError, "input", at="2:6"):
        run_json(parse(TEXT), {}, [{"a": ROWS}], OPTIONS)
    assert times in ({}, {"start": None})


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"every": "1d"}, "input"),
        ({"start": 5}, "input"),
        ({"start": "soon"}, "config"),
        ({"start": "2026-01-01", "every": "often"}, "config"),
    ],
)
def test_times_that_are_none(
    given: dict[str, Any], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hydro").write_text(TEXT, encoding="utf-8")
    (tmp_path / "t.json").write_text(json.dumps({"ticks": [{"a": ROWS}], **given}))
    words = ["run", str(tmp_path / "p.hydro"), "--ticks", str(tmp_path / "t.json")]
    assert main([*words, "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_ticks_of_a_file_have_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.hydro").write_text("tick() -> out\n", encoding="utf-8")
    ticks = {"ticks": [{}, {}], "start": "2026-01-31T06:00:00Z", "every": "1mo"}
    (tmp_path / "t.json").write_text(json.dumps(ticks))
    assert main(["run", str(tmp_path / "p.hydro"), "--ticks", str(tmp_path / "t.json")]) == 0
    rows = [tick["out"][0] for tick in json.loads(capsys.readouterr().out)["ticks"]]
    assert [row["start"] for row in rows] == ["2026-01-31T06:00:00Z", "2026-02-28T06:00:00Z"]
    assert rows[1]["end"] == "2026-03-31T06:00:00Z"


def test_the_plan_says_what_is_bounded_and_goes_on() -> None:
    program = compile_text(
        TEXT.replace("-> out", '-> aggregate(by="user", n=count()) -> counts')
        + 'a -> persist(for_=timedelta(days=5), by="at") -> delta() -> came\n'
    )
    best = best_plan(program)
    assert not best.notes
    plan = planned(program, best)
    [slot] = [slot for slot in plan.slots if slot.bound is not None]
    assert slot.bound is not None
    assert slot.bound.micros == 5 * 86_400_000_000, "of two readers the longer counts"
    [said] = [one.why for one in stream_forms(plan) if "as long as" in one.why]
    assert "`at` is within 5 days, 0:00:00 of the tick's end" in said


def test_no_rule_of_a_history_holds_for_it() -> None:
    found = optimized(compile_text(TEXT.replace("-> out", "-> delta() -> out")))
    assert [node.op.name for node in found.typed.graph] == ["source", "persist", "delta", "sink"]


def test_a_history_beside_it_is_kept_whole() -> None:
    plan = planned(compile_text(f"{TEXT}a -> persist() -> unique() -> users\n"))
    assert [slot.bound for slot in plan.slots] == [None]
