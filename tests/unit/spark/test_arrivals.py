"""What came late and what changed in a landing, against the bags of rows that were there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import NoReturn
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from hydro_core.spark.inputs import snapshot as source
from hydro_core.spark.inputs.changes import Arrivals
from hydro_core.spark.inputs.looks import LandingTable, LandingView
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.spark.store.ledger.records import ChangedRange, InputRead, as_row
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.records import of_record
from tests.support.refused import Refused

ITEM = parse_ddl("user string, v long")
DAY = date(2026, 1, 1)
CALENDAR = Calendar(datetime(2026, 1, 1, tzinfo=UTC))
SCHEMA = pa.schema([("day", pa.date32()), ("user", pa.string()), ("v", pa.int64())])
UNTIL = 4
LAST = 6

USERS = ["a", "b\u2028c\u0085\u2029", "5/=% 'd"]
"""Texts that end a line for some, and need other signs in a path."""
Row = tuple[int, str, int]
"""The tick, and an item."""


def _table(rows: Sequence[Row]) -> pa.Table:
    found = [{"day": DAY + timedelta(days=t), "user": u, "v": v} for t, u, v in rows]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def _no_session() -> NoReturn:
    raise AssertionError("nothing of this needs Spark")


class Place:
    """A landing with the rows that are in it."""

    def __init__(self, home: Path, path: Path) -> None:
        self.home, self.path = home, path
        self.inputs = InputBatches(
            {"x": LandingTable(path, "day")},
            {"x": ITEM},
            _no_session,
            calendar=CALENDAR,
            directory=home / "pipeline",
        )

    def read(self, first: int, last: int, before: Sequence[InputRead] = ()) -> InputRead:
        seen = self.inputs.landings.look(first, before)
        return self.inputs.read(first, last, seen)["x"].read

    def seen(self, read: InputRead, until: int = UNTIL) -> LandingView:
        return self.inputs.landings.look(until, [read])["x"]


class Files(Place):
    """Files of one kind; every file has rows."""

    def __init__(self, home: Path, kind: str) -> None:
        super().__init__(home, home / "landing")
        self.path.mkdir()
        self.kind, self.number = kind, 0
        self.files: dict[str, list[Row]] = {}

    @property
    def rows(self) -> Counter[Row]:
        return Counter(row for rows in self.files.values() for row in rows)

    def add(self, rows: Sequence[Row]) -> None:
        users = dict.fromkeys(user for _, user, _ in rows if self.kind == "folders")
        for user in users or [None]:
            self.number += 1
            own = [row for row in rows if user in (None, row[1])]
            self.write(f"{self.number}.{self.kind}", own)

    def write(self, name: str, rows: Sequence[Row]) -> None:
        if self.kind == "folders":
            user = rows[0][1]
            rows = [(t, user, v) for t, _, v in rows]
            name = f"user={quote(user, '')}/{Path(name).stem}.parquet"
        self.files[name] = list(rows)
        place = self.path / name
        place.parent.mkdir(exist_ok=True)
        scratch = self.home / place.name
        if self.kind == "folders":
            pq.write_table(_table(rows).drop_columns(["user"]), scratch)
        elif self.kind == "parquet":
            pq.write_table(_table(rows), scratch)
        elif self.kind == "csv":
            pyarrow.csv.write_csv(_table(rows), scratch)
        else:
            scratch.write_text(
                "".join(
                    f'{{"day": "{DAY + timedelta(days=t)}", "user": "{u}", "v": {v}}}\n'
                    for t, u, v in rows
                )
            )
        scratch.replace(place)

    def step(self, moments: Random) -> None:
        name = moments.choice(list(self.files))
        match moments.choice(["add", "add", "again", "more", "less", "remove", "rename", "touch"]):
            case "add":
                self.add(some(moments))
            case "again":
                self.write(name, self.files[name])
            case "more":
                self.write(name, [*self.files[name], *some(moments)])
            case "less" if len(self.files[name]) > 1:
                self.write(name, self.files[name][1:])
            case "remove" if len(self.files) > 1:
                (self.path / name).unlink()
                del self.files[name]
            case "rename":
                self.number += 1
                new = str(Path(name).with_stem(str(self.number)))
                (self.path / name).rename(self.path / new)
                self.files[new] = self.files.pop(name)
            case "touch":
                os.utime(self.path / name)


class Delta(Place):
    """A Delta table, by the day, by a text, or in one piece."""

    def __init__(self, home: Path, kind: str) -> None:
        super().__init__(home, home / "landing")
        self.by = {"partitioned": ["day"], "by text": ["user"]}.get(kind)

    @property
    def rows(self) -> Counter[Row]:
        found = DeltaTable(self.path).to_pyarrow_table().to_pylist()
        return Counter(((row["day"] - DAY).days, row["user"], row["v"]) for row in found)

    def add(self, rows: Sequence[Row], mode: str = "append") -> None:
        write_deltalake(self.path, _table(rows), mode=mode, partition_by=self.by)

    def step(self, moments: Random) -> None:
        table = DeltaTable(self.path)
        rows = list(self.rows.elements())
        match moments.choice(
            ["add", "add", "add", "compact", "again", "more", "less", "delete", "update", "restore"]
        ):
            case "compact":
                table.optimize.compact()
            case "again":
                self.add(rows, "overwrite")
            case "more":
                self.add([*rows, *some(moments)], "overwrite")
            case "less" if len(rows) > 1:
                self.add(rows[1:], "overwrite")
            case "delete" if rows:
                table.delete(f"v = {moments.choice(rows)[2]}")
            case "update" if rows:
                table.update(predicate=f"v = {moments.choice(rows)[2]}", updates={"v": "v + 1"})
            case "restore" if table.version():
                table.restore(moments.randint(0, table.version() - 1))
            case _:
                self.add(some(moments))


def some(moments: Random) -> list[Row]:
    return [
        (moments.randint(0, LAST), moments.choice(USERS), moments.randint(0, 5))
        for _ in range(moments.randint(1, 4))
    ]


def opened(home: Path, kind: str) -> Files | Delta:
    home.mkdir(exist_ok=True, parents=True)
    is_delta = kind in ("whole", "partitioned", "by text")
    place = Delta(home, kind) if is_delta else Files(home, kind)
    place.add([(0, "a", 1), (1, "b", 2), (3, "a", 3), (5, "c", 4)])
    return place


def judged(before: Counter[Row], after: Counter[Row], found: Arrivals) -> None:
    """A tick with rows more is late, one with rows less is changed, any other is neither."""
    more, less = after - before, before - after
    lost = {tick for tick, *_ in less if tick < UNTIL}
    changed = {t for change in found.changed for t in range(change.first, change.last + 1)}
    # A row that was removed, and appended again as it was, is both: gone, and late.
    assert lost <= changed <= lost | set(found.late)
    late = Counter(tick for tick, *_ in more.elements() if tick < UNTIL and tick not in changed)
    assert {t: n for t, n in found.late.items() if t not in changed} == late
    rows = found.rows
    items = [] if rows is None else zip(*(rows[c].to_pylist() for c in ("t", "item")), strict=True)
    arrived = Counter((t, item["user"], item["v"]) for t, item in items)
    assert Counter(t for t, *_ in arrived.elements()) == Counter(found.late)
    assert all(row[0] in changed for row in arrived - more)
    assert all(t < UNTIL for t, *_ in arrived)


SEEDS = [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 60))]
KINDS = ["whole", "partitioned", "parquet", "csv", "jsonl", "by text", "folders"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 60))]
)
def test_whatever_is_done_to_a_landing_is_told(tmp_path: Path, kind: str, seed: int) -> None:
    moments = Random(f"{kind} {seed}")
    place = opened(tmp_path, kind)
    for _ in range(6):
        read, before = place.read(0, UNTIL - 1), place.rows
        for _ in range(moments.randint(1, 4)):
            place.step(moments)
        judged(before, place.rows, place.seen(read).arrivals)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_before_the_first_tick_are_counted_with_it(tmp_path: Path, kind: str) -> None:
    place = opened(tmp_path, kind)
    assert place.read(0, 1).early == 0
    place.add([(-1, "early", 1), (-400, "early", 2), (-1, "early", 1), (0, "d", 1)])
    read = place.read(0, 1)
    assert (read.early, read.rows) == (3, 3)
    assert of_record(InputRead, as_row(read)) == read
    assert place.read(1, 2).early == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_row_arrives_once(tmp_path: Path, kind: str) -> None:
    place = opened(tmp_path, kind)
    read = place.read(0, UNTIL - 1)
    place.add([(1, "late", 9), (1, "late", 9), (2, "gap", 8), (4, "own", 7)])
    seen = place.seen(read)
    assert seen.arrivals.late == {1: 2, 2: 1}
    batch = place.inputs.read(4, 5, {"x": seen})["x"]
    ticks = batch.rows["t"].to_pylist()
    assert (sorted(ticks[:2]), ticks[2:]) == ([4, 5], [4, 4, 4])
    users = [item["user"] for item in batch.rows["item"].to_pylist()]
    assert (set(users[:2]), sorted(users[2:])) == ({"own", "c"}, ["gap", "late", "late"])
    assert (batch.read.rows, batch.read.late, batch.read.empty) == (5, {1: 2, 2: 1}, ())
    assert place.inputs.read(5, 5, {"x": seen})["x"].read.late == {}
    after = place.inputs.landings.look(6, [batch.read])["x"]
    assert after.arrivals == Arrivals()


def test_a_moment_that_a_folder_names_is_in_utc(tmp_path: Path) -> None:
    calendar = Calendar(datetime(2026, 1, 1), zone="America/New_York")
    path = tmp_path / "landing"
    inputs = InputBatches(
        {"x": LandingTable(path, "at")},
        {"x": ITEM},
        _no_session,
        calendar=calendar,
        directory=tmp_path / "pipeline",
    )

    def add(*moments: datetime) -> None:
        at = pa.array(moments, pa.timestamp("us", "UTC"))
        n = len(moments)
        table = pa.table({"at": at, "user": ["a"] * n, "v": range(n)})
        write_deltalake(path, table, mode="append", partition_by=["at"])

    add(datetime(2026, 1, 1, 6), datetime(2026, 1, 2, 6))
    read = inputs.read(0, 0, inputs.landings.look(0, []))["x"].read
    # In New York it is the first day still.
    add(datetime(2026, 1, 2, 3))
    assert inputs.landings.look(1, [read])["x"].arrivals.late == {0: 1}


def test_nothing_is_read_where_nothing_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in KINDS:
        place = opened(tmp_path / kind, kind)
        read = place.read(0, UNTIL - 1)
        monkeypatch.setattr(source, "read", _no_reading)
        assert place.seen(read).arrivals == Arrivals()
        monkeypatch.undo()


@pytest.mark.parametrize("kind", ["whole", "partitioned", "parquet"])
def test_files_of_open_ticks_alone_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("hydro_core.spark.inputs.snapshot._LARGEST", 0)
    place = opened(tmp_path, kind)
    read = place.read(0, UNTIL - 1)
    place.add([(UNTIL, "own", 1), (LAST, "own", 2)])
    monkeypatch.setattr(source, "read", _no_reading)
    assert place.seen(read).arrivals == Arrivals()


def _no_reading(*_: object) -> NoReturn:
    raise AssertionError("a file was read")


def test_a_compacted_table_has_the_rows_that_came_before(tmp_path: Path) -> None:
    place = opened(tmp_path, "whole")
    read = place.read(0, UNTIL - 1)
    place.add([(1, "late", 9)])
    table = DeltaTable(place.path)
    table.optimize.compact()
    assert place.seen(read).arrivals.late == {1: 1}
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    found = place.seen(read).arrivals
    assert (found.late, found.changed) == ({}, (ChangedRange(1, 1),))


def test_a_log_that_does_not_tell_any_more_is_no_silence(tmp_path: Path) -> None:
    place = opened(tmp_path, "whole")
    read = place.read(0, UNTIL - 1)
    place.add([(5, "own", 9)])
    place.add([(5, "own", 9)])
    DeltaTable(place.path).create_checkpoint()
    (place.path / "_delta_log" / f"{1:020}.json").unlink()
    assert place.seen(read).arrivals.changed == (ChangedRange(0, UNTIL - 1),)


@pytest.mark.parametrize("size", [0, 2**20])
def test_large_files_that_are_written_anew_are_told_by_their_ticks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("hydro_core.spark.inputs.snapshot._LARGEST", size)
    place = opened(tmp_path, "parquet")
    place.add([(1, "a", 1), (2, "a", 2), (5, "a", 3)])
    read = place.read(0, UNTIL - 1)
    place.write("2.parquet", [(1, "a", 1), (2, "a", 2), (2, "late", 4), (5, "a", 3)])
    found = place.seen(read).arrivals
    assert (found.late, found.changed) == (
        ({}, (ChangedRange(1, 3),)) if not size else ({2: 1}, ())
    )


def test_another_table_in_its_place_is_told(tmp_path: Path) -> None:
    place = opened(tmp_path / "a", "whole")
    read = place.read(0, UNTIL - 1)
    place.path.rename(tmp_path / "away")
    for _ in range(3):
        place.add([(0, "a", 1)])
    assert place.seen(read).arrivals.changed == (ChangedRange(0, UNTIL - 1),)


def test_what_was_accepted_is_decided(tmp_path: Path) -> None:
    place = opened(tmp_path, "whole")
    read = place.read(0, UNTIL - 1)
    place.add([(1, "late", 9)])
    DeltaTable(place.path).delete("v = 3")
    seen = place.seen(read)
    assert (seen.undecided.late, seen.changed) == ({1: 1}, (ChangedRange(3, 3, 1, 0),))
    accepted = seen.accepted(read, tmp_path / "pipeline")
    again = place.seen(accepted)
    assert again.arrivals.late == seen.arrivals.late
    assert again.undecided == Arrivals()
    assert again.changed == ()
    place.add([(2, "later", 9)])
    assert place.seen(accepted).undecided.late == {2: 1}


def test_a_file_that_is_written_while_it_is_read_is_told(tmp_path: Path, refused: Refused) -> None:
    place = opened(tmp_path, "csv")
    seen = place.inputs.landings.look(0)
    os.utime(place.path / "1.csv")
    with refused(Exception, "runtime"):
        place.inputs.read(0, 0, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_to_an_input_that_arrives_whole_is_late_for_tick_0(
    tmp_path: Path, kind: str
) -> None:
    place = opened(tmp_path, kind)
    place.inputs = InputBatches(
        {"x": LandingTable(place.path)},
        {"x": ITEM},
        _no_session,
        calendar=CALENDAR,
        directory=tmp_path / "pipeline",
    )
    first = place.read(0, 0)
    assert (first.rows, first.empty) == (4, ())
    place.add([(5, "late", 9)])
    second = place.read(1, 1, [first])
    assert (second.rows, second.late) == (1, {0: 1})
    third = place.read(2, 3, [second])
    assert (third.rows, third.late, third.changed) == (0, {}, ())


def test_a_table_as_it_was_read_may_be_in_other_files_by_now(tmp_path: Path) -> None:
    place = opened(tmp_path, "whole")
    place.add([(2, "b", 3)])
    read = place.read(0, UNTIL - 1)
    DeltaTable(place.path).optimize.compact()
    place.add([(1, "late", 9)])
    DeltaTable(place.path).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )
    seen = place.inputs.landings.as_read([read], UNTIL)
    again = place.inputs.read(0, UNTIL - 1, seen)["x"].read
    assert again.counts == {0: 1, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_landing_as_it_was_read_has_nothing_that_came_since(tmp_path: Path, kind: str) -> None:
    place = opened(tmp_path, kind)
    read = place.read(0, UNTIL - 1)
    place.add([(1, "late", 9)])
    if isinstance(place, Files):
        name, rows = next(iter(place.files.items()))
        place.write(name, [*rows, (2, "more", 9)])
    seen = place.inputs.landings.as_read([read], UNTIL)
    again = place.inputs.read(0, UNTIL - 1, seen)["x"].read
    assert again.rows == 3
    assert again.version == read.version
    assert again.late == {}
