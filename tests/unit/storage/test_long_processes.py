"""A process that has a pipeline open for long, of which others make something else meanwhile.

It goes on from what is there by then, in a store as in a directory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.artifact.deployment import write_deployment
from hydro_core.errors import DataError
from hydro_core.spark.pipeline.copies import verify
from hydro_core.storage.remote import DataPlace
from tests.support.refused import Refused
from tests.support.store_server import StoreServer
from tests.unit.storage.test_copies_in_a_store import copied, put_back
from tests.unit.storage.test_corrections_in_a_store import LAST, correct, opened, served, tick
from tests.unit.storage.trials import (
    DEPLOYMENTS,
    PROGRAM,
    compacted,
    contents,
    corrected,
    deployed,
    next_tick,
    rolled_back,
    serving,
)


@pytest.fixture(params=["directory", "store"])
def place(request: pytest.FixtureRequest, server: StoreServer, tmp_path: Path) -> DataPlace:
    of_store = request.param == "store"
    return server.at("pipelines/small") if of_store else tmp_path / "pipelines" / "small"


def test_tables_that_were_made_anew_are_read_anew(place: DataPlace) -> None:
    """They are at the version at which it knows those that are gone."""
    served(place)
    write_deployment(place, DEPLOYMENTS[PROGRAM])
    deployed(place)
    long = serving(place)
    tick(long, LAST + 1, "long")
    was = long.store.tables["outputs/each"].version
    rolled_back(place)
    compacted(place)
    deployed(place)
    next_tick(place)
    now = serving(place)
    now.store.check(now.ledger.refresh())
    assert now.store.tables["outputs/each"].version == was
    long.store.check(long.ledger.refresh())
    for table in long.store.tables.values():
        assert table.files() == now.store.tables[table.spec.name].files()
    tick(long, LAST + 3, "long")
    assert verify(place).problems == ()
    assert "long" in str(contents(place))


def restored(copy: DataPlace, place: DataPlace) -> None:
    put_back(copy, place)


def test_what_was_restored_is_corrected(place: DataPlace, tmp_path: Path) -> None:
    """By the process that knows it as it was before, as by any other."""
    copy = copied(served(place), tmp_path / "copy")
    long = opened(place)
    tick(long, LAST + 1, "lost")
    correct(long, 1)
    restored(copy, place)
    correct(long, 2)
    assert verify(place).problems == ()
    other = served(tmp_path / "other")
    corrected(other)
    assert contents(place) == contents(other)
    tick(long, LAST + 1, "next")
    next_tick(other)
    assert contents(place) == contents(other)
    assert verify(place).problems == ()


def test_a_pipeline_whose_state_is_elsewhere_by_now_is_refused(
    place: DataPlace, refused: Refused
) -> None:
    """The same program serves, but another one has served in between."""
    from dataclasses import replace

    served(place)
    long = opened(place)
    last = long.ledger.refresh()
    assert last is not None
    moved = {name.replace("state/x", "state/y"): r for name, r in last.tables.items()}
    with long.lock:
        opened(place).ledger.append(replace(last, sequence=last.sequence + 1, tables=moved))
    with refused(DataError, "state"):
        long.prepare(LAST + 1, LAST + 1, {})
    with refused(DataError, "state"):
        long.compact()
