"""An `asset.yaml` means the `FlowAsset` that it says, and what is wrong with it is told by line."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.project.asset_yaml import flow_of_yaml
from hydro_core.project.flow_asset import (
    Expect,
    FlowAsset,
    FlowSpark,
    KeptOutput,
    Landing,
    OnError,
    Shards,
    Ticks,
)
from hydro_core.project.program import program_of
from hydrotick.deploy.deployments import plan_as_written
from tests.support.refused import Refused
from tests.unit.projects.declared import PROGRAM

WHOLE = """\
program: totals.hydro            # or module:attribute
description: What was paid.
owners: [ann@example.org, team:data]
sample_keys: 4
shards: {count: 4, on: {payments: [user, day]}, replicate: []}
spark: {conf: {spark.task.maxFailures: 3, spark.ui.enabled: true}}
on_error: {quarantine: 100}
params: {above: 10, rate: 0.5, since: 2026-01-01, at: 2026-01-01T06:00:00+01:00, kinds: [a, b]}
ticks: {start: 2026-01-01, every: 1d, delay: 2h, end: 2026-02-01 06:00, zone: Europe/Amsterdam}
inputs:
  payments:
    {path: payments, column: day, wait: landed, late: correct, removed: hold,
     on_error: {quarantine: 5}, event: day}
schemas: {payments: "user string, day date, amount long, rate double, paid boolean"}
outputs: {totals: {as: table, description: Everything.}}
expect:
  totals:
    - {column: user, not_null: true, unique: true}
    - {column: amount, at_least: 0, severity: warn}
    - {column: day, at_most: 2027-01-01}
    - {column: rate, one_of: [1, 2.5]}
    - {column: user, matches: "[a-z]+"}
"""
SOUND = """\
program: totals.hydro
ticks: {start: 2026-01-01}
inputs: {payments: {path: payments, column: day}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "totals"
    folder.mkdir()
    (folder / "totals.hydro").write_text(PROGRAM, encoding="utf-8")
    return folder / "asset.yaml"


def told(file: Path, text: str) -> tuple[Diagnostic, ...]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProgramError) as caught:
        plan_as_written(flow_of_yaml(file))
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.code == "config"
        assert diagnostic.span is not None
        assert diagnostic.span.file == str(file)
    return caught.value.diagnostics


def test_all_that_can_be_said(file: Path) -> None:
    file.write_text(WHOLE, encoding="utf-8")
    names = "above, rate, since, at, kinds"
    named = PROGRAM.replace("-> totals", f"-> filter(lambda p: ({names}) is not None) -> totals")
    (file.parent / "totals.hydro").write_text(named, encoding="utf-8")
    flow = flow_of_yaml(file)
    assert flow == FlowAsset(
        name="totals",
        program=Path("totals.hydro"),
        description="What was paid.",
        owners=("ann@example.org", "team:data"),
        sample_keys=4,
        shards=Shards(4, {"payments": ("user", "day")}),
        spark=FlowSpark({"spark.task.maxFailures": "3", "spark.ui.enabled": "true"}),
        params={
            "above": 10,
            "rate": 0.5,
            "since": date(2026, 1, 1),
            "at": datetime(2026, 1, 1, 5, tzinfo=UTC),
            "kinds": ["a", "b"],
        },
        ticks=Ticks(datetime(2026, 1, 1), "1d", datetime(2026, 2, 1, 6), "2h", "Europe/Amsterdam"),
        inputs={
            "payments": Landing(
                *("payments", "day", "landed", "correct", "hold"), on_error=OnError(5), event="day"
            )
        },
        on_error=OnError(100),
        schemas={"payments": "user string, day date, amount long, rate double, paid boolean"},
        outputs={"totals": KeptOutput("table", "Everything.")},
        expect={
            "totals": (
                Expect("user", not_null=True, unique=True),
                Expect("amount", at_least=0, severity="warn"),
                Expect("day", at_most=date(2027, 1, 1)),
                Expect("rate", one_of=(1, 2.5)),
                Expect("user", matches="[a-z]+"),
            )
        },
        folder=file.parent,
    )
    assert set(plan_as_written(flow).graph.sinks) == {"totals", "quarantine"}


def test_every_part_of_a_flow_can_be_said(file: Path) -> None:
    """What has no text form is given by the folder, or is code."""
    parts = {f.name for f in fields(FlowAsset)} - {"name", "folder", "places", "land", "fed_by"}
    assert parts == {line.partition(":")[0] for line in WHOLE.splitlines() if line[0].isalpha()}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-01", datetime(2026, 1, 1)),
        ("2026-01-01 06:00", datetime(2026, 1, 1, 6)),
        ("2026-01-01 06:00:00", datetime(2026, 1, 1, 6)),
        ("2026-01-01T06:00Z", datetime(2026, 1, 1, 6, tzinfo=UTC)),
        ('"2026-01-01T06:00+01:00"', datetime(2026, 1, 1, 6, tzinfo=timezone(timedelta(hours=1)))),
    ],
)
def test_times(file: Path, written: str, meant: datetime) -> None:
    file.write_text(SOUND.replace("2026-01-01", written), encoding="utf-8")
    start = flow_of_yaml(file).ticks.start
    assert (start, start.tzinfo is None) == (meant, meant.tzinfo is None)


@pytest.mark.parametrize(
    ("change", "place", "message", "cure"),
    [
        (("ticks:", "tick:"), (2, 1), "a flow has no `tick`", "did you mean `ticks`?"),
        (
            ("start: 2026-01-01", "start: 2026-01-01, evry: 1d"),
            (2, 28),
            "`ticks` has no `evry`",
            "did you mean `every`?",
        ),
        (
            ("start: 2026-01-01", "start: soon"),
            (2, 9),
            "`start` is the text 'soon', and is to be a date or a time",
            "such as `2026-01-01`",
        ),
        (
            ("start: 2026-01-01", "start: 2026-13-01"),
            (2, 16),
            "this is no YAML: month must be in 1..12",
            None,
        ),
        (
            ("start: 2026-01-01", "every: 1d"),
            (2, 1),
            "`ticks` has no `start`",
            "say when the first tick begins",
        ),
        (
            ("column: day", "column: on"),
            (3, 37),
            "`column` is true (`yes`, `no`, `on` and `off` mean that, too), and is to be a text",
            "write it in quotes",
        ),
        (
            ("path: payments, ", ""),
            (3, 10),
            "the input `payments` has no `path`",
            "say where it lands",
        ),
        (
            ("{path: payments, column: day}", "payments"),
            (3, 10),
            "the input `payments` has names with values, and this is the text 'payments'",
            None,
        ),
        (("program: totals.hydro\n", ""), (1, 1), "`program`: a flow needs it", "such as"),
        (("column: day", "column: day, column: t"), (3, 50), "`column` is said twice", "leave one"),
        (("column: day", "column: [day"), (3, 49), "this is no YAML: expected ',' or ']'", None),
        (
            ("ticks:", "description: 'a\u2028b\u2029c\u0085d'\nticks: {every: 0d}\nticks:"),
            (4, 1),
            "`ticks` is said twice",
            None,
        ),
        (
            ("{start: 2026-01-01}", "{start: '2026-01-01T00:00:00.1234567'}"),
            (2, 9),
            "is to be a date or a time",
            None,
        ),
        (
            ("{start: 2026-01-01}", "{start: 2026-01-01 00:00:00.1234567}"),
            (2, 9),
            "is to be a date or a time",
            None,
        ),
    ],
)
def test_what_is_wrong_by_itself(
    file: Path, change: tuple[str, str], place: tuple[int, int], message: str, cure: str | None
) -> None:
    (first, *_) = told(file, SOUND.replace(*change))
    assert first.span is not None
    assert (first.span.line, first.span.column) == place
    assert message in first.message
    assert (first.help or "").startswith(cure or "")


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        ("outputs: {total: All.}", 4, "the program has no output `total`"),
        ("schemas:\n  payments: user strin", 5, "`schemas.payments`"),
        ("expect:\n  totals:\n  - {column: usr}", 5, "the output has no column `usr`"),
        ("expect:\n  totals:\n  - {column: rate, unique: on}\n  - column: user\n    at_least: 3", 8,
         "3 cannot be compared with a column of type string"),
        (
            *("expect:\n  totals: [{column: amount, at_least: 18446744073709551616}]", 5),
            "column of type long, as it is beyond 64 bits",
        ),
        ("expect:\n  totals: [{column: amount, one_of: [1.5]}]", 5, "1.5 cannot be compared"),
        ("expect:\n  totals: 3", 5, "is a list, and this is 3"),
        ("expect:\n  totals: [{unique: true}]", 5, "of which column of `totals`?"),
        ("expect:\n  totals: [{column: user, unique: 1}]", 5, "is to be true or false"),
        ("expect:\n  totals: [{column: rate, one_of: 1}]", 5, "is to be a list of values"),
        ("owners: ann", 4, "'ann' is no owner"),
        ("owners: {a: b}", 4, "is to be a list of texts"),
        ("sample_keys: -1", 4, "is to be a number, 0 or more"),
        ("on_error: 5", 4, "`on_error` is 5, and is to be how many wrong rows a tick may have"),
        (
            *("on_error: {quarantine: -1}", 4),
            "`on_error` is `{quarantine: -1}`, and is to be how many wrong rows a tick may have, 1",
        ),
        ("on_error: {quarantine: 0}", 4, "is to be how many wrong rows a tick may have, 1 or more"),
        ("on_error: {quarantine: yes}", 4, "is to be how many wrong rows a tick may have"),
        ("on_error: {quarantine: 1, more: 2}", 4, "is to be how many wrong rows a tick may have"),
        ("shards: 0", 4, "there are no 0 shards"),
        ("shards: many", 4, "if it is no number, has names with values, and this is the text"),
        ("shards: {on: {payments: user}}", 4, "`shards` has no `count`"),
        ("shards: {count: 2, on: {payment: user}}", 4, "the program has no input `payment`"),
        ("shards: {count: 2, on: {payments: {a: b}}}", 4, "is to be a name or a list of names"),
        ("shards: {count: 2, on: {payments: usr}}", 4, "usr"),
        ("outputs: {totals: {as: tabel}}", 4, "is to be log, table or append"),
        ("outputs: {totals: {is: table}}", 4, "the output `totals` has no `is`"),
        ("outputs: {totals: 3}", 4, "is to be a text"),
        ("params: {above: 10}", 4, "the program names no `above`"),
        ("params:\n  user: 1\n  totals: 2", 6, "`totals` is a stream of the program"),
        ("params:\n  payments:\n", 5, "the parameter `payments` has no value"),
        ("params: 3", 4, "`params` has names with values, and this is 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_program_has_its_line_too(
    file: Path, more: str, line: int, says: str
) -> None:
    (first,) = told(file, SOUND + more)
    assert first.span is not None
    assert first.span.line == line
    assert says in first.message


@pytest.mark.parametrize(
    ("of", "said", "message", "cure"),
    [
        ("timestamp", "2026-02-03", "2026-02-03 cannot", "a time, such as `2026-02-03T00:00:00Z`"),
        ("timestamp_ntz", "2026-02-03", "2026-02-03 cannot", "such as `2026-02-03T00:00:00`"),
        ("date", "2026-02-03T06:00:00Z", "2026-02-03T06:00:00Z cannot", "such as `2026-01-01`"),
        ("boolean", "1", "1 cannot", "write true or false, such as `true`"),
        ("double", "yes", "true cannot", "write a number, such as 0"),
    ],
)
@pytest.mark.parametrize("part", ["at_least: {}", "at_most: {}", "one_of: [{}]"])
def test_help_for_a_bound_is_yaml(
    file: Path, part: str, of: str, said: str, message: str, cure: str
) -> None:
    """A date on a timestamp was answered with `datetime(2026, 1, 1)`."""
    text = SOUND.replace("day}}", "day}}\nschemas: {payments: 'day " + f"{of}'" + "}")
    file.with_name("totals.hydro").write_text("payments -> totals\n", encoding="utf-8")
    (first,) = told(file, f"{text}expect:\n  totals: [{{column: day, {part.format(said)}}}]")
    assert message in first.message
    assert cure in first.help


def test_all_is_told_at_once(file: Path) -> None:
    found = told(file, "ticks: {every: 1}\ninputs: {a: {}}\nexpect: {a: 3}\ncolour: red\n")
    assert len(found) == 6


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[]", "totals", "1", "a: &a [*a]", "!x y"])
def test_what_is_no_flow_is_told(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProgramError):
        flow_of_yaml(file)


def test_what_is_no_text_is_told(file: Path, refused: Refused) -> None:
    file.write_bytes(b"program: \xff")
    with refused(ProgramError, "config"):
        flow_of_yaml(file)


@pytest.mark.parametrize("program", ["gone.hydro", "gone:flow"])
def test_a_program_that_is_not_there_is_told_where_it_is_named(file: Path, program: str) -> None:
    file.write_text(SOUND.replace("program: totals.hydro", f"program: {program}"))
    with pytest.raises(ProgramError) as caught:
        program_of(flow_of_yaml(file))
    (wrong,) = caught.value.diagnostics
    assert wrong.code == "config"
    assert wrong.span is not None
    assert (wrong.span.file, wrong.span.line) == (str(file), 1)
    assert "gone" in wrong.message
