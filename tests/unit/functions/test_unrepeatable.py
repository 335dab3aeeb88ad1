"""What a Python function reads that is not the same each time is told, with name and place."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
import uuid
from collections.abc import Callable
from datetime import date, datetime
from random import choice
from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.functions.read import read_callable

CHANCE = random.Random(5)
ZONE = os.environ.get("TZ", "UTC")
LIMIT = 3


def helper() -> str:
    return os.environ["HOME"]


def nested(_: Any) -> str:
    return helper()


def imports(_: Any) -> float:
    import time as clock

    return clock.monotonic()


def shadows(time: Any) -> Any:
    return time.time + LIMIT


def calls_itself(n: int) -> int:
    return n if n <= 0 else calls_itself(n - 1)


CHANGING: dict[str, Callable[..., Any]] = {
    "random.random": lambda x: x + random.random(),
    "choice": lambda x: choice([x, 1]),
    "CHANCE.random": lambda x: CHANCE.random() + x,
    "datetime.now": lambda x: (x, datetime.now()),
    "dt.datetime.utcnow": lambda x: (x, dt.datetime.utcnow()),
    "date.today": lambda x: (x, date.today()),
    "time.time_ns": lambda x: x + time.time_ns(),
    "os.environ": lambda x: os.environ[x],
    "os.getpid": lambda x: os.getpid() + x,
    "uuid.uuid4": lambda x: f"{x}{uuid.uuid4()}",
    "hash": lambda x: hash(x) % 7,
    "open": lambda x: open(x).read(),  # noqa: SIM115, PTH123
    "os.environ` in `helper": nested,
    "clock.monotonic": imports,
}
SOUND: list[Callable[..., Any]] = [
    lambda x: os.path.join("a", x),  # noqa: PTH118
    lambda x: (datetime(2024, 1, 1), date.fromisoformat(x), dt.timedelta(days=1)),
    lambda x: time.strptime(x, "%H") and uuid.uuid5(uuid.NAMESPACE_DNS, x).hex,
    lambda random: random.random + LIMIT,
    lambda x: ZONE + x,
    shadows,
    calls_itself,
]


@pytest.mark.parametrize("name", CHANGING)
def test_it_is_told_where_it_stands(name: str) -> None:
    fn = read_callable(CHANGING[name])
    ((used, span),) = fn.unrepeatable
    assert used == name
    assert span is not None
    assert span.file == __file__
    assert used.rpartition("`")[2] in span.first_line
    assert span.first_line[span.column - 1 :].startswith(used.rpartition("`")[2])


@pytest.mark.parametrize("f", SOUND)
def test_what_is_the_same_each_time_is_not_told(f: Callable[..., Any]) -> None:
    assert not read_callable(f).unrepeatable


@pytest.mark.parametrize("f", [random.random, time.time, CHANCE.random])
def test_what_cannot_be_read_is_known_by_its_name(f: Callable[..., Any]) -> None:
    assert [used for used, _ in read_callable(f).unrepeatable] == [f.__name__]


def test_a_flow_warns_of_it() -> None:
    flow = Flow("stamped")
    given = flow.source("a", "v long")
    given.select(at=lambda r: f"{r.v} {time.time()}").sink("out")
    (warning,) = flow.graph().warnings
    assert warning.severity == "warning"
    assert warning.operator == "select"
    assert "uses `time.time`" in warning.message
    assert warning.help.startswith("give it in as data")
    with pytest.warns(UserWarning, match=r"uses `time\.time`"):
        flow.check()
    with pytest.warns(UserWarning, match=r"uses `time\.time`"):
        list(flow.run([{"a": [{"v": 1}]}]))
