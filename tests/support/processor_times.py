"""Processor seconds of each test, of this process and those that it starts, as Spark's JVM.

PROCESSOR_TIMES=times.jsonl python -m pytest -p tests.support.processor_times …   records them
python -m tests.support.processor_times times.jsonl                             prints a table

Unlike the times of `--durations`, they are comparable when others use the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

DEAREST = 40


def _seconds() -> float:
    """Processor seconds of this process and its children so far, ended children included."""
    process = psutil.Process()
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            total += sum(one.cpu_times()[:4])
        except psutil.Error:
            continue
    return total


class _Recorder:
    def __init__(self, file: Path) -> None:
        self.file = file.open("a", encoding="utf-8")
        self.before = _seconds()

    def _record(self, name: str) -> None:
        now = _seconds()
        # The times of a child that ends by itself are those of nobody.
        seconds = max(0.0, now - self.before)
        print(json.dumps([name, round(seconds, 3)]), file=self.file, flush=True)
        self.before = now

    def pytest_collection_finish(self) -> None:
        self._record("collection")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        finally:
            self._record(item.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Recorder(Path(os.environ["PROCESSOR_TIMES"])))


def table(lines: list[str]) -> str:
    """Seconds and tests by folder, and the dearest tests."""
    times: list[tuple[str, float]] = [tuple(json.loads(line)) for line in lines]
    seconds, tests = Counter[str](), Counter[str]()
    for name, taken in times:
        folder = name.partition("::")[0].rpartition("/")[0] or name
        seconds[folder] += taken  # type: ignore[assignment]
        tests[folder] += 1
    rows = [f"{taken:9.1f} {tests[name]:6} {name}" for name, taken in seconds.most_common()]
    dearest = sorted(times, key=lambda time: -time[1])[:DEAREST]
    return "\n".join([*rows, "", *(f"{taken:9.1f} {name}" for name, taken in dearest)])


if __name__ == "__main__":
    print(table(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))  # noqa: T201
