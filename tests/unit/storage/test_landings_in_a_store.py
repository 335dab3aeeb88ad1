"""A landing in a bucket is what one in a directory is: each of these is told of in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
from deltalake import DeltaTable

from hydro_core.errors import DataError, InfrastructureError
from hydro_core.spark.inputs import snapshot as source
from hydro_core.spark.inputs.changes import Arrivals
from hydro_core.spark.inputs.looks import LandingTable, LandingView
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.spark.store.ledger.records import InputRead
from tests.support.refused import Refused
from tests.support.store_server import Mirror, StoreServer
from tests.unit.spark.test_arrivals import (
    CALENDAR,
    ITEM,
    KINDS,
    LAST,
    UNTIL,
    Delta,
    Files,
    Place,
    judged,
    opened,
)


def no_session() -> NoReturn:
    raise AssertionError("nothing of this needs Spark")


class InStore:
    """A landing whose files are in a bucket as they are in a directory, before each look."""

    def __init__(self, server: StoreServer, local: Files | Delta, name: str = "rows") -> None:
        self.server, self.local, self.name = server, local, name
        self.mirror = Mirror(server, local.path, name)
        self.inputs = self.reading()

    def reading(self, column: str | None = "day") -> InputBatches:
        return InputBatches(
            {"x": LandingTable(self.server.at(self.name), column)},
            {"x": ITEM},
            no_session,
            calendar=CALENDAR,
            directory=self.local.home / "pipeline",
        )

    def sync(self) -> None:
        self.mirror.sync()

    def read(self, first: int, last: int, before: Sequence[InputRead] = ()) -> InputRead:
        self.sync()
        seen = self.inputs.landings.look(first, before)
        return self.inputs.read(first, last, seen)["x"].read

    def seen(self, read: InputRead, until: int = UNTIL) -> LandingView:
        self.sync()
        return self.inputs.landings.look(until, [read])["x"]


def landed(server: StoreServer, home: Path, kind: str) -> InStore:
    return InStore(server, opened(home, kind))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(
            kind, seed, marks=() if kind in ("whole", "csv") and not seed else pytest.mark.slow
        )
        for kind in KINDS
        for seed in range(30)
    ],
)
def test_whatever_is_done_to_a_landing_is_told(
    server: StoreServer, tmp_path: Path, kind: str, seed: int
) -> None:
    moments = Random(f"{kind} {seed}")
    place = landed(server, tmp_path, kind)
    for _ in range(4):
        read, before = place.read(0, UNTIL - 1), place.local.rows
        for _ in range(moments.randint(1, 4)):
            place.local.step(moments)
        judged(before, place.local.rows, place.seen(read).arrivals)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_what_a_directory_gives(
    server: StoreServer, tmp_path: Path, kind: str
) -> None:
    place = landed(server, tmp_path, kind)
    place.local.add([(1, "late", 9), (-1, "early", 1), (4, "own", 7)])
    here: Place = place.local
    there, expected = place.read(0, LAST), here.read(0, LAST)
    assert (there.rows, there.counts, there.empty, there.early, there.kind) == (
        *(expected.rows, expected.counts, expected.empty),
        *(expected.early, expected.kind),
    )
    assert there.location == f"s3://landing/{place.name}"
    found = place.inputs.read(0, LAST)["x"].rows.to_pylist()
    key = lambda row: (row["t"], row["item"]["user"], row["item"]["v"])  # noqa: E731
    assert sorted(found, key=key) == sorted(
        here.inputs.read(0, LAST)["x"].rows.to_pylist(), key=key
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_row_arrives_once(server: StoreServer, tmp_path: Path, kind: str) -> None:
    place = landed(server, tmp_path, kind)
    read = place.read(0, UNTIL - 1)
    place.local.add([(1, "late", 9), (1, "late", 9), (2, "gap", 8), (4, "own", 7)])
    seen = place.seen(read)
    assert seen.arrivals.late == {1: 2, 2: 1}
    batch = place.inputs.read(4, 5, {"x": seen})["x"]
    assert (batch.read.rows, batch.read.late) == (5, {1: 2, 2: 1})
    assert place.inputs.landings.look(6, [batch.read])["x"].arrivals == Arrivals()


def test_a_file_that_is_written_anew_within_a_second_and_is_as_long_is_told(
    server: StoreServer, tmp_path: Path
) -> None:
    place = landed(server, tmp_path, "csv")
    server.put("rows/2.csv", b'"day","user","v"\n2026-01-02,"b",1\n')
    seen = place.inputs.landings.look(0)
    read = place.inputs.read(0, UNTIL - 1, seen)["x"].read
    server.put("rows/2.csv", b'"day","user","v"\n2026-01-02,"b",2\n')
    found = place.inputs.landings.look(UNTIL, [read])["x"].arrivals
    assert [(change.first, change.last) for change in found.changed] == [(1, 1)]
    server.put("rows/2.csv", b'"day","user","v"\n2026-01-02,"b",1\n')
    assert place.inputs.landings.look(UNTIL, [read])["x"].arrivals == Arrivals()


def test_a_file_that_is_written_while_it_is_read_is_told(
    server: StoreServer, tmp_path: Path, refused: Refused
) -> None:
    place = landed(server, tmp_path, "csv")
    place.sync()
    seen = place.inputs.landings.look(0)
    server.put("rows/1.csv", b'"day","user","v"\n2026-01-02,"b",1\n')
    with refused(InfrastructureError, "runtime"):
        place.inputs.read(0, 0, seen)


@pytest.mark.parametrize("kind", ["parquet", "whole"])
def test_a_warm_look_asks_for_as_much_however_many_files_there_are(
    server: StoreServer, tmp_path: Path, kind: str
) -> None:
    asked = []
    for number, files in enumerate((3, 40)):
        place = InStore(server, opened(tmp_path / str(files), kind), f"rows{number}")
        for _ in range(files):
            place.local.add([(UNTIL, "a", 1)])
        if kind != "parquet":
            # As writers do by themselves now and then: what came before is not gone through again.
            DeltaTable(place.local.path).create_checkpoint()
        read = place.read(0, UNTIL - 1)
        place.local.add([(UNTIL, "b", 1)])
        place.sync()
        seen = place.inputs.landings.look(UNTIL, [read])
        place.inputs.read(UNTIL + 2, UNTIL + 2, seen)
        asked.append(len(server.asked))
    assert abs(asked[1] - asked[0]) <= 2, asked


def test_a_look_at_what_is_unchanged_reads_no_file(
    server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = landed(server, tmp_path, "parquet")
    read = place.read(0, UNTIL - 1)

    def no_reading(*_: object) -> NoReturn:
        raise AssertionError("a file was read")

    monkeypatch.setattr(source, "read", no_reading)
    assert place.seen(read).arrivals == Arrivals()
    assert len(server.asked) <= 6


@pytest.mark.parametrize("pattern", ["rows/*.csv", "ro*/[!x].csv", "**/*.csv", "r?ws"])
def test_a_pattern_of_names(server: StoreServer, tmp_path: Path, pattern: str) -> None:
    place = landed(server, tmp_path, "csv")
    place.local.add([(2, "b", 2)])
    place.sync()
    server.put("rows/_hidden.csv", b"no")
    server.put("rows/.part/1.csv", b"no")
    place.name = pattern
    if pattern == "rows/*.csv":
        server.at("rows").store.delete(["rows/_hidden.csv"])
    if pattern == "**/*.csv":
        server.at("rows").store.delete(["rows/_hidden.csv"])
    found = place.reading().read(0, LAST)["x"].read
    assert found.rows == 5


@pytest.mark.slow
def test_a_million_files_beside_those_that_are_read(server: StoreServer, tmp_path: Path) -> None:
    """All are listed where a pattern begins above them, a thousand at a time, and none is held."""
    many = 1_000_000
    place = landed(server, tmp_path, "parquet")
    place.sync()
    server.hold({f"rows/archive/{number:07}.parquet": b"" for number in range(many)})
    asked, held = [], []
    for place.name in ("rows/*.parquet", "rows/1.parquet"):
        server.asked.clear()
        before = _resident()
        assert place.reading().read(0, LAST)["x"].read.rows
        asked.append(len(server.asked))
        held.append(_resident() - before)
    listings = asked[0] / (many / 1_000)
    assert listings <= 4, asked
    assert asked[1] <= 24, asked
    assert max(held) <= 200 << 20, held


def _resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_nothing_is_there(server: StoreServer, refused: Refused) -> None:
    landings = {"x": LandingTable(server.at("nothing"), "day")}
    inputs = InputBatches(landings, {"x": ITEM}, no_session, calendar=CALENDAR)
    with refused(DataError, "input"):
        inputs.read(0, 0)


def test_a_store_that_refuses_is_no_fault_of_the_data(
    server: StoreServer, tmp_path: Path, refused: Refused
) -> None:
    for kind in KINDS:
        place = InStore(server, opened(tmp_path / kind, kind), kind)
        place.read(0, 1)
        for said in (
            (403, "AccessDenied"),
            (403, "SignatureDoesNotMatch"),
            (404, "NoSuchBucket"),
        ):
            with (
                server.failing(lambda *_, said=said: said),
                refused(InfrastructureError, "config"),
            ):
                place.reading().read(0, 1)


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "parquet" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS],
)
def test_a_read_that_is_refused_at_any_request_is_an_error_for_people(
    server: StoreServer, tmp_path: Path, kind: str
) -> None:
    place = landed(server, tmp_path, kind)
    expected = place.read(0, LAST)
    server.asked.clear()
    place.inputs.read(0, LAST)
    requests = len(server.asked)
    for at in range(1, requests + 1):
        with server.failing(
            lambda number, *_, at=at: (403, "AccessDenied") if number == at else None
        ):
            try:
                found = place.reading().read(0, LAST)["x"].read
            except InfrastructureError as error:
                assert "have not the right to" in str(error)  # noqa: PT017
            else:
                # What it would have told is held, or another was asked for it.
                assert (found.rows, found.counts) == (expected.rows, expected.counts)
        with server.failing(lambda number, *_, at=at: (503, "SlowDown") if number == at else None):
            found = place.reading().read(0, LAST)["x"].read
            assert (found.rows, found.counts) == (expected.rows, expected.counts)


@pytest.mark.parametrize("kind", KINDS)
def test_whether_a_row_of_the_next_tick_has_landed(
    server: StoreServer, tmp_path: Path, kind: str
) -> None:
    place = landed(server, tmp_path, kind)
    place.sync()
    assert place.inputs.landings.latest("x") == place.local.inputs.landings.latest("x")
    place.local.add([(LAST + 3, "a", 1)])
    place.sync()
    assert place.inputs.landings.latest("x") == place.local.inputs.landings.latest("x")
    if kind in ("parquet", "whole"):
        # Footers that are known are not asked for again.
        server.asked.clear()
        place.inputs.landings.latest("x")
        assert not [path for _, path in server.asked if path.endswith(".parquet")]
