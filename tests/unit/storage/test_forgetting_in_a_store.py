"""A person is forgotten in a store: at whatever request it ends, a further run gives the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hydro_core.errors import HydroError, TransientError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.spark.pipeline.copies import copy_pipeline, hashes_of, restore_pipeline, verify
from hydro_core.spark.pipeline.forgetting import erase
from hydro_core.storage.places import files_in
from hydro_core.storage.remote import DataPlace
from tests.support.refused import Refused
from tests.support.store_server import StoreServer, refused_from
from tests.unit.storage.test_commits_in_a_store import run_out
from tests.unit.storage.test_corrections_in_a_store import (
    LAST,
    contents,
    correct,
    opened,
    served,
    tick,
)

PERSON = "first2"
"""Who has rows of one tick, in all tables."""


def forget(place: DataPlace) -> None:
    """As the command does it, without what has landed."""
    pipeline = opened(place)
    with faults_as_errors(f"the pipeline in {place}"), pipeline.lock.at_work("a deletion of rows"):
        if PERSON in str(contents(place)):
            correct(pipeline, 2)
        erase(pipeline)


def having(place: DataPlace) -> Sequence[str]:
    """The files that have the value, read as what they are, and as bytes."""
    found = []
    for file in files_in(place):
        content = file.read_bytes()
        rows = pq.ParquetFile(BytesIO(content)).read() if file.suffix == ".parquet" else None
        if PERSON.encode() in content or (rows is not None and PERSON in str(rows.to_pylist())):
            found.append(str(file))
    return found


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """What a directory has after it."""
    place = served(tmp_path_factory.mktemp("here") / "pipeline")
    forget(place)
    assert having(place) == []
    return contents(place)


def test_it_leaves_what_a_directory_has(
    server: StoreServer, without: Mapping[str, list[str]]
) -> None:
    place = served(server.at("pipelines/small"))
    assert having(place)
    forget(place)
    assert contents(place) == without
    assert having(place) == []
    assert verify(place).problems == ()
    tick(opened(place), LAST + 1, "next")
    assert verify(place).problems == ()


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "done and refused"])
@pytest.mark.parametrize("at", [60, pytest.param(0, marks=pytest.mark.slow)])
def test_cut_off_at_a_request_it_is_ended_by_the_next(
    server: StoreServer, without: Mapping[str, list[str]], at: int, lost: bool
) -> None:
    before: Mapping[str, list[str]] = {}
    for first_failing in range(1 + lost, 600, 3) if at == 0 else (at,):
        place = server.at(f"pipelines/{lost}/{first_failing}")
        served(place)
        before = before or contents(place)
        with server.failing(refused_from(first_failing, lost=lost)), suppress(HydroError):
            forget(place)
        asked = len(server.asked)
        run_out(server, place)
        opened(place).store.check(opened(place).ledger.refresh())
        assert contents(place) in (before, without), first_failing
        forget(place)
        assert contents(place) == without, first_failing
        assert having(place) == [], first_failing
        assert verify(place).problems == (), first_failing
        if asked < first_failing:
            return
    assert at


def test_what_an_older_copy_brings_back_is_forgotten_again(
    server: StoreServer, tmp_path: Path, without: Mapping[str, list[str]]
) -> None:
    """A copy that was made before has the person still; nothing of it stays in the store."""
    place = server.at("pipelines/small")
    assert copy_pipeline(served(place), tmp_path / "copy").problems == ()
    before = contents(place)
    forget(place)
    restore_pipeline(tmp_path / "copy", hashes_of(tmp_path / "copy"), place)
    assert contents(place) == before
    forget(place)
    assert contents(place) == without
    assert having(place) == []
    assert verify(place).problems == ()
    tick(opened(place), LAST + 1, "next")
    assert verify(place).problems == ()


def test_who_was_taken_over_from_removes_nothing(
    server: StoreServer, tmp_path: Path, refused: Refused
) -> None:
    """Another has committed rows that the first, which stood still, does not know of."""
    place = served(server.at("pipelines/small"))
    pipeline = opened(place)

    def another(name: str) -> None:
        if name == "dropped what is retired":
            run_out(server, server.at("pipelines/small"))
            tick(opened(place), LAST + 1, "next")

    pipeline.step = another
    with (
        refused(TransientError, "state"),
        pipeline.lock.at_work("a deletion of rows"),
    ):
        erase(pipeline)
    assert verify(place).problems == ()
    assert opened(place).ledger.last_tick == LAST + 1
