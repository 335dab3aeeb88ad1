"""Corrections, deployments, rollbacks and compactions in a store, of which a request goes wrong.

Whatever it is, what is committed is as it was or all of it, and doing it again ends it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from hydro_core.errors import HydroError
from hydro_core.machine.faults import faults_as_errors
from hydro_core.spark.pipeline.copies import copy_pipeline, verify
from tests.support.store_server import StoreServer
from tests.unit.storage.test_commits_in_a_store import run_out
from tests.unit.storage.test_corrections_in_a_store import served
from tests.unit.storage.trials import (
    KINDS,
    TAKEN_OVER,
    WORKS,
    Trials,
    as_directory,
    changed,
    compacted,
    contents,
    corrected,
    deployed,
    failing_at,
    next_tick,
    rolled_back,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", WORKS)
def test_at_every_request_one_thing_goes_wrong(server: StoreServer, work: str, kind: str) -> None:
    trials, at = Trials(server, WORKS[work]), 1
    while trials.at(at, kind):
        at += KINDS[kind].step
    assert at > 20


SEQUENCE = (corrected, rolled_back, compacted, next_tick, deployed, next_tick, compacted)
"""What is done one after the other."""


def sequence(server: StoreServer, plain: Path, seed: int, steps: int = len(SEQUENCE)) -> None:
    """All of it, with something that goes wrong in each: it ends as in a directory, where nothing
    does.
    """
    assert server.memory is not None
    chosen, names = Random(seed), [kind for kind in KINDS if kind != TAKEN_OVER]
    place = server.at(f"pipelines/{seed}")
    changed(plain)
    changed(place)
    for step, work in enumerate(SEQUENCE[:steps]):
        before = contents(plain)
        work(plain)
        after = contents(plain)
        kind, at = chosen.choice(names), chosen.randint(1, 60)
        ended = False
        with server.failing(failing_at(kind, at)), suppress(HydroError):
            work(place)
            ended = True
        run_out(server, place)
        with TemporaryDirectory() as name:
            found = contents(as_directory(server, place, Path(name)))
        told = (seed, step, kind, at)
        assert found in (before, after), told
        assert not ended or found == after, told
        if found != after or (before == after and not ended):
            work(place)
        with TemporaryDirectory() as name:
            here = as_directory(server, place, Path(name))
            assert contents(here) == after, told
            assert verify(here).problems == (), told
    server.memory.lose_below("pipelines")


def test_one_after_the_other(server: StoreServer, tmp_path: Path) -> None:
    sequence(server, tmp_path, 1, steps=3)


@pytest.mark.slow
def test_many_sequences(server: StoreServer, tmp_path: Path) -> None:
    for seed in range(2, 30):
        sequence(server, tmp_path / str(seed), seed)


def copying(server: StoreServer, kind: str, steps: int) -> int:
    """Copies, of which one request after the other goes wrong: each is whole or it is not said to
    be there, and copying again makes it whole. Gives how many requests there are.
    """
    assert server.memory is not None
    source, at = server.at("pipelines/small"), 1
    served(source)
    wanted, there = contents(source), server.memory.below(source.key)
    while True:
        to = server.at(f"copies/{at}")
        ended, hit = False, list[int]()
        failing = server.failing(failing_at(kind, at, hit))
        with failing, suppress(HydroError), faults_as_errors(f"the copy in {to}"):
            copy_pipeline(source, to)
            ended = True
        if not ended and at % 4 == 0:
            copy_pipeline(source, to)
        if ended or at % 4 == 0:
            with TemporaryDirectory() as name:
                assert contents(as_directory(server, to, Path(name))) == wanted, (kind, at)
        assert server.memory.below(source.key) == there, (kind, at)
        server.memory.lose_below(to.key)
        if not hit:
            return at
        at += steps


def test_a_copy_is_whole_or_not_there(server: StoreServer) -> None:
    assert copying(server, "done and refused", 29) > 29


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != TAKEN_OVER])
def test_a_copy_at_every_request(server: StoreServer, kind: str) -> None:
    assert copying(server, kind, 1 if KINDS[kind].writes else 2) > 20
