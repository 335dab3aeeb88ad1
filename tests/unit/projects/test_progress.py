"""How far a backfill is, on a terminal and without one."""

from __future__ import annotations

import io

import pytest

from hydrotick.cli import backfill
from hydrotick.cli.backfill import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(backfill.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_where_there_is_no_terminal(clock: list[float]) -> None:
    to = io.StringIO()
    shown = Progress(300, to)
    with shown.shown():
        clock[0] += 20
        shown.done("a to b", 100, 4000, 20.0)
        clock[0] += 5
        shown.done("c to d", 100, 3000, 5.0)
        shown.say("2 rows came late")
        clock[0] += 5
        shown.done("e to f", 100, 3000, 5.0)
    # The first range waited for Spark: what is left goes by the others.
    assert to.getvalue().splitlines() == [
        (
            "a to b: 100 tick(s) committed in 20.0 s; "
            "100 of 300 done, 4,000 rows read, 5.0 ticks/s, 0:40 left"
        ),
        (
            "c to d: 100 tick(s) committed in 5.0 s; "
            "200 of 300 done, 7,000 rows read, 20.0 ticks/s, 0:05 left"
        ),
        "2 rows came late",
        "e to f: 100 tick(s) committed in 5.0 s; 300 of 300 done, 10,000 rows read, 20.0 ticks/s",
    ]


def test_one_line_on_a_terminal(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "_SECONDS", 600)
    to = Terminal()
    shown = Progress(4000, to)
    with shown.shown():
        clock[0] += 10
        shown.done("a", 1000, 7, 10.0)
        shown.say("2 rows came late")
        clock[0] += 3600
        shown.done("b", 1000, 7, 10.0)
    written = [line for line in to.getvalue().split("\r\033[K") if line]
    says = [
        "1,000 of 4,000 ticks, 7 rows read, 100.0 ticks/s, 0:30 left, 0:10 so far",
        "2,000 of 4,000 ticks, 14 rows read, 0.3 ticks/s, 2:00:00 left, 1:00:10 so far",
    ]
    assert written == [
        f"{'█' * 6}{'·' * 18} {says[0]}",
        "2 rows came late\n",
        f"{'█' * 12}{'·' * 12} {says[1]}",
    ]
    assert to.getvalue().endswith("\r\033[K")


def test_the_line_follows_the_clock() -> None:
    import time

    to = Terminal()
    with Progress(10, to).shown():
        time.sleep(1.3)
    assert to.getvalue().count("0 of 10 ticks, 0 rows read, 0:0") == 2
