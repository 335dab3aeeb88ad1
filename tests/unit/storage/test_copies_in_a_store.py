"""Pipelines copied from place to place and put back: whole or not at all, whatever a store says.

What runs ticks is left out: the rows of a tick are given to the tables as a tick would give them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePath

import pytest

from hydro_core.artifact.deployment import (
    deployment_numbers,
    name_at,
    read_deployment,
    write_deployment,
)
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import HydroError, TransientError
from hydro_core.optimize.optimizer import optimize
from hydro_core.spark.pipeline import copies as copying
from hydro_core.spark.pipeline.copies import copy_pipeline, hashes_of, restore_pipeline, verify
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.storage.places import files_in, remove_tree
from hydro_core.storage.remote import DataPlace, name_below
from tests.support.refused import Refused
from tests.support.store_server import StoreServer, refused_from
from tests.unit.storage.test_commits_in_a_store import run_out
from tests.unit.storage.test_corrections_in_a_store import (
    LAST,
    PROGRAM,
    contents,
    correct,
    opened,
    served,
    tick,
)

KINDS = ["directory", "store"]


def place_of(kind: str, server: StoreServer, tmp_path: Path, name: str) -> DataPlace:
    return tmp_path / name if kind == "directory" else server.at(f"pipelines/{name}")


def copied(source: DataPlace, to: DataPlace) -> DataPlace:
    assert copy_pipeline(source, to).problems == ()
    return to


def put_back(source: DataPlace, to: DataPlace) -> None:
    restore_pipeline(source, hashes_of(source), to)


def goes_on(place: DataPlace) -> Mapping[str, list[str]]:
    """What it has after a further tick and a correction."""
    assert verify(place).problems == ()
    tick(opened(place), LAST + 1, "next")
    correct(opened(place), 2)
    assert verify(place).problems == ()
    return contents(place)


@pytest.fixture(scope="module")
def gone_on(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """What one has that was never copied."""
    return goes_on(served(tmp_path_factory.mktemp("here") / "pipeline"))


def same(place: DataPlace) -> DataPlace:
    """What serves goes on from what was copied."""
    tick(opened(place), LAST + 1, "lost")
    correct(opened(place), 1)
    opened(place).compact(0)
    return place


def another(place: DataPlace) -> DataPlace:
    """Another pipeline is in its place."""
    remove_tree(place)
    for number in range(LAST + 3):
        tick(opened(place), number, "other")
    return place


def nothing(place: DataPlace) -> DataPlace:
    """It is lost."""
    remove_tree(place)
    return place


SINCE: list[Callable[[DataPlace], DataPlace]] = [same, another, nothing]


WAYS = [
    ("directory", same),
    ("store", another),
    *(
        pytest.param(kind, since, marks=pytest.mark.slow)
        for kind in KINDS
        for since in SINCE
        if (kind, since) not in (("directory", same), ("store", another))
    ),
]


@pytest.mark.parametrize(("by_way_of", "since"), WAYS)
def test_what_is_put_back_goes_on(
    server: StoreServer,
    tmp_path: Path,
    gone_on: Mapping[str, list[str]],
    by_way_of: str,
    since: Callable[[DataPlace], DataPlace],
) -> None:
    place = server.at("pipelines/small")
    before = contents(served(place))
    copy = copied(place, place_of(by_way_of, server, tmp_path, "copy"))
    assert contents(copy) == before
    since(place)
    serving = opened(place)
    serving.ledger.refresh()
    put_back(copy, place)
    # Who has the pipeline open sees what is there now.
    assert serving.ledger.refresh() == Ledger(place).last
    assert contents(place) == before
    assert [c.sequence for c in Ledger(place).commits()] == list(range(LAST + 1))
    # Nothing is changed by doing it again.
    put_back(copy, place)
    assert contents(place) == before
    assert goes_on(place) == gone_on


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("directory", "store"),
        ("store", "directory"),
        pytest.param("store", "store", marks=pytest.mark.slow),
    ],
)
def test_a_pipeline_moves(
    server: StoreServer, tmp_path: Path, gone_on: Mapping[str, list[str]], source: str, to: str
) -> None:
    """From a directory to a store, back, and to another one, with a log that was summed up."""
    first = served(place_of(source, server, tmp_path, "first"))
    opened(first).compact()
    there = place_of(to, server, tmp_path, "second")
    put_back(copied(first, tmp_path / "between"), there)
    assert contents(there) == contents(first)
    assert goes_on(there) == gone_on == goes_on(first)


def test_deployments_are_read_wherever_they_were_written(
    server: StoreServer, tmp_path: Path
) -> None:
    typed = compile_text(PROGRAM).typed
    made = [deployment_of(name, typed, optimize(typed)) for name in ("one", "two", "three")]
    first, place = served(tmp_path / "first"), served(server.at("pipelines/small"))
    for one in made[:2]:
        write_deployment(first, one)
    write_deployment(place, made[2])
    write_deployment(place, made[1])
    put_back(copied(first, server.at("copies/first")), place)
    assert [read_deployment(place, n).flow for n in deployment_numbers(place)] == ["one", "two"]
    back = copied(place, tmp_path / "back")
    assert [name_at(back, n) for n in deployment_numbers(back)] == [
        name_at(place, n) for n in deployment_numbers(place)
    ]
    assert [read_deployment(back, n) for n in deployment_numbers(back)] == [
        read_deployment(place, n) for n in deployment_numbers(place)
    ]


def test_a_table_that_the_copy_does_not_know_is_gone(server: StoreServer, tmp_path: Path) -> None:
    place = server.at("pipelines/small")
    copy = copied(served(place), tmp_path / "copy")
    for name in ("state/later-1", "outputs/later"):
        (place / name / "_delta_log" / "0.json").write_bytes(b"{}")
    put_back(copy, place)
    assert not (place / "state" / "later-1").is_dir()
    assert not (place / "outputs" / "later").is_dir()


CUT_OFF = [
    (70, same, False),
    (90, another, True),
    # A sixth of all requests each, from another one on: in all it is every request.
    *(
        pytest.param(-first, since, lost, marks=pytest.mark.slow)
        for first, (since, lost) in enumerate(product(SINCE, (False, True)), 1)
    ),
]


@pytest.mark.parametrize(("at", "since", "lost"), CUT_OFF)
def test_cut_off_at_a_request_it_is_ended_by_the_next(
    server: StoreServer,
    tmp_path: Path,
    at: int,
    since: Callable[[DataPlace], DataPlace],
    lost: bool,
) -> None:
    template = server.at("pipelines/template")
    after = contents(served(template))
    copy = copied(template, tmp_path / "copy")
    for first_failing in range(-at, 600, 6) if at < 0 else (at,):
        place = server.at(f"pipelines/{first_failing}")
        put_back(copy, place)
        since(place)
        before = contents(place) if Ledger(place).last else {}
        with server.failing(refused_from(first_failing, lost=lost)), suppress(HydroError):
            put_back(copy, place)
        asked = len(server.asked)
        run_out(server, place)
        if Ledger(place).last is not None:
            assert contents(place) in (before, after), first_failing
        put_back(copy, place)
        assert contents(place) == after, first_failing
        assert verify(place).problems == (), first_failing
        if asked < first_failing:
            return
    assert at > 0


def test_a_writer_that_was_taken_over_from_restores_nothing(
    server: StoreServer, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = server.at("pipelines/small")
    copy = copied(served(place), tmp_path / "copy")
    same(place)
    carry, overtakers = copying.carry, list[WriterLock]()

    def overtaken(file: DataPlace, to: DataPlace) -> None:
        if not overtakers:
            run_out(server, place)
            overtakers.append(WriterLock(place))
            overtakers[0].acquire()
        carry(file, to)

    with monkeypatch.context() as patched, refused(TransientError, "state"):
        patched.setattr(copying, "carry", overtaken)
        put_back(copy, place)
    overtakers[0].release()
    # No tick runs on what it has left: there is no ledger until somebody restores it.
    assert not Ledger(place).exists
    put_back(copy, place)
    assert verify(place).problems == ()


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_gone_are_not_made(server: StoreServer, tmp_path: Path, kind: str) -> None:
    """The log names them still."""
    place = served(place_of(kind, server, tmp_path, "first"))
    opened(place).compact(0)
    there = {PurePath(name_below(f, place)).as_posix() for f in files_in(place)}
    to = copied(place, tmp_path / "copy")
    found = {PurePath(name_below(f, to)).as_posix() for f in files_in(to)}
    assert found == there - {"_lock"}
    assert all(file.stat().st_size for file in files_in(to))


def test_a_ledger_comes_back_with_all_its_rows_or_not_at_all(
    server: StoreServer, tmp_path: Path
) -> None:
    """An empty one would say that nothing was ever committed, and tick 0 would run."""
    place = server.at("pipelines/small")
    copy = copied(served(place), tmp_path / "copy")
    no_rows = (403, "AccessDenied")
    failing = server.failing(
        lambda _, method, path: no_rows if method == "PUT" and "/_ledger/part-" in path else None
    )
    with failing, suppress(HydroError):
        put_back(copy, place)
    assert not Ledger(place).exists
    put_back(copy, place)
    assert verify(place).problems == ()
