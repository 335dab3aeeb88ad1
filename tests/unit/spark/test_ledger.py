"""The ledger and the lock, without Spark and without a JVM."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hydro_core.errors import DataError, TransientError
from hydro_core.spark.functions.reruns import GuardedFunction, RerunCount, counted
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.spark.store.ledger.records import Commit, InputRead
from tests.support.refused import Refused

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def commit(sequence: int, first: int | None = None, last: int | None = None) -> Commit:
    return Commit(
        sequence=sequence,
        first=sequence if first is None else first,
        last=sequence if last is None else last,
        plan="abc",
        versions={"outputs/out": sequence + 1, "state/members": 3},
        rows={"outputs/out": 17, "state/members": 0},
        inputs=(
            InputRead("messages", 5, "/landing/messages", 8, counts={0: 5, 1: 0}),
            InputRead("users", differences="1", acknowledged_differences="2"),
        ),
        start=NOW,
        end=NOW,
        started=NOW,
        committed=NOW,
        checks={"balanced": {"passed": True}},
        tables={"outputs/out": {"item": "long"}},
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path)
    made.create()
    return made


def test_nothing_is_committed_at_first(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert (ledger.exists, ledger.last, ledger.last_tick, ledger.commits()) == (
        False,
        None,
        None,
        (),
    )
    ledger.create()
    assert (ledger.exists, ledger.last, ledger.last_tick, ledger.commits()) == (
        True,
        None,
        None,
        (),
    )


def test_a_commit_comes_back_as_it_was(ledger: Ledger) -> None:
    ledger.append(commit(0))
    assert Ledger(ledger.directory).last == commit(0)


def test_one_that_stays_as_it_is_is_not_read_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, reads = Ledger(ledger.directory), list[object]()
    monkeypatch.setattr(
        reader, "_read_last", lambda table: reads.append(table) or Ledger._read_last(reader, table)
    )
    update = DeltaTable.update_incremental
    monkeypatch.setattr(
        DeltaTable, "update_incremental", lambda table: reads.append(table) or update(table)
    )
    for number in range(3):
        ledger.append(commit(number))
        assert reader.refresh() == commit(number)
        seen = len(reads)
        assert reader.refresh() == commit(number)
        assert len(reads) == seen > number


def test_one_whose_old_entries_are_gone_is_read_again(ledger: Ledger) -> None:
    reader = Ledger(ledger.directory)
    ledger.append(commit(0))
    assert reader.refresh() == commit(0)
    for number in range(1, 4):
        ledger.append(commit(number))
    log = ledger.directory / LEDGER / "_delta_log"
    DeltaTable(log.parent).create_checkpoint()
    for version in range(4):
        (log / f"{version:020}.json").unlink()
    assert reader.refresh() == commit(3)


def test_one_that_is_gone_is_not_as_it_was(ledger: Ledger) -> None:
    ledger.append(commit(0))
    shutil.rmtree(ledger.directory / LEDGER)
    assert ledger.refresh() is None


def test_one_in_whose_place_another_is_known_by_neither_number_nor_time(tmp_path: Path) -> None:
    """A file system gives the number of a file that was removed to the next, and a copy has the
    times of what it was made of.
    """
    replaced: list[None] = []
    ledger = Ledger(tmp_path / "flow", lambda: replaced.append(None))
    ledger.create()
    ledger.append(commit(0))
    copy = shutil.copytree(ledger.directory, tmp_path / "copy")
    ledger.append(commit(1))
    assert ledger.refresh() == commit(1)
    assert not replaced

    log = Path(LEDGER) / "_delta_log"
    first = ledger.directory / log / f"{0:020}.json"
    before = first.stat()
    (ledger.directory / log / f"{2:020}.json").unlink()
    first.write_bytes((copy / log / first.name).read_bytes())
    shutil.copystat(copy / log / first.name, first)
    after = first.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert ledger.refresh() == commit(0)
    assert replaced


@pytest.mark.parametrize("behind", [True, False])
def test_one_in_whose_place_another_is_where_the_first_entries_are_gone(
    tmp_path: Path, *, behind: bool
) -> None:
    """They are removed a month after they were written."""
    ledger = Ledger(tmp_path / "flow")
    ledger.create()
    ledger.append(commit(0))
    log = Path(LEDGER) / "_delta_log"
    DeltaTable(ledger.directory / LEDGER).create_checkpoint()
    (ledger.directory / log / f"{0:020}.json").unlink()
    copy = shutil.copytree(ledger.directory, tmp_path / "copy")
    ledger.append(commit(1))
    reader = Ledger(ledger.directory)
    assert reader.refresh() == ledger.refresh() == commit(1)

    another = replace(commit(1), rows={"outputs/out": 18})
    if not behind:
        Ledger(copy).append(another)
    shutil.rmtree(ledger.directory)
    copy.rename(ledger.directory)
    expected = commit(0) if behind else another
    assert reader.refresh() == ledger.refresh() == expected


def test_reruns_are_counted_from_commit_to_commit(ledger: Ledger) -> None:
    ratio = GuardedFunction("0a1b", "ratio", "p.hydro", 3)
    nameless = GuardedFunction("2c3d", "lambda r: r.v * r.v")
    first = replace(commit(0), reruns=counted((), [ratio], 0, range(3)))
    ledger.append(first)
    second = replace(commit(1), reruns=counted(first.reruns, [nameless, ratio], 1, range(3, 4)))
    ledger.append(second)
    third = replace(commit(2), reruns=counted(second.reruns, [], 2, range(4, 5)))
    ledger.append(third)
    assert Ledger(ledger.directory).commits() == (first, second, third)
    assert third.reruns == (RerunCount(ratio, 2, 1, 3, 3), RerunCount(nameless, 1, 1, 3, 3))
    assert [len(c.ran_again) for c in (first, second, third)] == [1, 2, 0]
    assert str(third.reruns[0]) == "ratio (p.hydro, line 3), 2 times in all"
    assert str(third.reruns[1]) == "lambda r: r.v * r.v, 1 time in all"


def test_reading_a_ledger_loads_neither_pandas_nor_functions_of_arrow(ledger: Ledger) -> None:
    """Whoever only looks, as the code location does at every flow, need not wait for it."""
    ledger.append(commit(0))
    script = f"""
import sys
from pathlib import Path
from hydro_core.spark.store.ledger.ledger import Ledger
ledger = Ledger(Path({str(ledger.directory)!r}))
assert ledger.refresh().sequence == 0 and ledger.commits() and ledger.last_reads()
assert not {{"pandas", "pyarrow.compute", "pyspark"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_last_commit_is_found_among_many_and_after_compaction(ledger: Ledger) -> None:
    for sequence in range(205):
        ledger.append(commit(sequence))
    again = Ledger(ledger.directory)
    assert again.last_tick == 204
    assert [c.sequence for c in again.commits(since=200)] == [200, 201, 202, 203, 204]
    assert [c.sequence for c in again.commits()] == list(range(205))
    files = DeltaTable(ledger.directory / LEDGER).file_uris()
    assert len(files) <= 6  # two compactions have been


def test_the_commit_of_a_tick_is_the_latest_that_made_it(ledger: Ledger) -> None:
    ledger.append(commit(0, first=0, last=9))
    ledger.append(commit(1, first=10, last=10))
    ledger.append(commit(2, first=8, last=10))
    found = [ledger.commit_of(tick) for tick in (0, 7, 8, 10, 11)]
    assert [c and c.sequence for c in found] == [0, 0, 2, 2, None]


def test_a_reader_sees_new_commits_when_it_looks_again(ledger: Ledger) -> None:
    reader = Ledger(ledger.directory)
    assert reader.last is None
    ledger.append(commit(0))
    assert reader.last is None
    assert reader.refresh() == commit(0)


def test_of_two_writers_the_second_fails(ledger: Ledger, refused: Refused) -> None:
    other = Ledger(ledger.directory)
    ledger.append(commit(0))
    assert other.refresh() == commit(0)
    other.append(commit(1))
    with refused(TransientError, "state"):
        ledger.append(commit(1))
    assert Ledger(ledger.directory).commits() == (commit(0), commit(1))


def test_a_broken_ledger_is_a_state_error(ledger: Ledger, refused: Refused) -> None:
    ledger.append(commit(0))
    for part in (ledger.directory / LEDGER / "_delta_log").glob("*.json"):
        part.write_text("{nonsense")
    with refused(DataError, "state"):
        _ = Ledger(ledger.directory).last


def test_a_ledger_whose_data_is_gone_is_a_state_error(ledger: Ledger, refused: Refused) -> None:
    ledger.append(commit(0))
    for part in (ledger.directory / LEDGER).glob("*.parquet"):
        part.unlink()
    with refused(DataError, "state"):
        _ = Ledger(ledger.directory).last


def test_the_ledger_needs_no_spark() -> None:
    modules = "hydro_core.spark.store.ledger.ledger, hydro_core.spark.store.ledger.lock"
    program = f"import sys, {modules}; print('pyspark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_lock_is_held_by_one_and_counts_its_holders(tmp_path: Path) -> None:
    one, two = WriterLock(tmp_path), WriterLock(tmp_path)
    with one:
        with one, pytest.raises(TransientError, match="another writer") as caught:
            two.acquire()
        assert caught.value.code == "state"
        assert f"process {os.getpid()}" in str(caught.value)
        assert one.held
        with pytest.raises(TransientError, match="another writer"):
            two.acquire()
    with two:
        assert two.held
        assert not one.held


HOLD = """
import os, sys, time
from pathlib import Path
from hydro_core.spark.store.ledger.lock import WriterLock
lock = WriterLock(Path(sys.argv[1])); lock.acquire()
if sys.argv[2] == "fork" and os.fork() == 0:
    print(os.getpid(), flush=True); time.sleep(60); os._exit(0)
if sys.argv[2] == "alone":
    print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_the_lock_of_a_killed_process_is_free(tmp_path: Path, how: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), how], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    printed = int(holder.stdout.readline())
    try:
        with pytest.raises(TransientError, match=f"process {holder.pid}"):
            WriterLock(tmp_path).acquire()
        holder.kill()
        holder.wait()
        with WriterLock(tmp_path) as lock:
            assert lock.held
            with pytest.raises(TransientError, match=f"process {os.getpid()}"):
                WriterLock(tmp_path).acquire()
    finally:
        if how == "fork":
            os.kill(printed, signal.SIGKILL)
        holder.stdout.close()


def test_a_lock_file_that_is_no_signature_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("[1, 2")
    with WriterLock(tmp_path) as lock:
        assert lock.held


def test_a_ledger_that_is_being_made_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, seen = DeltaTable.create, []

    def create(path: Path, *given: object, **more: object) -> object:
        found = made(path, *given, **more)
        seen.append(Ledger(tmp_path).refresh())
        assert not Ledger(tmp_path).exists
        return found

    monkeypatch.setattr(DeltaTable, "create", create)
    first, second = Ledger(tmp_path), Ledger(tmp_path)
    first.create()
    second.create()
    assert seen == [None]
    assert first.exists
    assert first.last is None
    assert {path.name for path in tmp_path.iterdir()} == {"_format.json", "_ledger"}
