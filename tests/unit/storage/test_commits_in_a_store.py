"""Ticks in a store: whatever a request of one comes to, a further run gives what all would have.

A tick here is what a pipeline does of it once its rows are there: the right to write, the tables
where the last commit left them, rows appended, the ledger's row. At every request of one the store
fails, or does it and says that it failed, or another writer takes over and runs the tick.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import median

import pyarrow as pa
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.errors import Diagnostic, HydroError, InfrastructureError, TransientError
from hydro_core.files.parquet import write_parquet_file
from hydro_core.machine.faults import faults_as_errors
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.delta.table import STAGED
from hydro_core.spark.store.delta.write import WrittenRows
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.spark.store.ledger.records import Commit
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.store import Store
from hydro_core.storage.delta import entry_of
from hydro_core.storage.lease import LeaseFile
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused
from tests.support.store_server import SECRET, StoreServer

SPECS = [
    TableSpec(f"outputs/{n}", "output", n, parse_ddl("k string"), False, mode, Kind.E, "")
    for n, mode in (("a", Form.GROWTH), ("now", Form.VALUES))
]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@dataclass
class Small:
    """The stored side of a pipeline."""

    place: DataPlace
    large: bool = False
    """Whether its rows come as files, which executors have written beside."""
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(self.place, SPECS, checkpoint_interval=10, compact_every=8)
        self.ledger = Ledger(self.place, self.store.forget)
        self.lock = self.ledger.lock

    @property
    def next(self) -> int:
        self.ledger.refresh()
        return 0 if self.ledger.last_tick is None else self.ledger.last_tick + 1

    def tick(self, tick: int) -> None:
        with faults_as_errors(f"the pipeline in {self.place}"), self.lock:
            if self.next != tick:
                raise TransientError(Diagnostic("state", "it is done", help=""))
            last = self.ledger.last
            self.ledger.create()
            self.store.check(last)
            self.store.recover(last)
            written = {spec.name: self.written(spec, tick) for spec in SPECS}
            versions = self.store.commit(written, (tick, tick), lambda _: None)
            sequence = 0 if last is None else last.sequence + 1
            records = {spec.name: spec.record() for spec in SPECS}
            self.ledger.append(
                Commit(
                    sequence,
                    tick,
                    tick,
                    "p",
                    versions,
                    {},
                    started=datetime.now(UTC),
                    committed=NOW,
                    tables=records,
                )
            )

    def written(self, spec: TableSpec, tick: int) -> WrittenRows:
        """The rows of a table that the tick adds."""
        found = rows(spec, tick)
        if not self.large:
            return WrittenRows(spec, 2, found)
        staged = self.place / spec.name / STAGED / f"{tick}-{tick}-{uuid.uuid4().hex[:12]}"
        files = tuple(staged / f"part-{n}.parquet" for n in range(2))
        for n, file in enumerate(files):
            write_parquet_file(found.slice(n, 1), file)
        return WrittenRows(spec, 2, None, files)

    @property
    def contents(self) -> dict[str, list[tuple[int, str]]]:
        found, last = {}, self.next - 1
        commit = self.ledger.last
        for spec in SPECS:
            assert commit is not None
            self.store.tables[spec.name].look_at(commit.versions[spec.name])
            table = self.store.arrow(spec.name, 0, last)
            found[spec.name] = sorted(
                zip(*(table[n].to_pylist() for n in table.column_names), strict=True)
            )
        self.store.forget()
        return found


def rows(spec: TableSpec, tick: int) -> pa.Table:
    table = pa.table({spec.tick: [tick] * 2, "k": [f"{spec.of}{tick}", "x"]})
    return table.cast(spec.arrow_schema)


def expected(ticks: int) -> dict[str, list[tuple[int, str]]]:
    """What there is after so many ticks, each of which ran once."""
    return {
        spec.name: sorted(
            (tick, key)
            for tick in range(ticks)
            if spec.form is Form.GROWTH or tick == ticks - 1
            for key in (f"{spec.of}{tick}", "x")
        )
        for spec in SPECS
    }


def run_out(server: StoreServer, place: RemotePath) -> None:
    """The lease runs out now, whoever has it."""
    file = LeaseFile(place.store, str(place.key) + f"/{LOCK_FILE}")
    note = file.look()
    if note is not None and note.owner:
        content = file.store.read(file.name).replace(str(note.until).encode(), b"0.0")
        file.store.write(file.name, content)


Fault = Callable[[StoreServer, RemotePath, int], tuple[int, str] | tuple[int, str, bool] | None]


def refuses(server: StoreServer, place: RemotePath, tick: int) -> tuple[int, str]:
    return 403, "AccessDenied"


def does_and_refuses(server: StoreServer, place: RemotePath, tick: int) -> tuple[int, str, bool]:
    return 403, "AccessDenied", True


def does_it_twice(server: StoreServer, place: RemotePath, tick: int) -> tuple[int, str, bool]:
    return 503, "SlowDown", True


def another_takes_over(server: StoreServer, place: RemotePath, tick: int) -> None:
    run_out(server, place)
    with suppress(TransientError):
        other = Small(place)
        if other.next == tick:
            other.tick(tick)


def another_removes_what_is_old(server: StoreServer, place: RemotePath, tick: int) -> None:
    """It takes over, commits, and what it knows nothing of goes."""
    another_takes_over(server, place, tick)
    with suppress(TransientError):
        other = Small(place)
        with other.lock:
            other.store.recover(other.ledger.refresh())
            other.store.vacuum(0, lambda _: None)
            assert other.ledger.last is not None
            # As a compaction notes where the tables are then.
            versions = {name: table.version for name, table in other.store.tables.items()}
            last = other.ledger.last
            noted = replace(last, sequence=last.sequence + 1, first=last.last + 1, rows={})
            other.ledger.append(replace(noted, versions=versions))


FAULTS: list[Fault] = [refuses, does_and_refuses, does_it_twice, another_takes_over]


def interrupted(
    server: StoreServer, place: RemotePath, fault: Fault, at: int, *, large: bool = False
) -> bool:
    """Runs the next tick of which a request fails, and then again; gives whether it had so many."""
    small = Small(place, large)
    tick = small.next
    hit: list[int] = []

    def of(number: int, *_: str) -> tuple[int, str] | tuple[int, str, bool] | None:
        if hit or number < at:
            return None
        hit.append(number)
        return fault(server, place, tick)

    with server.failing(of), suppress(HydroError):
        small.tick(tick)
    # The process has ended, so whoever comes next need not wait.
    run_out(server, place)
    again = Small(place, large)
    for missing in range(again.next, tick + 1):
        again.tick(missing)
    assert again.contents == expected(tick + 1), (fault.__name__, at)
    # Every row of the ledger is of the tick after that before it.
    ticks = [commit.last for commit in again.ledger.commits() if commit.ticks]
    assert ticks == list(range(tick + 1)), (fault.__name__, at)
    return bool(hit)


def test_at_some_requests_of_a_tick_one_thing_goes_wrong(server: StoreServer) -> None:
    place = server.at("pipelines/small")
    for at in (6, 13, 20, 27):
        assert interrupted(server, place, FAULTS[at % len(FAULTS)], at)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_at_every_request_of_a_tick_everything_goes_wrong(
    server: StoreServer, fault: Fault
) -> None:
    place, at = server.at("pipelines/small"), 1
    while interrupted(server, place, fault, at):
        at += 1
    assert at > 25


OF_LARGE = [another_takes_over, another_removes_what_is_old, does_and_refuses]


@pytest.mark.parametrize("fault", OF_LARGE, ids=lambda f: f.__name__)
def test_at_some_requests_of_a_tick_of_many_rows(server: StoreServer, fault: Fault) -> None:
    """While executors write, and when their files become part of the tables."""
    place = server.at("pipelines/large")
    for at in (9, 16, 23):
        assert interrupted(server, place, fault, at, large=True)


@pytest.mark.slow
@pytest.mark.parametrize("fault", OF_LARGE, ids=lambda f: f.__name__)
def test_at_every_request_of_a_tick_of_many_rows(server: StoreServer, fault: Fault) -> None:
    place, at = server.at("pipelines/large"), 1
    while interrupted(server, place, fault, at, large=True):
        at += 1
    assert at > 25


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_at_some_requests_of_the_first_tick(server: StoreServer, fault: Fault) -> None:
    for at in (9, 24):
        place = server.at(f"first/{fault.__name__}/{at}")
        interrupted(server, place, fault, at)


def test_a_warm_tick_asks_as_often_whatever_came_before(server: StoreServer) -> None:
    small = Small(server.at("pipelines/warm"))
    asked, answered = [], []
    for tick in range(51):
        server.asked.clear()
        server.sent = 0
        small.tick(tick)
        asked.append(len(server.asked))
        answered.append(server.sent)
    # After ten entries a log is summed up, and after so many files these are joined.
    early, late = sum(asked[1:11]) / 10, sum(asked[11:21]) / 10
    assert late <= 1.1 * early, asked
    assert max(asked[1:]) <= 3.2 * early, asked
    assert median(asked[41:51]) <= 1.1 * median(asked[11:21]), asked
    # No log is listed from its beginning.
    assert median(answered[41:51]) <= 1.3 * median(answered[11:21]), answered
    # Whoever opens it anew reads logs from where they were summed up last.
    server.asked.clear()
    Small(server.at("pipelines/warm")).tick(51)
    assert len(server.asked) <= 4 * early, asked


def test_who_has_lost_the_lease_commits_nothing(server: StoreServer, refused: Refused) -> None:
    place = server.at("pipelines/lost")
    first, second = Small(place), Small(place)
    first.tick(0)
    first.lock.acquire()
    first.ledger.refresh()
    run_out(server, place)
    second.lock.acquire()
    # The second has done nothing yet but to take over.
    last = first.ledger.last
    assert last is not None
    late = Commit(1, 1, 1, "p", last.versions, {}, started=NOW, committed=NOW, tables=last.tables)
    with refused(TransientError, "state"):
        first.ledger.append(late)
    # Nor does it help to look again.
    first.ledger.refresh()
    with refused(TransientError, "state"):
        first.ledger.append(late)
    second.ledger.refresh()
    second.ledger.append(late)
    second.lock.release()
    assert [commit.sequence for commit in Ledger(place).commits()] == [0, 1]


def lost_note(file: LeaseFile) -> None:
    file.store.delete([file.name])


def damaged_note(file: LeaseFile) -> None:
    file.store.write(file.name, b"no note")


@pytest.mark.parametrize("damage", [lost_note, damaged_note])
def test_who_has_lost_the_note_of_its_lease_commits_nothing(
    server: StoreServer,
    damage: Callable[[LeaseFile], None],
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = server.at(f"pipelines/{damage.__name__}")
    first, second = Small(place), Small(place)
    for tick in range(3):
        first.tick(tick)
    first.lock.acquire()
    # It looked at the ledger before the lease was lost.
    assert second.ledger.refresh() == first.ledger.refresh()
    damage(LeaseFile(place.store, f"{place.key}/{LOCK_FILE}"))
    if damage is damaged_note:
        with refused(TransientError, "state"):
            second.lock.acquire()
    with monkeypatch.context() as later:
        # As it is after the time of the lease.
        if damage is damaged_note:
            later.setattr(LeaseFile, "is_free", lambda *_: True)
        second.tick(3)
    assert second.contents == expected(4)
    last = second.ledger.last
    assert last is not None
    late = replace(last, sequence=last.sequence + 1, first=4, last=4)
    with refused(TransientError, "state"):
        first.ledger.append(late)
    # Nor does it help to look again.
    first.ledger.refresh()
    with refused(TransientError, "state"):
        first.ledger.append(late)
    first.lock.release()
    second.tick(4)
    assert second.contents == expected(5)


def test_a_number_that_was_set_back_holds_up_one_commit(
    server: StoreServer, refused: Refused
) -> None:
    place = server.at("pipelines/set_back")
    small = Small(place)
    for tick in range(3):
        small.tick(tick)
    file = LeaseFile(place.store, f"{place.key}/{LOCK_FILE}")
    note = file.look()
    assert note is not None
    file.store.write(file.name, replace(note, number=0).encoded())
    with refused(TransientError, "state"):
        small.tick(3)
    small.tick(3)
    assert small.contents == expected(4)


def test_who_looked_long_ago_takes_over(server: StoreServer, refused: Refused) -> None:
    """The fence is written to the ledger as it is, not as it was looked at."""
    place = server.at("pipelines/stale")
    first, second = Small(place), Small(place)
    first.tick(0)
    assert second.next == 1
    first.tick(1)
    first.lock.acquire()
    run_out(server, place)
    second.tick(2)
    assert second.contents == expected(3)
    # A lesser number is not written.
    with refused(TransientError, "state"):
        first.ledger.fence(1)


def test_a_commit_that_was_not_answered_cannot_come_late(server: StoreServer) -> None:
    place = server.at("pipelines/late")
    small = Small(place)
    small.tick(0)

    def lost(_: int, method: str, path: str) -> tuple[int, str] | None:
        of_ledger = f"{LEDGER}/_delta_log" in path and path.endswith(".json")
        return (403, "AccessDenied") if method == "PUT" and of_ledger else None

    with server.failing(lost), pytest.raises(InfrastructureError):
        small.tick(1)
    file = LeaseFile(place.store, f"{place.key}/{LOCK_FILE}")
    note = file.look()
    assert note is not None
    assert (note.owner, note.in_doubt) == ("", True)
    version = small.ledger.version
    late = entry_of(place / LEDGER, version + 1)
    assert isinstance(late, RemotePath)
    again = Small(place)
    with again.lock:
        # Its place is taken.
        assert late.store.write_if_absent(late.key, b"{}") is None
    note = file.look()
    assert note is not None
    assert not note.in_doubt
    again.tick(1)
    assert again.contents == expected(2)


def test_a_second_writer_is_told_who_is_at_work(server: StoreServer, refused: Refused) -> None:
    place = server.at("pipelines/two")
    first, second = Small(place), Small(place)
    first.tick(0)
    with first.lock, refused(TransientError, "state"):
        second.tick(1)
    second.tick(1)
    assert second.contents == expected(2)


def test_a_store_that_refuses_is_told_without_what_is_secret(server: StoreServer) -> None:
    small = Small(server.at("pipelines/told"))
    small.tick(0)
    path = f"{LEDGER}/_delta_log"
    with (
        server.failing(lambda _, method, at: (403, "AccessDenied") if path in at else None),
        pytest.raises(InfrastructureError) as told,
    ):
        Small(server.at("pipelines/told")).tick(1)
    assert "these credentials have not the right" in str(told.value)
    assert SECRET not in str(told.value)
