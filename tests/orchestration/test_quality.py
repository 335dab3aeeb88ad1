"""Facts and suites: what the laws see, and that they fail when they are broken."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.plan.tick_plan import Kind
from hydro_core.project.flow_asset import Expect
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydrotick.quality.judge import counted, key_sum
from hydrotick.quality.suites import (
    DELTA,
    LAW_CHECKS,
    PERSIST,
    TYPES,
    TableFacts,
    Verdict,
    declared_checks,
    judge_counts,
    laws_frame,
    laws_suite,
    validate_rows,
)

pytestmark = pytest.mark.dagster

GOOD = TableFacts("routes", 10, 2, 2, 12, 100, 7, 7, 107, "t int64", "t int64")
ROWS = pa.table(
    {
        "n": [1, 2, None],
        "struct": pa.array([{"x": "a", "y": [1, None]}, None, {"x": None, "y": None}]),
        "double": [0.0, float("nan"), None],
        "day": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)],
        "flag": [True, None, False],
        "moment": pa.array([dt.datetime(2020, 1, 1), None, None]),
        "money": [Decimal("1.10"), None, None],
        "bytes": [b"", b"\x00", None],
    }
)


def test_a_hash_sum_is_that_of_a_bag():
    assert key_sum(ROWS) == key_sum(ROWS.take([2, 0, 1]))
    assert key_sum(ROWS) == (key_sum(ROWS.slice(0, 1)) + key_sum(ROWS.slice(1))) % 2**64
    assert key_sum(ROWS.slice(0, 0)) == 0


@pytest.mark.parametrize("column", ROWS.column_names)
def test_a_hash_sum_sees_every_column(column):
    swapped = ROWS.set_column(ROWS.column_names.index(column), column, ROWS[column].take([1, 0, 2]))
    assert key_sum(swapped) != key_sum(ROWS)


def test_a_null_struct_is_not_a_struct_of_nulls():
    kind = pa.struct([("x", pa.int64())])
    assert key_sum(pa.table({"s": pa.array([None], kind)})) != key_sum(
        pa.table({"s": pa.array([{"x": None}], kind)})
    )


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, set()),
        ({"after_rows": 13}, {PERSIST}),
        ({"after_keys": 108}, {PERSIST}),
        ({"written_rows": 1}, {DELTA}),
        ({"written_keys": 2**64 - 1}, {DELTA}),
        ({"stored_type": "t int32"}, {TYPES}),
    ],
)
def test_each_law_fails_for_its_own_reason(change, broken):
    facts = [GOOD, replace(GOOD, table="other", **change)]
    verdicts = validate_rows(laws_suite("flow"), laws_frame(facts), "table")
    assert [v.passed for v in verdicts["routes"]] == [True] * len(LAW_CHECKS)
    assert {v.check for v in verdicts["other"] if not v.passed} == broken


def test_hash_sums_wrap_around():
    fact = replace(GOOD, before_keys=2**64 - 3, after_keys=4)
    verdicts = validate_rows(laws_suite("flow"), laws_frame([fact]), "table")
    assert all(v.passed for v in verdicts["routes"])


def test_a_flow_without_state_has_no_laws_to_break():
    assert validate_rows(laws_suite("flow"), laws_frame([]), "table") == {}


EXPECTED = (
    Expect("a", not_null=True, unique=True, at_least=0, at_most=9),
    Expect("b", one_of=("x", "y"), matches="^[a-z]$"),
)


def written(item: str, *rows: tuple[object, ...]) -> WrittenRows:
    """Rows of an output, each with its tick, as this process holds them."""
    of = ("outputs/out", "output", "out", parse_ddl(item), False, Form.GROWTH, Kind.E, "")
    spec = TableSpec(*of)
    names = spec.arrow_schema.names
    named = [dict(zip(names, row, strict=True)) for row in rows]
    return WrittenRows(spec, len(rows), pa.Table.from_pylist(named, spec.arrow_schema))


def judged(expected: tuple[Expect, ...], shown: WrittenRows) -> dict[str, Verdict]:
    def session() -> None:
        raise AssertionError("few rows need no Spark")

    verdicts = judge_counts("flow", "out", expected, counted(expected, shown, session))
    assert [v.check for v in verdicts] == list(declared_checks(expected))
    return {verdict.check: verdict for verdict in verdicts}


def test_expectations_hold_or_fail_by_name():
    good = written("a long, b string", (0, 1, "x"), (0, 2, "y"), (1, 1, "x"))
    assert all(v.passed for v in judged(EXPECTED, good).values())
    bad = written("a long, b string", (0, 1, "x"), (0, 1, "z"), (0, None, "Z"), (0, 10, "y"))
    assert not any(v.passed for v in judged(EXPECTED, bad).values())


def test_two_checks_of_a_kind_on_a_column_are_both_judged():
    """The second had taken the name of the first, which nobody judged."""
    expected = (
        Expect("a", at_least=0),
        Expect("a", at_most=9, severity="warn"),
        Expect("b", one_of=("x",)),
    )
    found = judged(expected, written("a long, b string", (0, -1, "x"), (0, 1, "x")))
    assert [(v.check, v.passed, v.severity) for v in found.values()] == [
        ("a_between", False, "error"),
        ("a_between_2", True, "warn"),
        ("b_one_of", True, "error"),
    ]


def test_whole_numbers_beside_nulls_are_told_apart():
    """As doubles, two of these were one."""
    large = 2**62
    rows = written("a long", (0, 2**53), (0, 2**53 + 1), (0, None), (0, large))
    expected = Expect("a", unique=True, at_least=2**53, at_most=large), Expect("a", not_null=True)
    found = judged(expected, rows)
    assert [name for name, verdict in found.items() if not verdict.passed] == ["a_not_null"]
    assert found["a_not_null"].seen["rows that break it"] == [{"a": "null"}]
    between = judged((Expect("a", at_most=2**53),), rows)["a_between"]
    shown = [{"a": str(value)} for value in (2**53 + 1, large)]
    assert between.seen["rows that break it"] == shown
    one = judged((Expect("a", one_of=(2**53, large)),), rows)["a_one_of"]
    assert one.seen["rows that break it"] == shown[:1]


def test_a_check_that_fails_says_which_rows_break_it():
    users = ["ann", None, "bob", "bob", *"cdef"]
    numbers = [1, 2, 20, -3, 30, 40, 50, 60]
    rows = [(7, user, number, "rest") for user, number in zip(users, numbers, strict=True)]
    expected = Expect("a", at_least=0, at_most=9), Expect("user", unique=True, not_null=True)
    found = judged(expected, written("user string, a long, more string", *rows))
    between, unique, null = (found[name] for name in ("a_between", "user_unique", "user_not_null"))
    assert between.says == (
        "`a` is at least 0 and at most 9; 6 of 8 row(s) are otherwise, such as a 20, user bob"
    )
    # Some of them, each with the columns that are judged.
    rows = between.seen["rows that break it"]
    assert rows[:2] == [{"user": "bob", "a": "20"}, {"user": "bob", "a": "-3"}]
    assert len(rows) == 5
    assert unique.seen["rows that break it"] == rows[:2]
    assert null.seen["rows that break it"] == [{"user": "null", "a": "2"}]


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        (Expect("nope", not_null=True), "no column `nope`"),
        (Expect("a", at_least="x"), "the column is long"),
        (Expect("a", one_of=(1.5,)), "the column is long"),
    ],
)
def test_what_cannot_be_judged_fails_and_says_so(expect: Expect, problem: str) -> None:
    """The asset may be ahead of the plan that runs."""
    (verdict,) = judged((expect,), written("a long")).values()
    assert not verdict.passed
    assert problem in verdict.seen["problem"]
    assert problem in verdict.says


@pytest.mark.parametrize(
    "made",
    [
        "from hydrotick.quality.suites import laws_suite; laws_suite('flow')",
        "from hydrotick.quality.suites import _batch_definition; _batch_definition()",
    ],
)
def test_the_library_is_loaded_where_the_main_module_has_no_file(made):
    # So it is in a child of `multiprocessing`, which Dagster's default launcher starts for a run.
    # Spark Connect, for which Great Expectations looks, ends such a process without a word.
    words = [sys.executable, "-W", "ignore", "-c", f"{made}; print('made')"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "made\n", done.stderr
    assert done.returncode == 0
