"""One writer at a time in a store, whatever the order in which requests arrive and get lost.

Writers are run request by request in every order. What they may do with a lease is judged by a
journal that has its number: a commit counts if no greater number was ever written there.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from obstore.store import MemoryStore

from hydro_core.errors import Diagnostic, InfrastructureError
from hydro_core.storage.lease import SECONDS, Lease, LeaseFile, LeaseNote
from hydro_core.storage.store import FileStore
from tests.support.store_server import StoreServer

NAME = "flow/_lease.json"
Answer = TypeVar("Answer")


def nobody(_: str) -> bool:
    return False


def memory() -> FileStore:
    return FileStore("memory://", "memory", MemoryStore())


def wanted(owner: str) -> LeaseNote:
    return LeaseNote(0, owner, 0.0, False, {}, owner)


class Turns:
    """Threads that go on one request at a time, each when it is its turn."""

    def __init__(self, order: Sequence[int], actors: int) -> None:
        self._order, self._left = list(order), set(range(actors))
        self._turn = threading.Condition()

    def wait(self, actor: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._next() == actor, timeout=20)
            if self._order:
                self._order.pop(0)

    def done(self, actor: int) -> None:
        with self._turn:
            self._left.discard(actor)
            self._turn.notify_all()

    def passed(self) -> None:
        with self._turn:
            self._turn.notify_all()

    def _next(self) -> int | None:
        while self._order and self._order[0] not in self._left:
            self._order.pop(0)
        return self._order[0] if self._order else min(self._left, default=None)


@dataclass
class Stepped:
    """A store as one actor sees it: each request is a step; one may be done and be told wrong."""

    store: FileStore
    turns: Turns
    actor: int
    lost: int | None = None
    """The number of the write whose answer gets lost, so that the request is made again."""
    writes: int = 0

    def read_marked(self, name: str) -> tuple[bytes, str] | None:
        return self._step(lambda: self.store.read_marked(name))

    def write_if_absent(self, name: str, content: bytes) -> str | None:
        return self._write(lambda: self.store.write_if_absent(name, content))

    def replace_if(self, name: str, etag: str, content: bytes) -> str | None:
        return self._write(lambda: self.store.replace_if(name, etag, content))

    def _write(self, ask: Callable[[], str | None]) -> str | None:
        self.writes += 1
        if self.writes - 1 == self.lost:
            self._step(ask)
        return self._step(ask)

    def _step(self, ask: Callable[[], Answer]) -> Answer:
        self.turns.wait(self.actor)
        try:
            return ask()
        finally:
            self.turns.passed()


@dataclass
class Journal:
    """What is committed: a number is refused where a greater one was written."""

    entries: list[tuple[int, str]] = field(default_factory=list)

    def write(self, number: int, what: str) -> bool:
        if any(number < known for known, _ in self.entries):
            return False
        self.entries.append((number, what))
        return True


def writer(
    actor: int, store: Stepped, journal: Journal, told: dict[int, list[str]], seconds: float
) -> None:
    """Takes the lease, works, renews it, commits, gives it back."""
    name, file = f"w{actor}", LeaseFile(store, NAME, lambda: 100.0, seconds)  # type: ignore[arg-type]
    said = told.setdefault(actor, [])
    found = file.take(wanted(name), nobody)
    if found is None:
        said.append("refused")
        return
    held, doubtful = found
    said.append(f"took {held.number}")
    if doubtful:
        journal.write(held.number, "fence")
    renewed = file.renew(held)
    if renewed is None:
        said.append("lost")
        said.append("committed" if journal.write(held.number, name) else "too late")
        return
    said.append("committed" if journal.write(held.number, name) else "too late")
    file.give_back(renewed, in_doubt=False)


def run(order: Sequence[int], seconds: float, lost: tuple[int, int] | None) -> Iterator[object]:
    turns, base, journal = Turns(order, 2), memory(), Journal()
    told: dict[int, list[str]] = {}

    def act(actor: int) -> None:
        store = Stepped(base, turns, actor, lost[1] if lost and lost[0] == actor else None)
        try:
            writer(actor, store, journal, told, seconds)
        finally:
            turns.done(actor)

    threads = [threading.Thread(target=act, args=(actor,)) for actor in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    yield from (told, journal, base)


ORDERS = list(itertools.product((0, 1), repeat=8))
"""Whose request is next, of two who make four each."""


@pytest.mark.parametrize("seconds", [60.0, -1.0], ids=["lasts", "runs out at once"])
@pytest.mark.parametrize("lost", [None, (0, 0), (0, 1), (0, 2)], ids=str)
def test_numbers_grow_and_who_has_lost_it_commits_nothing(
    seconds: float, lost: tuple[int, int] | None
) -> None:
    seen: set[str] = set()
    for order in ORDERS:
        told, journal, base = run(order, seconds, lost)
        assert isinstance(told, dict)
        assert isinstance(journal, Journal)
        assert isinstance(base, FileStore)
        taken = [int(said.split()[1]) for one in told.values() for said in one if "took" in said]
        # No number is had twice, and somebody always gets it.
        assert taken
        assert len(set(taken)) == len(taken), (order, told)
        numbers = [number for number, _ in journal.entries]
        assert numbers == sorted(numbers), (order, journal.entries)
        committed = [what for _, what in journal.entries if what != "fence"]
        assert committed
        for actor, said in told.items():
            # A fence before its commit refuses it; there is no other way to have lost it.
            if "too late" in said:
                assert f"w{actor}" not in committed
        if seconds > 0:
            # None is lost that lasts, not even where an answer was.
            assert not any("lost" in said or "too late" in said for said in told.values()), told
            note = LeaseFile(base, NAME).look()
            assert note is not None
            assert (note.owner, note.in_doubt) == ("", False)
        seen |= {said for one in told.values() for said in one}
    assert {"took 1", "took 2", "committed", "refused"} <= seen
    assert ({"lost", "too late"} <= seen) == (seconds < 0)


@pytest.fixture(params=["memory", "bucket"])
def file(request: pytest.FixtureRequest) -> LeaseFile:
    if request.param == "memory":
        return LeaseFile(memory(), NAME)
    server: StoreServer = request.getfixturevalue("server")
    return LeaseFile(server.at("x").store, NAME)


def test_a_second_writer_is_refused_and_told_who_is_at_work(file: LeaseFile) -> None:
    first, second = Lease(file, "a:1", nobody), Lease(file, "b:2", nobody)
    assert (first.is_held, dict(second.holder())) == (False, {})
    assert first.take(work="a deployment")
    assert not second.take()
    assert first.is_held
    assert dict(second.holder()).items() >= {"process": "a:1", "work": "a deployment"}.items()
    first.release()
    assert second.take()
    assert (first.number, second.number, second.doubtful) == (None, 2, False)
    second.release()


def test_the_lease_of_a_process_that_has_ended_is_taken_over_at_once(file: LeaseFile) -> None:
    assert Lease(file, "a:1", nobody).take()
    second = Lease(file, "b:2", lambda owner: owner == "a:1")
    assert second.take()
    assert (second.number, second.doubtful) == (2, True)
    # Who ends before it has seen to the one before leaves that to the next.
    second.release()
    third = Lease(file, "c:3", nobody)
    assert third.take()
    assert third.doubtful
    third.settled()
    third.release()
    fourth = Lease(file, "d:4", nobody)
    assert fourth.take()
    assert (fourth.number, fourth.doubtful) == (4, False)
    fourth.release(in_doubt=True)
    fifth = Lease(file, "e:5", nobody)
    assert fifth.take()
    assert fifth.doubtful
    fifth.release()


def test_it_is_renewed_while_it_is_held_and_lost_where_that_was_too_late() -> None:
    store = memory()
    quick = LeaseFile(store, NAME, seconds=0.3)
    first = Lease(quick, "a:1", nobody)
    assert first.take()
    waited = threading.Event()
    waited.wait(0.8)
    assert not Lease(quick, "b:2", nobody).take()
    assert not first.is_lost
    # Its process stands still, and another takes over.
    late = LeaseFile(store, NAME, lambda: 1e12, 60.0)
    second = Lease(late, "b:2", nobody)
    assert second.take()
    waited.wait(0.4)
    assert (first.is_lost, second.number, second.doubtful) == (True, 2, True)
    first.release()
    assert second.is_held or LeaseFile(store, NAME).look().owner == "b:2"  # type: ignore[union-attr]
    second.release()


def test_a_store_that_does_not_answer_does_not_lose_a_lease_that_lasts() -> None:
    store = memory()
    asked = []

    class Failing(FileStore):
        def replace_if(self, name: str, etag: str, content: bytes) -> str | None:
            asked.append(name)
            done = super().replace_if(name, etag, content)
            if len(asked) == 1:
                # It was done, and nobody was told.
                raise InfrastructureError(Diagnostic("runtime", "no answer", help=""))
            return done

    failing = Failing("memory://", "memory", store._ask)
    lease = Lease(LeaseFile(failing, NAME, seconds=0.3), "a:1", nobody)
    assert lease.take()
    threading.Event().wait(0.5)
    assert len(asked) >= 2
    assert not lease.is_lost
    lease.release()
    note = LeaseFile(store, NAME).look()
    assert note is not None
    assert note.owner == ""


def test_what_took_it_and_was_not_told_may_take_it_again() -> None:
    store = memory()

    class Failing(FileStore):
        def write_if_absent(self, name: str, content: bytes) -> str | None:
            super().write_if_absent(name, content)
            raise InfrastructureError(Diagnostic("runtime", "no answer", help=""))

    failing = Failing("memory://", "memory", store._ask)
    lease = Lease(LeaseFile(failing, NAME), "a:1", nobody)
    with pytest.raises(InfrastructureError):
        lease.take()
    assert not Lease(LeaseFile(store, NAME), "b:2", nobody).take()
    assert lease.take()
    assert (lease.number, lease.doubtful) == (2, True)
    lease.release()


UNREADABLE = [
    b"no note",
    b"",
    b"[1]",
    b"{}",
    b'{"number": "5", "owner": "a:1", "until": 1, "in_doubt": false, "says": {}, "by": ""}',
]


@pytest.mark.parametrize("content", UNREADABLE, ids=bytes.decode)
def test_a_note_that_nobody_can_read_lasts_as_long_as_a_lease(content: bytes) -> None:
    store = memory()
    store.write(NAME, content)
    lease = Lease(LeaseFile(store, NAME), "a:1", lambda _: True, lambda: 5)
    assert not lease.take()
    assert (lease.is_held, dict(lease.holder())) == (True, {})
    later = LeaseFile(store, NAME, lambda: time.time() + SECONDS + 1)
    late = Lease(later, "a:1", nobody, lambda: 5)
    assert late.take()
    # Its owner may have had any number since the last commit.
    assert late.doubtful
    assert (late.number or 0) > 5 + 1_000
    late.release()


def test_fields_of_a_later_release_are_ignored(file: LeaseFile) -> None:
    until = time.time() + 60
    note = LeaseNote(5, "a:1", until, False, {"work": "x"}, "one")
    told = {**json.loads(note.encoded()), "colour": "red"}
    file.store.write(NAME, json.dumps(told).encode())
    assert file.look() == note
    assert not Lease(file, "b:2", nobody).take()
    second = Lease(file, "b:2", lambda owner: owner == "a:1")
    assert second.take()
    assert (second.number, second.doubtful) == (6, True)
    second.release()


def test_after_a_lost_file_the_number_is_greater_than_any_before(file: LeaseFile) -> None:
    first = Lease(file, "a:1", nobody, lambda: None)
    assert first.take()
    assert (first.number, first.doubtful) == (1, False)
    file.store.delete([NAME])
    second = Lease(file, "b:2", nobody, lambda: 5)
    assert second.take()
    assert second.doubtful
    # Its owner may have had any number since the last commit.
    assert (second.number or 0) > 5 + 1_000
    assert not first.is_kept()
    second.release()
    # The doubt stays, and a commit since then may have a greater number.
    third = Lease(file, "c:3", nobody, lambda: 1 << 40)
    assert third.take()
    assert (third.number, third.doubtful) == ((1 << 40) + 1, True)
    third.release()
