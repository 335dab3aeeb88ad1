"""Pipelines copied from place to place and put back: whole or not at all, whatever a store says.

What runs ticks is left out: the rows of a tick are given to the tables as a tick would give them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePath

import pytest

from hydro_core.artifact.files import name_at, numbers, read, write
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import HydroError, TransientError
from hydro_core.optimize.optimizer import optimize
from hydro_core.spark.pipeline.copy import copy_into
from hydro_core.spark.pipeline.put_back import PutBack
from hydro_core.spark.pipeline.verify import verify
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.storage.places import files_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote, name_below
from hydrotick.copies.note import CopyNote, begin_note, note_in, write_note
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
    assert copy_into(source, to).problems == ()
    return to


def put_back(source: DataPlace, to: Remote) -> None:
    with PutBack(source, to) as work:
        work.prepare()
        work.commit()
        work.settle()


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
    if isinstance(there, Remote):
        put_back(copied(first, tmp_path / "between"), there)
    else:
        copied(first, there)
    assert contents(there) == contents(first)
    assert goes_on(there) == gone_on == goes_on(first)


def test_deployments_are_read_wherever_they_were_written(
    server: StoreServer, tmp_path: Path
) -> None:
    typed = compile_text(PROGRAM).typed
    made = [deployment_of(name, typed, optimize(typed)) for name in ("one", "two", "three")]
    first, place = served(tmp_path / "first"), served(server.at("pipelines/small"))
    for one in made[:2]:
        write(first, one)
    write(place, made[2])
    write(place, made[1])
    put_back(copied(first, server.at("copies/first")), place)
    # Those that it had keep their numbers.
    assert [read(place, n).flow for n in numbers(place)] == ["three", "two", "one"]
    back = copied(place, tmp_path / "back")
    assert [name_at(back, n) for n in numbers(back)] == [name_at(place, n) for n in numbers(place)]
    assert [read(back, n) for n in numbers(back)] == [read(place, n) for n in numbers(place)]


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
        last = Ledger(place).last
        assert (contents(place) if last else {}) in (before, after), first_failing
        put_back(copy, place)
        assert contents(place) == after, first_failing
        assert verify(place).problems == (), first_failing
        if asked < first_failing:
            return
    assert at > 0


def test_who_was_taken_over_from_puts_nothing_back(
    server: StoreServer, tmp_path: Path, refused: Refused
) -> None:
    place = server.at("pipelines/small")
    copy = copied(served(place), tmp_path / "copy")
    same(place)

    def other(name: str) -> None:
        if name == "_ledger":
            run_out(server, place)
            tick(opened(place), LAST + 2, "next")

    with PutBack(copy, place, other) as work:
        work.prepare()
        with refused(TransientError, "state"):
            work.commit()
    assert Ledger(place).last_tick == LAST + 2
    assert verify(place).problems == ()


NOTED = CopyNote("20260101T000000.000000Z", "2026-01-01", {"small": "2026-01-01"}, (), False, {})


def test_of_two_who_copy_to_one_place_one_does(server: StoreServer, refused: Refused) -> None:
    to = server.at("copies/shop")
    first = begin_note(to, "20260101T000000.000000Z")
    assert note_in(to) is None
    second = begin_note(to, "20260101T000001.000000Z")
    with refused(TransientError, "state"):
        write_note(to, NOTED, first)
    write_note(to, NOTED, second)
    found = note_in(to)
    assert found is not None
    assert found.moment == NOTED.moment
    # What is begun leaves the copy that is there.
    begin_note(to, "20260101T000002.000000Z")
    assert note_in(to) == found


def test_an_answer_that_gets_lost_is_known_again(server: StoreServer) -> None:
    to = server.at("copies/shop")
    with server.failing(lambda number, *_: (503, "SlowDown", True) if number == 2 else None):
        begun = begin_note(to, "20260101T000000.000000Z")
    with server.failing(lambda number, *_: (503, "SlowDown", True) if number == 1 else None):
        write_note(to, NOTED, begun)
    assert note_in(to) is not None


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
