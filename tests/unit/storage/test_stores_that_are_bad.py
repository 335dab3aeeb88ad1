"""What a pipeline meets in stores that are not as they should be: it waits, or says what is wrong,
and what was committed stands.
"""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from hydro_core.cli import main
from hydro_core.errors import InfrastructureError
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.storage.delta import created_table
from hydro_core.storage.places import are_there, matching
from tests.support.refused import Refused
from tests.support.store_server import Fault, StoreServer
from tests.unit.storage.test_commits_in_a_store import Small, expected
from tests.unit.storage.test_corrections_in_a_store import (
    LAST,
    contents,
    correct,
    opened,
    served,
    tick,
)
from tests.unit.storage.test_forgetting_in_a_store import PERSON, forget, having


def no_deleting(_: int, method: str, path: str) -> tuple[int, str] | None:
    gone = method == "DELETE" or (method == "POST" and "delete" in path)
    return (403, "AccessDenied") if gone else None


def busy_for(seconds: float, status: int) -> Fault:
    until = time.monotonic() + seconds
    return lambda *_: (status, "SlowDown") if time.monotonic() < until else None


@pytest.mark.parametrize("status", [503, 429])
def test_a_store_that_is_busy_for_a_while_is_waited_for(server: StoreServer, status: int) -> None:
    small = Small(server.at("pipelines/small"))
    small.tick(0)
    with server.failing(busy_for(1.5, status)):
        small.tick(1)
    assert small.contents == expected(2)


@pytest.mark.slow
def test_a_store_that_is_busy_for_a_minute_is_waited_for(server: StoreServer) -> None:
    """Longer than a lease lasts: nobody else has taken it."""
    from dataclasses import replace

    from hydro_core.storage.remote import remote_at

    patient = replace(server.settings, patience=150)
    small = Small(remote_at("s3://landing/pipelines/small", patient))
    small.tick(0)
    with server.failing(busy_for(62, 503)):
        small.tick(1)
    assert small.contents == expected(2)


def test_ticks_need_no_right_to_remove(server: StoreServer) -> None:
    small = Small(server.at("pipelines/small"))
    with server.failing(no_deleting):
        for number in range(12):
            small.tick(number)
    assert small.contents == expected(12)


def test_a_correction_without_the_right_to_remove(server: StoreServer, refused: Refused) -> None:
    """It is done; the next one says what is in its way."""
    place = served(server.at("pipelines/small"))
    before = contents(place)
    with server.failing(no_deleting):
        correct(opened(place), 2)
        corrected = contents(place)
        assert corrected != before
        with refused(InfrastructureError, "config"):
            correct(opened(place), 1)
        tick(opened(place), LAST + 1, "next")
    assert verify(place).problems == ()
    correct(opened(place), 1)
    assert verify(place).problems == ()


def test_forgetting_without_the_right_to_remove(server: StoreServer, refused: Refused) -> None:
    """It is not said to be done."""
    place = served(server.at("pipelines/small"))
    with server.failing(no_deleting), refused(InfrastructureError, "config"):
        forget(place)
    assert PERSON not in str(contents(place))
    assert having(place)
    assert verify(place).problems == ()
    forget(place)
    assert having(place) == []


def test_compaction_without_the_right_to_remove(server: StoreServer, refused: Refused) -> None:
    place = served(server.at("pipelines/small"))
    before = contents(place)
    with server.failing(no_deleting), refused(InfrastructureError, "config"):
        opened(place).compact(0)
    assert contents(place) == before
    assert verify(place).problems == ()
    tick(opened(place), LAST + 1, "next")
    opened(place).compact(0)
    assert verify(place).problems == ()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((403, "RequestTimeTooSkewed"), "the clock of this machine is not the store's"),
        ((403, "SignatureDoesNotMatch"), "the credentials are not those of anybody it knows"),
        ((404, "NoSuchBucket"), "there is no bucket `landing`"),
        ((400, "ExpiredToken"), "the credentials have expired"),
    ],
)
def test_a_tick_says_what_is_wrong(
    server: StoreServer, answer: tuple[int, str], says: str, refused: Refused
) -> None:
    place = server.at("pipelines/small")
    Small(place).tick(0)
    with server.failing(lambda *_: answer), refused(InfrastructureError, "config"):
        Small(place).tick(1)
    Small(place).tick(1)
    assert Small(place).ledger.last_tick == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((403, "AccessDenied"), "/landing: these credentials have not the right to read it"),
        ((403, "RequestTimeTooSkewed"), "/landing: the clock of this machine is not the store's"),
        ((404, "NoSuchBucket"), "/landing: there is no bucket `landing`"),
    ],
)
def test_a_command_says_what_is_wrong_where_nobody_says_a_place(
    server: StoreServer,
    answer: tuple[int, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, columns = server.at("pipelines/small"), pa.schema([("v", pa.int64())])
    monkeypatch.setattr(main, "run_command", lambda _: created_table(place, columns).version())
    with server.failing(lambda *_: answer):
        assert main.main(["restore"]) == 1
    said = capsys.readouterr().err
    assert said.splitlines()[0] == f"error[config]: {server.url}{says}"
    assert "list-type" not in said


def test_a_hundred_thousand_files_are_listed(server: StoreServer) -> None:
    """A request for each thousand, of those alone that are below the fixed part of a pattern."""
    server.hold({f"landing/{n % 10}/{n:07}.csv": b"a,b\n" for n in range(100_000)})
    place = server.at("landing")
    server.asked.clear()
    began = time.process_time()
    assert sum(1 for _ in place.files()) == 100_000
    # A page that takes long on a busy machine is asked for again.
    assert len(set(server.asked)) == 100
    server.asked.clear()
    assert sum(1 for _ in matching(place / "3" / "*.csv")) == 10_000
    assert len(set(server.asked)) == 10
    server.asked.clear()
    assert are_there([place / "3" / "0000003.csv"])
    assert not are_there([place / "3" / "0000004.csv"])
    assert time.process_time() - began < 30
    # What a pipeline beside them asks does not grow with them.
    small = Small(server.at("pipelines/small"))
    small.tick(0)
    server.asked.clear()
    small.tick(1)
    assert len(server.asked) < 100
    assert Ledger(server.at("pipelines/small")).last_tick == 1
