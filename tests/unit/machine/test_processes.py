"""Locks between processes: one holder at a time, whatever comes between, and none for ever."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hydro_core.errors import InfrastructureError, TransientError
from hydro_core.machine.locks import FileLock, has_ended
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from tests.support.refused import Refused

# A worker that takes and releases the lock again and again, with a pause before random lines of
# whatever module locks, so that every order of the steps of two of them comes about. Some are
# killed while they hold it, with a child that they forked still there.
CONTENDER = """
import os, random, signal, sys, time
from pathlib import Path
from hydro_core.errors import DataError, InfrastructureError, TransientError
from hydro_core.spark.store.ledger.lock import WriterLock

directory, seed, end = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
chance = random.Random(seed)

def pauses(frame, event, _):
    if event == "line" and chance.random() < 0.15:
        time.sleep(chance.random() * 0.01)
    return pauses

def traced(frame, event, _):
    name = Path(frame.f_code.co_filename).name
    return pauses if name in ("ledger_lock.py", "processes.py") else None

sys.settrace(traced)
held = 0
while time.time() < end:
    lock = WriterLock(directory / "pipeline")
    try:
        lock.acquire()
    except DataError:
        continue
    held += 1
    print("held", flush=True)
    inside = directory / f"inside-{os.getpid()}-{held}"
    inside.touch()
    time.sleep(chance.random() * 0.004)
    others = [p.name for p in directory.glob("inside-*") if p != inside]
    if others:
        print("two holders:", inside.name, *others, flush=True)
    dies = chance.random() < 0.2
    inside.unlink()
    if dies:
        if os.fork() == 0:
            sys.settrace(None)
            os.closerange(0, 3)
            time.sleep(max(0, end - time.time()))
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    lock.release()

"""


def test_many_processes_that_are_killed_in_between_never_hold_it_together(tmp_path: Path) -> None:
    end, told, held = time.time() + 6, [], 0
    running = {}

    def start(seed: int) -> None:
        words = [sys.executable, "-c", CONTENDER, str(tmp_path), str(seed), str(end)]
        running[seed] = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    seed = 0
    for seed in range(6):
        start(seed)
    while running:
        for one, process in list(running.items()):
            if process.poll() is None:
                continue
            assert process.stdout is not None
            printed = process.stdout.read().splitlines()
            process.stdout.close()
            del running[one]
            told += [line for line in printed if line.startswith("two holders")]
            held += printed.count("held")
            if process.returncode == -9 and time.time() < end - 1:
                seed += 1
                start(seed)
        time.sleep(0.01)
    assert told == []
    assert held > 20


HOLD = """
import os, sys, time
from pathlib import Path
from hydro_core.spark.store.ledger.lock import WriterLock
lock = WriterLock(Path(sys.argv[1])); lock.acquire()
if os.fork() == 0:
    print(os.getpid(), flush=True); time.sleep(60); os._exit(0)
time.sleep(60)
"""


@contextmanager
def _held_with_a_child(directory: Path) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        yield holder
    finally:
        os.kill(child, signal.SIGKILL)
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_number_that_is_used_again_holds_nothing(tmp_path: Path) -> None:
    """What the file says is of a process that lives, and is not the one that took the lock."""
    with _held_with_a_child(tmp_path) as holder:
        file = tmp_path / LOCK_FILE
        says = file.read_text().replace(str(holder.pid), str(os.getpid()))
        file.write_text(says)
        holder.kill()
        holder.wait()
        with WriterLock(tmp_path) as lock:
            assert lock.held


def test_who_has_ended_is_not_told_to_hold_it(tmp_path: Path, refused: Refused) -> None:
    with WriterLock(tmp_path):
        file = tmp_path / LOCK_FILE
        says = json.loads(file.read_text())
        host, _, name = says["process"].rpartition(":")
        number, _, start = name.partition("@")
        for another in (f"{number}@1.{start.partition('.')[2]}", f"{number}@{start}x"):
            assert has_ended(f"{host}:{another}")
            file.write_text(json.dumps({**says, "process": f"{host}:{another}"}))
            with refused(TransientError, "state") as caught:
                WriterLock(tmp_path).acquire()
            assert "process" not in str(caught.value)


def test_a_lock_is_on_the_file_that_is_at_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """Its directory may be taken away while somebody opens it, as `reset` does."""
    (tmp_path / "pipeline").mkdir()
    real = fcntl.flock

    def flock(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / "pipeline").rename(tmp_path / "away")
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with WriterLock(tmp_path / "pipeline"), refused(TransientError, "state"):
        WriterLock(tmp_path / "pipeline").acquire()


def test_what_was_released_has_no_holder_and_the_file_stays(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.take(url="here")
    made = (tmp_path / "lock").stat().st_ino
    assert lock.holder()["url"] == "here"
    lock.release()
    assert lock.holder() == {}
    assert lock.take()
    assert (tmp_path / "lock").stat().st_ino == made
    lock.release()


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with refused(InfrastructureError, "config"):
        WriterLock(tmp_path).acquire()


@pytest.mark.parametrize("mask", [0o002, 0o077])
def test_a_lock_has_the_rights_of_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        lock = FileLock(tmp_path / "lock")
        assert lock.take()
        lock.release()
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666 & ~mask


def test_whether_a_lock_is_held_is_asked_without_a_trace(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert not lock.is_held
    assert not (tmp_path / "lock").exists()
    assert lock.take(work="a deployment")
    other = FileLock(tmp_path / "lock")
    assert other.is_held
    assert other.holder()["work"] == "a deployment"
    lock.release()
    assert not other.is_held
