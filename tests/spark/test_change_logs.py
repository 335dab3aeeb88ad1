"""Logs of changes on disk: state and outputs of which a tick stores what it changes."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.compile import CompiledProgram, compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store import store
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem
from hydrotick.quality.judge import committed_facts, kept, state_facts
from tests.spark.pipelines import SETTINGS, Crash, crash_at

pytestmark = pytest.mark.spark

SCHEMA = "user string, amount long, share double, tags array<string>"
PROGRAM = f"""
a = source("{SCHEMA}")
x = a -> persist() -> aggregate(by="user", n=count(), total=sum("amount"))
x -> totals
x -> map(lambda r: r.n) -> counts
a -> persist() -> latest(by="user", order="amount") -> last
a -> persist() -> aggregate(by="user", m=median("amount"), all=collect_list("amount")) -> middles
x -> filter(lambda r: r.n > 1) -> delta() -> new
known = a -> filter(lambda r: r.amount is not None) -> sort_by_key(lambda r: r.amount)
known -> map(lambda r: ("delete" if r.amount == 3 else "persist", r.user)) -> persist_mut() -> marks
known -> map(lambda r: ("delete" if r.amount == 3 else "persist", r.user, r.amount))
  -> persist_mut_keyed() -> amounts
"""
LOGS = ("totals", "counts", "last", "middles", "marks", "amounts")
OUTPUTS = (*LOGS, "new")

TICKS: list[list[dict[str, Any]]] = [
    [
        {"user": "ann", "amount": 1, "share": -0.0, "tags": ["a"]},
        {"user": None, "amount": 2, "share": float("nan"), "tags": None},
        {"user": "bob", "amount": None, "share": None, "tags": []},
    ],
    [{"user": "ann", "amount": 3, "share": 0.0, "tags": ["a", None]}],
    [],
    [
        {"user": None, "amount": 5, "share": float("nan"), "tags": None},
        {"user": "cid", "amount": 1, "share": 1.5, "tags": ["c"]},
        {"user": "ann", "amount": 0, "share": 2.5, "tags": ["z"]},
    ],
]


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def compiled() -> CompiledProgram:
    return compile_text(PROGRAM)


def opened(directory: Path, settings: Settings = SETTINGS) -> Pipeline:
    found = optimized(compiled())
    return Pipeline(directory, plan(found.typed), settings)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    types = {"user": pa.string(), "amount": pa.int64(), "share": pa.float64()}
    return pa.Table.from_pylist(rows, pa.schema({**types, "tags": pa.list_(pa.string())}))


def run(pipeline: Pipeline, first: int, last: int) -> None:
    """The ticks as one range."""
    parts = [
        table(TICKS[t]).append_column("at", pa.array([t] * len(TICKS[t]), pa.int64()))
        for t in range(first, last + 1)
    ]
    given = batch_of("a", pa.concat_tables(parts), parse_ddl(SCHEMA), "at")
    pipeline.run_range(first, last, {"a": given})


def wanted() -> list[dict[str, Counter[str]]]:
    """What each output has at each tick, by the reference."""
    program = compiled()
    ticks = [TickInput({"a": [RowItem(row) for row in rows]}) for rows in TICKS]
    return [
        {name: Counter(text(item) for item in items) for name, items in outputs.items()}
        for outputs in run_ticks(program.typed, program.strata, ticks)
    ]


def text(item: Any) -> str:
    """One zero; and the columns of an item that is no row."""
    if isinstance(item, tuple):
        item = {f"_{i}": x for i, x in enumerate(item, start=1)}
    row = dict.items(item) if isinstance(item, dict) else [("item", item)]
    return repr([(n, x + 0.0 if isinstance(x, float) else x) for n, x in row])


def shown(rows: pa.Table) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for row in rows.to_pylist():
        tick = row.pop("tick")
        found.setdefault(tick, Counter())[text(row)] += 1
    return found


def check(pipeline: Pipeline) -> None:
    """Every way of reading gives what the reference gives."""
    expected = wanted()
    ticks = range(pipeline.next_tick)
    for name in OUTPUTS:
        by_tick = {t: expected[t][name] for t in ticks if expected[t][name]}
        every = shown(pipeline.output(name, every=True))
        assert every == by_tick, name
        assert shown(pipeline.output_frame(name, every=True).toArrow()) == by_tick, name
        for t in ticks:
            there = {t: by_tick[t]} if t in by_tick else {}
            assert shown(pipeline.output(name, as_of=t)) == there
    last = ticks[-1]
    for name in LOGS:
        assert shown(pipeline.output_frame(name).toArrow()) == {last: expected[last][name]}


@pytest.fixture(scope="module")
def ticked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All ticks, one by one."""
    directory = tmp_path_factory.mktemp("ticked") / "pipeline"
    pipeline = opened(directory)
    for t, rows in enumerate(TICKS):
        pipeline.run_tick(t, {"a": table(rows)})
    return directory


@pytest.fixture
def committed(ticked: Path, tmp_path: Path) -> Pipeline:
    """The same, of the test's own."""
    return opened(Path(shutil.copytree(ticked, tmp_path / "pipeline")))


def test_what_changes_a_little_is_a_log(ticked: Path) -> None:
    pipeline = opened(ticked)
    modes = {name: spec.form for name, spec in pipeline.output_tables.items()}
    assert modes == {**dict.fromkeys(LOGS, Form.CHANGES), "new": Form.GROWTH}
    [history] = (s.of for s in pipeline.state_tables.values() if s.form is not Form.CHANGES)
    assert history == "a_read"


def test_single_ticks_are_read_in_every_way(ticked: Path) -> None:
    check(opened(ticked))


def test_a_tick_stores_what_it_changes(ticked: Path) -> None:
    pipeline = opened(ticked)
    rows = pipeline.store.arrow("outputs/totals", 1, 1).to_pylist()
    assert sorted((r["user"], r["n"], r["total"], r["copies"]) for r in rows) == [
        ("ann", 1, 1, -1),
        ("ann", 2, 4, 1),
    ]
    assert pipeline.store.arrow("outputs/totals", 2, 2).num_rows == 0
    rows = pipeline.store.arrow("outputs/middles", 3, 3).to_pylist()
    assert {r["user"] for r in rows} == {None, "cid", "ann"}, "those of keys that are new"


@pytest.mark.parametrize("first", [1, 2])
def test_ranges_store_what_their_ticks_store(first: int, ticked: Path, tmp_path: Path) -> None:
    pipeline = opened(tmp_path / "pipeline")
    run(pipeline, 0, first - 1)
    run(pipeline, first, len(TICKS) - 1)
    check(pipeline)
    single = opened(ticked)
    for spec in pipeline.tables:
        ours, theirs = (
            Counter(map(repr, p.store.arrow(spec.name, 0, len(TICKS)).to_pylist()))
            for p in (pipeline, single)
        )
        assert ours == theirs, spec.name


@pytest.mark.parametrize(
    "step", ["outputs/totals", pytest.param("tables", marks=pytest.mark.slow), "ledger"]
)
def test_a_tick_that_is_cut_off_leaves_nothing(step: str, tmp_path: Path) -> None:
    pipeline = opened(tmp_path / "pipeline")
    run(pipeline, 0, 2)
    pipeline.step = crash_at(step)
    with pytest.raises(Crash):
        pipeline.run_tick(3, {"a": table(TICKS[3])})
    pipeline.lock.release()
    again = opened(tmp_path / "pipeline")
    for t in range(again.next_tick, len(TICKS)):
        again.run_tick(t, {"a": table(TICKS[t])})
    check(again)


def test_state_is_summed_up_where_most_of_it_is_history(
    committed: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_WORTH_SUMMING", 1)
    committed.rewind(2)
    committed.compact()
    logs = [s for s in committed.state_tables.values() if s.form is Form.CHANGES]
    for spec in logs:
        rows = committed.store.arrow(spec.name, 0, 2)
        assert set(rows["t"].to_pylist()) == {2}
        assert rows.num_rows == sum(rows["n"].to_pylist()) == committed.store.row_count(spec.name)
        assert committed.store.tables[spec.name].summed_to() == 2
    run(committed, 3, 3)
    check(committed)


def test_the_laws_hold_of_a_log_also_when_it_is_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_WORTH_SUMMING", 1)
    pipeline = opened(tmp_path / "pipeline", SETTINGS.with_(compact_every=2))
    for t, rows in enumerate(TICKS):
        with pipeline.prepare(t, t, {"a": table(rows)}) as prepared:
            prepared.write()
            totals = prepared.shown("totals", lambda: pipeline.spark)
            assert shown(totals.table) == {t: wanted()[t]["totals"]}
            facts = state_facts(prepared, pipeline.ledger.last)
            specs = {slot: written.spec for slot, written in prepared.state.items()}
            prepared.commit({"tables": kept(facts, specs)})
        for fact in facts:
            assert fact.after_rows == fact.before_rows + fact.batch_rows
            assert fact.after_keys == (fact.before_keys + fact.batch_keys) % 2**64
            assert (fact.written_rows, fact.written_keys) == (fact.batch_rows, fact.batch_keys)
    check(pipeline)
    summed = [s for s in specs.values() if pipeline.store.tables[s.name].summed_to() >= 0]
    assert summed
    again = committed_facts(pipeline, 3, summed[0].of)
    assert again is not None
    assert again.after_rows == again.before_rows + again.batch_rows
    assert committed_facts(pipeline, 0, summed[0].of) is None


def test_going_back_takes_changes_back(committed: Pipeline) -> None:
    committed.rewind(1)
    check(committed)
    run(committed, 2, 3)
    check(committed)
