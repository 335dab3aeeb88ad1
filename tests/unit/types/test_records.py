"""What is stored of values comes back whole: every class that is, with values of every field."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydro_core.artifact.deployment import Costs, Sharding, Validation
from hydro_core.errors import Diagnostic, Span
from hydro_core.spark.functions.reruns import GuardedFunction, RerunCount
from hydro_core.spark.inputs.differences import DifferingFile
from hydro_core.spark.store.ledger.records import (
    LEDGER_SCHEMA,
    ChangedRange,
    Commit,
    InputRead,
    as_row,
    as_rows,
    columns_of,
)
from hydro_core.types.records import as_record, hints_of, of_record
from hydrotick.cli.copies import CopyNote
from hydrotick.flows.late_arrivals import LateArrivals
from hydrotick.openlineage import Parent
from hydrotick.quality.changed import CorrectionResult
from hydrotick.quality.suites import Verdict
from hydrotick.runner.report import TickReport

AS_JSON = (
    *(Costs, Sharding, Validation, Diagnostic, Span, GuardedFunction, CopyNote, LateArrivals),
    *(Parent, Verdict, CorrectionResult, TickReport),
)
"""What is stored, or told, as JSON."""
AS_ROWS = (Commit, InputRead, ChangedRange, RerunCount)
"""What is stored as rows of Arrow."""

TIMES = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
    int: st.integers(-(2**53), 2**53),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    datetime: TIMES,
    Any: st.none() | st.booleans() | st.integers(0, 9) | st.text("ab", max_size=2),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, as an annotation says it."""
    origin, of = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        known = hints_of(kind)
        return st.builds(kind, **{f.name: values_of(known[f.name]) for f in fields(kind)})
    if origin is Literal:
        return st.sampled_from(of)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if one is types.NoneType else values_of(one) for one in of))
    if origin is tuple and of[1:] != (...,):
        return st.tuples(*map(values_of, of))
    if issubclass(origin, Mapping):
        return st.dictionaries(values_of(of[0]), values_of(of[1]), max_size=2)
    return st.lists(values_of(of[0]), max_size=2).map(tuple)


@pytest.mark.parametrize("kind", AS_JSON, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=30)
def test_json_gives_the_same(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    assert of_record(kind, json.loads(json.dumps(as_record(value)))) == value


@pytest.mark.parametrize("kind", AS_ROWS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=30)
def test_rows_give_the_same(kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    (row,) = as_rows([value], pa.schema(columns_of(kind))).to_pylist()
    assert of_record(kind, row) == value


@given(file=values_of(DifferingFile))
@settings(max_examples=30)
def test_rows_in_a_text_of_json_give_the_same(file: DifferingFile) -> None:
    assert of_record(DifferingFile, json.loads(json.dumps(as_row(file)))) == file


def test_every_field_of_a_commit_has_a_column() -> None:
    names = [field.name for field in fields(Commit)]
    assert LEDGER_SCHEMA.names == names
    read = LEDGER_SCHEMA.field("inputs").type.value_type
    assert [field.name for field in read] == [field.name for field in fields(InputRead)]


LEDGER = """\
sequence: int64
first: int64
last: int64
plan: string
versions: map<string, int64>
rows: map<string, int64>
inputs: list<item: struct<name: string, rows: int64, location: string, version: int64, \
kind: string, empty: list<item: int64>, table: string, listing: string, \
late: map<int64, int64>, changed: list<item: struct<first: int64, last: int64, \
removed: int64, added: int64>>, acknowledged_version: int64, acknowledged_listing: string, \
early: int64, counts: map<int64, int64>, differences: string, acknowledged_differences: string>>
start: timestamp[us, tz=UTC]
end: timestamp[us, tz=UTC]
started: timestamp[us, tz=UTC]
committed: timestamp[us, tz=UTC]
checks: string
tables: string
reruns: list<item: struct<key: string, name: string, file: string, line: int64, \
times: int64, commit: int64, first: int64, last: int64>>
back: bool"""


def test_a_ledger_has_the_columns_that_it_had() -> None:
    assert "\n".join(f"{field.name}: {field.type}" for field in LEDGER_SCHEMA) == LEDGER


def test_a_commit_is_the_row_that_it_was() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    read = InputRead(
        "a", 3, changed=(ChangedRange(1, 2, 3),), late={2: 1, 1: 4}, counts={5: 1, 0: 2}
    )
    rerun = RerunCount(GuardedFunction("k", "f", "p.hydro", 3), 2, 1, 0, 4)
    checks, tables = {"b": 1, "a": {"y": None, "x": [1]}}, {"t": {"mode": "G"}}
    commit = Commit(
        *(4, 0, 1, "plan", {"t": 2, "s": 1}, {"t": 7}, (read,)),
        started=now,
        committed=now,
        checks=checks,
        tables=tables,
        reruns=(rerun,),
    )
    row = as_row(commit)
    assert row["versions"] == [("s", 1), ("t", 2)]
    assert row["checks"] == '{"a": {"x": [1], "y": null}, "b": 1}'
    assert row["inputs"][0]["late"] == [(1, 4), (2, 1)]
    assert row["inputs"][0]["counts"] == [(0, 2), (5, 1)]
    assert row["reruns"] == [
        {
            "key": "k",
            "name": "f",
            "file": "p.hydro",
            "line": 3,
            "times": 2,
            "commit": 1,
            "first": 0,
            "last": 4,
        }
    ]


def test_a_field_that_a_record_lacks_has_its_default() -> None:
    row = {"sequence": 0, "first": 0, "last": 0, "plan": "p", "versions": [], "rows": []}
    now = datetime(2026, 1, 1)
    old = {"started": now, "committed": now, "checks": "{}", "tables": "{}", "inputs": None}
    found = of_record(Commit, {**row, **old})
    assert (found.inputs, found.reruns, found.start) == ((), (), None)
    assert not found.back
    assert found.committed == now.replace(tzinfo=UTC)


def test_what_no_field_is_called_is_refused() -> None:
    with pytest.raises(TypeError, match="Span has no 'colour'"):
        of_record(Span, {**as_record(Span("a", 1, 1, 1, 1)), "colour": "red"})
