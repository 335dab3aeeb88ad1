"""A changed program takes over from the one that ran: kept, derived and rebuilt tables, as found by
comparing the two, and from then on everything as if it had always run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.artifact.deployment import (
    Deployment,
    deployment_name,
    read_deployment,
    write_deployment,
)
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.program_change.difference import Difference, difference
from hydro_core.spark.inputs.batches import batch_of, stored_batches
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import deployment
from hydro_core.spark.pipeline.tables import Tables
from hydro_core.types.ddl import parse_ddl
from tests.spark.pipelines import SETTINGS
from tests.support.deployments import output_states

pytestmark = pytest.mark.spark

SCHEMAS = {
    "orders": "user string, product string, amount long",
    "users": "user string, country string",
}
SOURCES = "\n".join(f'{name} = source("{schema}")' for name, schema in SCHEMAS.items()) + "\n"
BEFORE = """
known = users -> persist()
orders -> join(right=known, on="user") -> german
orders -> persist() -> aggregate(by="product", total=sum("amount"), n=count()) -> totals
orders -> select("user") -> persist() -> unique() -> delta() -> firsts
"""
SAME = dict.fromkeys(("german", "totals", "firsts"), "same")
AFTER = {
    "refactored": (BEFORE.replace("known", "everybody"), set(), SAME),
    "a column more": (
        BEFORE.replace("n=count()", 'n=count(), most=max("amount")'),
        {"rebuilt"},
        SAME | {"totals": "columns"},
    ),
    "a new output over what is stored": (
        BEFORE + 'known -> aggregate(by="country", n=count()) -> lands',
        {"derived"},
        SAME | {"lands": "new"},
    ),
    "another filter and a window": (
        BEFORE.replace('on="user") ->', 'on="user") -> filter(lambda r: r.amount % 2 == 0) ->')
        + 'orders -> window(2) -> aggregate(by="user", s=sum("amount")) -> recent',
        {"rebuilt"},
        SAME | {"german": "changed", "recent": "new"},
    ),
}
LAST = 3
SLOW = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def landed(tick: int) -> dict[str, pa.Table]:
    orders = [(f"u{(tick + i) % 3}", f"p{i % 2}", 7 * tick + i) for i in range(4)]
    users = [(f"u{tick % 3}", "DE" if tick % 2 else "NL")]
    return {
        "orders": pa.table(
            dict(zip(("user", "product", "amount"), zip(*orders, strict=True), strict=True))
        ),
        "users": pa.table(dict(zip(("user", "country"), zip(*users, strict=True), strict=True))),
    }


def deployed(text: str, directory: Path) -> Deployment:
    compiled = compile_text(SOURCES + dedent(text))
    made = deployment_of("shop", compiled.typed, optimize(compiled.typed))
    return read_deployment(directory, write_deployment(directory, made))


def opened(directory: Path, what: Deployment, kept: dict[str, str] | None = None) -> Pipeline:
    fresh = Pipeline(directory, what.plan, SETTINGS)
    state = {
        slot: replace(spec, name=(kept or {}).get(slot, spec.name))
        for slot, spec in fresh.state_tables.items()
    }
    return Pipeline(
        directory,
        what.plan,
        SETTINGS,
        tables=Tables(state, fresh.output_tables, deployment_name(what)),
    )


def run(pipeline: Pipeline, first: int, last: int) -> Pipeline:
    for tick in range(first, last + 1):
        pipeline.run_tick(tick, landed(tick))
    return pipeline


def run_as_range(pipeline: Pipeline, first: int, last: int) -> Pipeline:
    batches = {}
    for name, schema in SCHEMAS.items():
        parts = [landed(t)[name] for t in range(first, last + 1)]
        ticks = [
            t
            for t, part in zip(range(first, last + 1), parts, strict=True)
            for _ in range(part.num_rows)
        ]
        rows = pa.concat_tables(parts).append_column("at", pa.array(ticks, pa.int64()))
        batches[name] = batch_of(name, rows, parse_ddl(schema), "at")
    pipeline.run_range(first, last, batches)
    return pipeline


def shown(pipeline: Pipeline) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, pipeline.output(name, every=True).to_pylist()))
        for name in pipeline.output_tables
    }


def take_over(serving: Pipeline, found: Difference, directory: Path) -> Pipeline:
    """Deploys what was compared, the past in ranges of two ticks."""
    kept = {n: s.table for n, s in found.states.items() if s.change == "kept" and s.table}
    target = opened(directory, found.after, kept)
    by = found.made_by
    with deployment(serving, target, by, found.wanted) as rework:
        if found.wanted:
            for tick in range(rework.first, rework.last + 1):
                stored = stored_batches(serving.store, by.tables, (tick, tick), serving.spark)
                inputs = {n: rows for n, rows in landed(tick).items() if n in by.inputs}
                rework.staging.run_tick(tick, {**inputs, **stored})
        rework.replace()
    return target


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[] if "stored" in name or "column" in name else SLOW)
        for name, case in AFTER.items()
    ],
)
def test_everything_is_as_if_the_new_program_had_always_run(
    tmp_path: Path, case: tuple[str, set[str], dict[str, str]]
) -> None:
    text, made, states = case
    directory = tmp_path / "served"
    before = deployed(BEFORE, directory)
    serving = run_as_range(run(opened(directory, before), 0, 1), 2, LAST)
    after = deployed(text, directory)
    commit = serving.ledger.last
    assert commit is not None
    found = difference(before, after, commit.tables)
    assert output_states(found) == states
    assert {s.change for s in found.states.values()} - {"kept", "dropped"} == made
    target = take_over(serving, found, directory)
    run_as_range(run(target, LAST + 1, LAST + 1), LAST + 2, LAST + 3)

    expected = run(opened(tmp_path / "expected", after), 0, LAST + 3)
    assert shown(target) == shown(expected)
