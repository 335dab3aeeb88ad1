"""Long work on a pipeline in a store of which, at each request in its turn, one thing goes wrong.

What runs ticks is left out, as in `test_corrections_in_a_store`. Each trial begins with what the
store held before the work, which costs no request, at a place of its own: nothing that a process
remembers of one place is of another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from hydro_core.artifact.deployment import write_deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import HydroError, TransientError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.optimize.optimizer import optimize
from hydro_core.plan.planner import WantedTables, bootstrap, plan
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import StagedPast, deployment, rollback
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.storage.remote import DataPlace, RemotePath
from tests.support.store_server import Fault, Outcome, StoreServer
from tests.unit.storage.test_commits_in_a_store import run_out
from tests.unit.storage.test_corrections_in_a_store import (
    LAST,
    NO_SPARK,
    PROGRAM,
    correct,
    opened,
    served,
    tick,
)

CHANGED = (
    'x = source("k string")\nx -> persist() -> unique() -> all\nx -> delta() -> now\n'
    'x -> filter(lambda k: k != "y") -> persist() -> each\n'
)
"""The program with an output that is another, one that is new, and a state of its own."""
COMPILED = {text: compile_text(text).typed for text in (PROGRAM, CHANGED)}
PLANS = {text: plan(typed) for text, typed in COMPILED.items()}
DEPLOYMENTS = {
    text: deployment_of("small", typed, optimize(typed)) for text, typed in COMPILED.items()
}


def opened_as(place: DataPlace, program: str) -> Pipeline:
    return Pipeline(place, PLANS[program], spark=NO_SPARK)


def serving(place: DataPlace) -> Pipeline:
    """The pipeline by the program that serves."""
    last = Ledger(place).last
    found = [opened_as(place, text) for text in PLANS]
    return next(one for one in found if last is None or one.fingerprint == last.plan)


def contents(place: DataPlace) -> Mapping[str, list[str]]:
    """The rows of all tables, by the last commit; which program serves is said by their names."""
    pipeline = serving(place)
    commit = pipeline.ledger.refresh()
    assert commit is not None
    pipeline.store.check(commit)
    return {
        spec.name: sorted(map(repr, pipeline.store.arrow(spec.name, 0, commit.last).to_pylist()))
        for spec in pipeline.tables
    }


@contextmanager
def _told(place: DataPlace) -> Iterator[None]:
    with faults_as_errors(f"the pipeline in {place}"):
        yield


def _run_beside(rework: StagedPast, says: str) -> None:
    with rework:
        if not rework.is_complete:
            for number in range(rework.first, rework.last + 1):
                tick(rework.staging, number, says)
        rework.replace()


def corrected(place: DataPlace) -> None:
    """The last ticks are computed again."""
    correct(serving(place), 2)


def deployed(place: DataPlace) -> None:
    """The changed program takes over, with what it wants that is not there."""
    with _told(place):
        before, target = opened_as(place, PROGRAM), opened_as(place, CHANGED)
        new = frozenset(s.id for s in PLANS[CHANGED].slots) - {s.id for s in PLANS[PROGRAM].slots}
        wanted = WantedTables(new, frozenset({"all", "each"}))
        rework = deployment(before, target, bootstrap(PLANS[CHANGED], wanted, {}), wanted)
        with rework:
            write_deployment(place, DEPLOYMENTS[CHANGED])
            _run_beside(rework, "changed")


def rolled_back(place: DataPlace) -> None:
    """The program before serves again, with the ticks since then."""
    with _told(place):
        _run_beside(rollback(opened_as(place, CHANGED), opened_as(place, PROGRAM)), "back")


def compacted(place: DataPlace) -> None:
    """All small files are joined, and what was replaced goes."""
    with _told(place):
        serving(place).compact(0)


def many(place: DataPlace) -> None:
    """What a compaction begins with: many files, and what a correction has replaced."""
    served(place)
    corrected(place)
    for number in range(LAST + 1, LAST + 4):
        tick(opened(place), number, "more")


def changed(place: DataPlace) -> None:
    """What a rollback begins with: ticks by both programs."""
    served(place)
    write_deployment(place, DEPLOYMENTS[PROGRAM])
    deployed(place)
    tick(serving(place), LAST + 1, "since")


def went_back(place: DataPlace) -> None:
    """What a compaction after a rollback begins with: tables of a program that is given up."""
    changed(place)
    rolled_back(place)


@dataclass(frozen=True, slots=True)
class Work:
    """What is done, and what there is before."""

    begins: Callable[[DataPlace], Any]
    does: Callable[[DataPlace], None]


WORKS = {
    "correction": Work(served, corrected),
    "deployment": Work(served, deployed),
    "rollback": Work(changed, rolled_back),
    "compaction": Work(many, compacted),
    "compaction after a rollback": Work(went_back, compacted),
}


def next_tick(place: DataPlace) -> None:
    """A further tick by whoever serves."""
    with _told(place):
        pipeline = serving(place)
        tick(pipeline, pipeline.next_tick, "next")


@dataclass
class Trials:
    """A work of which one request after the other fails.

    Args:
        server: the store, in memory.
        work: what is done.
    """

    server: StoreServer
    work: Work
    taking: Lock = field(default_factory=Lock)
    """Held by who takes over."""

    def __post_init__(self) -> None:
        assert self.server.memory is not None
        self.memory = self.server.memory
        self.template = self.server.at("pipelines/template")
        self.work.begins(self.template)
        self.before = contents(self.template)
        done = self._anew("done")
        self.work.does(done)
        self.after = contents(done)
        assert verify(done).problems == ()
        next_tick(done)
        self.gone_on = contents(done)
        other = self._anew("other")
        next_tick(other)
        self.other = contents(other)
        self.work.does(other)
        self.done_later = contents(other)

    def _anew(self, name: str) -> RemotePath:
        place = self.server.at(f"pipelines/{name}")
        self.memory.hold_below(self.template.key, place.key)
        return place

    def at(self, request: int, kind: str) -> bool:
        """Does the work, of which a request goes wrong, and then again; gives whether it had so
        many.
        """
        place, named = self._anew(f"{kind}/{request}"), (kind, request)
        hit: list[int] = []
        ended = False
        with self.server.failing(self._fault(place, request, kind, hit)), suppress(HydroError):
            self.work.does(place)
            ended = True
        # Who has been overtaken may see it while the other is still at work.
        with self.taking:
            pass
        # It is looked at as a directory, whose files need no requests; three of four go on there.
        with TemporaryDirectory() as name:
            here = as_directory(self.server, place, Path(name))
            found = contents(here)
            by_others = self.other, self.gone_on, self.done_later
            beyond = by_others if kind == TAKEN_OVER and hit else ()
            assert found in (self.before, self.after, *beyond), named
            assert not ended or found in (self.after, self.gone_on, self.done_later), named
            run_out(self.server, place)
            self._goes_on(here if request % 4 else place, found, named)
        self.memory.lose_below(place.key)
        return bool(hit)

    def _goes_on(self, place: DataPlace, found: Mapping[str, list[str]], named: object) -> None:
        """It is done again, unless another has taken over, and then there is a further tick."""
        if found in (self.before, self.after):
            if found != self.after or self.before == self.after:
                self.work.does(place)
                assert contents(place) == self.after, named
            next_tick(place)
            assert contents(place) == self.gone_on, named
        else:
            next_tick(place)
        assert verify(place).problems == (), named

    def _fault(self, place: RemotePath, request: int, kind: str, hit: list[int]) -> Fault:
        def taken() -> None:
            with self.taking:
                run_out(self.server, place)
                with suppress(TransientError):
                    next_tick(place)

        return failing_at(kind, request, hit, taken)


def failing_at(
    kind: str, request: int, hit: list[int] | None = None, taken: Callable[[], None] | None = None
) -> Fault:
    """What goes wrong at the request of this number, of those that the kind is about.

    Args:
        kind: what.
        request: the number.
        hit: gets the number when it has come to that.
        taken: takes over, if that is the kind.
    """
    of, seen = KINDS[kind], itertools.count(1)
    found = [] if hit is None else hit

    def fault(_: int, method: str, path: str) -> Outcome:
        if found:
            return of.outcome if of.for_good else None
        if (of.writes and method not in WRITES) or next(seen) < request:
            return None
        found.append(request)
        if taken is not None and kind == TAKEN_OVER:
            taken()
        return of.outcome

    return fault


def as_directory(server: StoreServer, place: RemotePath, here: Path) -> Path:
    """What is at a place of a store in memory, as a directory."""
    assert server.memory is not None
    for name, content in server.memory.below(place.key).items():
        file = here / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name != LOCK_FILE:
            file.write_bytes(content)
    return here


WRITES = ("PUT", "POST", "DELETE")
TAKEN_OVER = "taken over"


@dataclass(frozen=True, slots=True)
class Kind:
    """What goes wrong."""

    outcome: Outcome
    writes: bool
    """Whether it is only told apart by a request that writes: of one that reads it is, to whoever
    asks, what another kind is."""
    step: int = 1
    """Of so many requests one is tried."""
    for_good: bool = False
    """Whether all further requests go wrong, too."""


KINDS: Mapping[str, Kind] = {
    "process gone": Kind((403, "AccessDenied"), writes=True, for_good=True),
    "refused": Kind((403, "AccessDenied"), writes=False, step=5),
    "done and refused": Kind((403, "AccessDenied", True), writes=True),
    "answered twice": Kind((503, "SlowDown", True), writes=True),
    "not answered": Kind((0, ""), writes=True, step=3),
    "done and not answered": Kind((0, "", True), writes=True, step=2),
    TAKEN_OVER: Kind(None, writes=False, step=5),
}
"""What goes wrong, by its name: where another has taken over, it has run a tick."""
