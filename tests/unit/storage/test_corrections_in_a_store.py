"""Ticks computed again in a store: they take the place of those that serve, or nothing happened.

What runs ticks is left out: the rows of a tick are given to the tables as a tick would give them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.compile import compile_text
from hydro_core.errors import HydroError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import STAGING, correction
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.storage.lease import LeaseFile
from hydro_core.storage.remote import DataPlace, RemotePath
from tests.support.store_server import StoreServer, refused_from

PROGRAM = 'x = source("k string")\nx -> persist() -> all\nx -> delta() -> now\n'
NO_SPARK: Any = object()
NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAST = 3


def opened(place: DataPlace) -> Pipeline:
    return Pipeline(place, plan(compile_text(PROGRAM).typed), spark=NO_SPARK)


def tick(pipeline: Pipeline, number: int, says: str) -> None:
    """Commits a tick whose rows say so."""
    with pipeline.lock:
        last = pipeline.ledger.refresh()
        pipeline.ledger.create()
        pipeline.store.recover(last)
        written = {}
        for spec in pipeline.tables:
            names = [field.name for field in spec.arrow_schema]
            of = {names[0]: [number] * 2}
            of |= {name: [f"{says}{number}", "x"] for name in names if name != spec.tick}
            known = {
                field.name: _filled(field.type, of[field.name], number)
                for field in spec.arrow_schema
            }
            rows = pa.table(known).cast(spec.arrow_schema)
            written[spec.name] = WrittenRows(spec, 2, rows)
        versions = pipeline.store.commit(written, (number, number), lambda _: None)
        pipeline.ledger.append(
            Commit(
                0 if last is None else last.sequence + 1,
                number,
                number,
                pipeline.fingerprint,
                versions,
                {spec.name: 2 for spec in pipeline.tables},
                started=datetime.now(UTC),
                committed=NOW,
                tables={spec.name: spec.record() for spec in pipeline.tables},
            )
        )


def _filled(of: pa.DataType, said: list[Any], number: int) -> list[Any]:
    if pa.types.is_struct(of):
        return [{of.field(0).name: text} for text in said]
    return [number] * len(said) if pa.types.is_integer(of) else said


def correct(pipeline: Pipeline, first: int) -> None:
    told = faults_as_errors(f"the pipeline in {pipeline.directory}")
    with told, correction(pipeline, first) as rework:
        for number in range(rework.first, rework.last + 1):
            tick(rework.staging, number, "again")
        rework.replace()


def contents(place: DataPlace) -> dict[str, list[str]]:
    pipeline = opened(place)
    commit = pipeline.ledger.refresh()
    assert commit is not None
    pipeline.store.check(commit)
    found = {}
    for spec in pipeline.tables:
        rows = pipeline.store.arrow(spec.name, 0, commit.last)
        found[spec.name] = sorted(map(repr, rows.to_pylist()))
    return found


def served(place: DataPlace) -> DataPlace:
    pipeline = opened(place)
    for number in range(LAST + 1):
        tick(pipeline, number, "first")
    return place


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a directory has after the correction."""
    place = served(tmp_path_factory.mktemp("here") / "pipeline")
    correct(opened(place), 2)
    return contents(place)


def run_out(place: RemotePath) -> None:
    """The process has ended, so whoever comes next need not wait."""
    file = LeaseFile(place.store, f"{place.key}/{LOCK_FILE}")
    note = file.look()
    if note is not None and note.owner:
        file.store.write(file.name, replace(note, until=0.0).encoded())


@pytest.mark.parametrize("of", ["quick_server", "moto_server"])
def test_ticks_are_computed_again(
    request: pytest.FixtureRequest, corrected: dict[str, list[str]], of: str
) -> None:
    place = served(request.getfixturevalue(of).at("pipelines/small"))
    assert isinstance(place, RemotePath)
    assert contents(place) != corrected
    correct(opened(place), 2)
    assert contents(place) == corrected
    assert verify(place).problems == ()
    assert not (place / STAGING).is_dir()
    # Ticks go on from there.
    tick(opened(place), LAST + 1, "next")
    assert verify(place).problems == ()


@pytest.mark.parametrize("at", [90, pytest.param(0, marks=pytest.mark.slow)])
def test_a_store_that_fails_leaves_what_was_or_all_of_it(
    server: StoreServer, corrected: dict[str, list[str]], at: int
) -> None:
    place = served(server.at("pipelines/small"))
    assert isinstance(place, RemotePath)
    before = contents(place)
    for first_failing in range(1, 400, 3) if at == 0 else (at,):
        failing = server.failing(refused_from(first_failing))
        with failing, suppress(HydroError):
            correct(opened(place), 2)
        run_out(place)
        assert contents(place) in (before, corrected), first_failing
        if contents(place) == corrected:
            break
    correct(opened(place), 2)
    assert contents(place) == corrected
    assert verify(place).problems == ()


def test_a_directory_is_as_it_was(tmp_path: Path, corrected: dict[str, list[str]]) -> None:
    place = served(tmp_path / "pipeline")
    correct(opened(place), 2)
    assert contents(place) == corrected
    assert verify(place).problems == ()
