"""Landings over many ticks: no row is read twice or lost, and what was read can be read again.

Whatever is done to a landing, what a tick gets is judged by the bags of what had been read and of
what lies there. Of every row its own tick is known, as a column has it.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from hydro_core.spark.inputs.looks import LandingView, look_again
from hydro_core.spark.store.ledger.records import InputRead
from tests.unit.spark.test_arrivals import UNTIL, Delta, Files, Row, opened

KINDS = ["whole", "partitioned", "parquet", "csv", "jsonl"]
SEEDS = [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 120))]
Bag = Counter[Row]


def some(moments: Random, until: int) -> list[Row]:
    """Rows that tell their own tick; few values, so that equal ones are many."""
    rows = []
    for _ in range(moments.randint(1, 4)):
        tick = moments.randint(0, until + 2)
        rows.append((tick, f"{tick}{moments.choice('ab')}", moments.randint(0, 1)))
    return rows


class Story:
    """A landing, what was read of it so far, and who has accepted what."""

    def __init__(self, home: Path, kind: str, moments: Random) -> None:
        is_table = kind in ("whole", "partitioned")
        self.place: Files | Delta = Delta(home, kind) if is_table else Files(home, kind)
        self.moments, self.home = moments, home
        self.until = 0
        self.read: InputRead | None = None
        self.arrived: dict[int, Bag] = {}
        self.away: dict[Path, tuple[str, list[Row]]] = {}
        """Files that are away, with what they were."""
        self.has_accepted = False
        self.place.add([(t, f"{t}a", 1) for t in (0, 1, 3, 5)])

    @property
    def had(self) -> Bag:
        """All that was read."""
        return sum(self.arrived.values(), Counter())

    @property
    def lies(self) -> Bag:
        """What is there of committed ticks."""
        return Counter({row: n for row, n in self.place.rows.items() if row[0] < self.until})

    def seen(self) -> LandingView:
        reads = [] if self.read is None else [self.read]
        return self.place.inputs.landings.look(self.until, reads)["x"]

    def step(self) -> None:
        """Something happens to the landing."""
        if isinstance(self.place, Delta):
            self._table_step(self.place)
        else:
            self._files_step(self.place)

    def _files_step(self, place: Files) -> None:
        names, moments = list(place.files), self.moments
        match moments.choice(
            ["add", "add", "again", "more", "less", "swap", "away", "back", "touch"]
        ):
            case "add":
                place.add(some(moments, self.until))
            case "again" if names:
                name = moments.choice(names)
                place.write(name, place.files[name])
            case "more" if names:
                name = moments.choice(names)
                place.write(name, [*place.files[name], *some(moments, self.until)])
            case "less" if names and len(place.files[name := moments.choice(names)]) > 1:
                place.write(name, place.files[name][1:])
            case "swap" if names:
                name = moments.choice(names)
                place.write(name, [*place.files[name][1:], *some(moments, self.until)[:1]])
            case "away" if len(names) > 1:
                name = moments.choice(names)
                kept = self.home / f"away-{len(self.away)}-{name}"
                (place.path / name).rename(kept)
                self.away[kept] = name, place.files.pop(name)
            case "back" if self.away:
                kept = moments.choice(list(self.away))
                name, rows = self.away.pop(kept)
                if name in place.files or moments.random() < 0.3:
                    place.number += 1
                    name = f"{place.number}.{place.kind}"
                kept.rename(place.path / name)
                place.files[name] = rows
            case "touch" if names:
                os.utime(place.path / moments.choice(names))

    def _table_step(self, place: Delta) -> None:
        moments, table = self.moments, DeltaTable(place.path)
        rows = list(place.rows.elements())
        words = ["some", "some", "one", "compact", "less", "delete", "restore", "restore"]
        match moments.choice(words):
            case "some":
                place.add(some(moments, self.until))
            case "one" if rows:
                place.add([moments.choice(rows)])
            case "compact":
                table.optimize.compact()
            case "less" if len(rows) > 1:
                place.add(rows[1:], "overwrite")
            case "delete" if rows:
                table.delete(f"user = '{moments.choice(rows)[1]}'")
            case "restore" if table.version() > 1:
                table.restore(moments.randint(1, table.version() - 1))

    def tick(self, ticks: int) -> None:
        seen, last = self.seen(), self.until + ticks - 1
        self._judge(seen)
        before, lies = self.had, self.lies
        batch = self._batch(seen, self.until, last)
        late = Counter({r: n for r, n in batch[self.until].items() if r[0] < self.until})
        self._judge_late(late, lies - before, before - lies)
        for tick in range(self.until, last + 1):
            own = Counter({r: n for r, n in self.place.rows.items() if r[0] == tick})
            assert batch[tick] - late == own if tick == self.until else batch[tick] == own
        self.arrived |= batch
        self.until = last + 1

    def _batch(self, seen: LandingView, first: int, last: int) -> dict[int, Bag]:
        """What some ticks read, as ranges of one or two."""
        found: dict[int, Bag] = {}
        reads: list[InputRead] = []
        while first <= last:
            end = min(last, first + self.moments.randint(0, 1))
            batch = self.place.inputs.read(first, end, {"x": seen})["x"]
            found |= {tick: Counter() for tick in range(first, end + 1)}
            for item, tick in zip(*(batch.rows[c].to_pylist() for c in ("item", "t")), strict=True):
                found[tick][int(item["user"][:-1]), item["user"], item["v"]] += 1
            counts = {tick: found[tick].total() for tick in range(first, end + 1)}
            assert batch.read.counts == counts
            assert batch.read.rows == sum(counts.values())
            reads.append(batch.read)
            first = end + 1
        self.read = reads[-1]
        return found

    def _judge(self, seen: LandingView) -> None:
        """Ticks that have lost rows are told, and no others."""
        lost = {row[0] for row in self.had - self.lies}
        told = {t for c in seen.changed for t in range(c.first, c.last + 1)}
        assert told <= lost
        assert self.has_accepted or told == lost

    def _judge_late(self, late: Bag, more: Bag, lost: Bag) -> None:
        """What is late is new, and of ticks that have lost nothing it is all that is new."""
        assert late <= more
        if not self.has_accepted:
            missed = {row[0] for row in lost}
            whole = Counter({row: n for row, n in more.items() if row[0] not in missed})
            assert Counter({r: n for r, n in late.items() if r[0] not in missed}) == whole

    def correct(self) -> None:
        first = self.moments.randrange(self.until)
        seen, lies = look_again({"x": self.seen()}, first)["x"], self.lies
        before, old = sum((self.arrived[t] for t in range(first)), Counter()), self.had
        batch = self._batch(seen, first, self.until - 1)
        if seen.gain is not None:
            new = sum(batch.values(), Counter()).total() + before.total()
            assert new == old.total() + seen.gain
        late = Counter({r: n for r, n in batch[first].items() if r[0] < first})
        earlier = Counter({r: n for r, n in lies.items() if r[0] < first})
        self._judge_late(late, earlier - before, before - earlier) if late else None
        assert late <= earlier - before
        for tick in range(first, self.until):
            own = Counter({r: n for r, n in lies.items() if r[0] == tick})
            assert batch[tick] - late == own if tick == first else batch[tick] == own
        self.arrived |= batch
        if first == 0:
            self.has_accepted = False

    def accept(self) -> None:
        seen = self.seen()
        assert self.read is not None
        if seen.undecided.late or seen.changed:
            self.read = seen.accepted(self.read, self.home / "pipeline")
            self.has_accepted = True
            assert self.seen().changed == ()

    def replay(self) -> None:
        """All ticks are read again as they were read, but for what is gone."""
        assert self.read is not None
        kept, lies = self.read, self.lies
        seen = self.place.inputs.landings.as_read([self.read], self.until)["x"]
        if isinstance(self.place, Delta):
            return self._replay_of(seen, kept)
        found = self._batch(seen, 0, self.until - 1)
        self.read = kept
        missed = Counter[Row]()
        for tick, rows in found.items():
            assert rows <= self.arrived[tick]
            missed += self.arrived[tick] - rows
        assert missed == self.had - lies
        return None

    def _replay_of(self, seen: LandingView, kept: InputRead) -> None:
        """Of a table the version that was read last: what went since is there still."""
        found = self._batch(seen, 0, self.until - 1)
        self.read = kept
        gone = len(seen.differences.removed)
        for tick, rows in found.items():
            assert rows <= self.arrived[tick]
        assert self.had.total() - sum(b.total() for b in found.values()) == gone


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("decided", [False, True])
def test_no_row_is_lost_or_read_twice(tmp_path: Path, kind: str, seed: int, decided: bool) -> None:
    moments = Random(f"{kind} {seed} {decided}")
    story = Story(tmp_path, kind, moments)
    done: list[str] = []
    for _ in range(14):
        for _ in range(moments.randint(0, 3)):
            story.step()
        words = ["tick", "tick", "range", "correct", "replay", *(["accept"] if decided else [])]
        word = moments.choice(words) if story.until else "tick"
        done.append(word)
        match word:
            case "tick":
                story.tick(1)
            case "range":
                story.tick(moments.randint(2, 3))
            case "correct":
                story.correct()
            case "accept":
                story.accept()
            case _:
                story.replay()


def test_what_waited_when_it_was_accepted_is_late_once_nothing_is_away(tmp_path: Path) -> None:
    """Rows that return cancel what was accepted, too, and the surplus is late."""
    place = opened(tmp_path, "parquet")
    place.add([(1, "old", 8), (2, "old", 8)])
    read = place.read(0, UNTIL - 1)
    place.write("2.parquet", [(1, "new", 9), (2, "new", 9)])
    accepted = place.seen(read).accepted(read, tmp_path / "pipeline")
    assert place.seen(accepted).arrivals.late == {}
    # What stands for another row that is still away goes on waiting.
    place.add([(1, "old", 8)])
    seen = place.seen(accepted)
    assert seen.arrivals.late == {1: 1}
    assert look_again({"x": seen}, 2)["x"].arrivals.late == {1: 1}
    place.add([(2, "old", 8)])
    assert place.seen(accepted).arrivals.late == {1: 1, 2: 1}
