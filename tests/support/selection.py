"""Selection of tests: files that an expression of marks can match, and parts of the slow tests.

A run of `make test` takes tests by their marks. Importing the other files takes a quarter of a
minute of each run, so a file that cannot have such a test is not collected: its text names all
marks that its tests have.

`--part K/N` takes the K-th of N parts of the tests that are selected. Parts take equally long by
the seconds of `tests/parts.json`, which has the last run of each part, too. The seconds are
renewed when all N parts have run: between parts of one round, no test changes its part.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, TypeVar

import pytest

QUICK = 3
"""Examples of a property that every run tries; `make test-all` tries all of them."""
LANE_MARKS = ("spark", "dagster", "wheel", "vectors", "slow")
ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "parts.json"
ROUND = ROOT / "build" / "parts"
SECONDS_OF_UNKNOWN = 5.0
_MARKS = re.compile(r"mark\.(\w+)|\b(?:mostly|alternately)_(slow)\(")
_OF_MODULE = re.compile(r"^pytestmark = (?:\[.*?\]|.*?)\n(?!    )", re.MULTILINE | re.DOTALL)


def file_marks(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The marks that every test of a file has, and those that any may have."""
    module = _OF_MODULE.search(text)
    return _marks(module[0] if module else ""), _marks(text)


def _marks(text: str) -> frozenset[str]:
    return frozenset(first or second for first, second in _MARKS.findall(text)) & set(LANE_MARKS)


def mostly_slow(values: Iterable[Any], quick: int | Iterable[Any] = QUICK) -> list[Any]:
    """Parameters of which some are tried in every run, the others in `make test-all`.

    `quick` are these, or how many of the first.
    """
    listed = list(values)
    chosen = listed[:quick] if isinstance(quick, int) else list(quick)
    missing = [value for value in chosen if value not in listed]
    assert not missing, f"no such values: {missing}"
    return [v if v in chosen else pytest.param(v, marks=pytest.mark.slow) for v in listed]


def alternately_slow(*parameters: Iterable[Any]) -> list[Any]:
    """All combinations, of which every run tries as few as have each value once."""
    columns = [list(values) for values in parameters]
    quick = {
        tuple((n + shift) % len(column) for shift, column in enumerate(columns))
        for n in range(max(map(len, columns)))
    }
    return [
        pytest.param(
            *(column[i] for column, i in zip(columns, indices, strict=True)),
            marks=() if indices in quick else pytest.mark.slow,
        )
        for indices in product(*(range(len(column)) for column in columns))
    ]


Name = TypeVar("Name")


def cover(features: Mapping[Name, frozenset[Any]]) -> list[Name]:
    """Names that together have all features: the richest first."""
    left = frozenset[Any]().union(*features.values())
    chosen: list[Name] = []
    while left:
        gains = {name: len(found & left) for name, found in features.items()}
        best = max(gains, key=gains.__getitem__)
        chosen.append(best)
        left -= features[best]
    return chosen


def can_match(expression: str, text: str) -> bool:
    """Whether a test of a file can match an expression of marks; other marks may be either."""
    every, possible = file_marks(text)
    free = set(re.findall(r"\w+", expression)) - {"and", "or", "not", *LANE_MARKS}
    names = sorted((possible - every) | free)
    subsets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    known = {*re.findall(r"\w+", expression), *LANE_MARKS} - {"and", "or", "not"}
    return any(
        eval(expression, {}, {name: name in every or name in chosen for name in known})
        for chosen in subsets
    )


def unnamed_marks(items: Sequence[pytest.Item]) -> list[str]:
    """Tests with a mark that their file does not name: some runs would not collect them."""
    texts: dict[Path, frozenset[str]] = {}
    found = []
    for item in items:
        if item.path not in texts:
            texts[item.path] = file_marks(item.path.read_text(encoding="utf-8"))[1]
        marks = {mark.name for mark in item.iter_markers()} & set(LANE_MARKS)
        if marks - texts[item.path]:
            found.append(item.nodeid)
    return found


def parts_of(ids: Sequence[str], parts: int, seconds: Mapping[str, float]) -> list[list[str]]:
    """The tests in their order, cut into parts that take equally long."""
    costs = [seconds.get(function_of(name), SECONDS_OF_UNKNOWN) for name in ids]
    whole, before = sum(costs) or 1.0, 0.0
    found: list[list[str]] = [[] for _ in range(parts)]
    for name, cost in zip(ids, costs, strict=True):
        found[min(parts - 1, int((before + cost / 2) * parts / whole))].append(name)
        before += cost
    return found


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def recorded() -> dict[str, Any]:
    """The last run of each part, and the seconds of each function."""
    empty: dict[str, Any] = {"runs": {}, "seconds": {}}
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else empty


class Part:
    """A plugin that runs one part, and records how it ended."""

    def __init__(self, part: str) -> None:
        number, _, parts = part.partition("/")
        if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
            raise pytest.UsageError(f"--part {part}: write K/N, from 1/N to N/N")
        self.name, self.number, self.parts = part, int(number), int(parts)
        self.begun = time.monotonic()
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        ids = sorted(item.nodeid for item in items)
        chosen = set(parts_of(ids, self.parts, recorded()["seconds"])[self.number - 1])
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failures.append(report.nodeid)
        if report.when == "call" or (report.when == "setup" and not report.passed):
            self.outcomes[report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        if not self.outcomes:
            return
        record = recorded()
        record["runs"][self.name] = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
            "commit": _commit(),
            **{name: self.outcomes[name] for name in ("passed", "failed", "skipped")},
            "minutes": round((time.monotonic() - self.begun) / 60, 1),
            "failures": self.failures,
        }
        ROUND.mkdir(parents=True, exist_ok=True)
        own = ROUND / f"{self.number}-of-{self.parts}.json"
        own.write_text(json.dumps(self.seconds, indent=1), encoding="utf-8")
        files = [ROUND / f"{number}-of-{self.parts}.json" for number in range(1, self.parts + 1)]
        if all(file.exists() for file in files):
            record["seconds"] = _means(json.loads(f.read_text(encoding="utf-8")) for f in files)
            for file in files:
                file.unlink()
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _means(rounds: Any) -> dict[str, float]:
    """Seconds of a test, by the function."""
    of_function: defaultdict[str, list[float]] = defaultdict(list)
    for seconds in rounds:
        for name, value in seconds.items():
            of_function[function_of(name)].append(value)
    return {name: round(sum(v) / len(v), 2) for name, v in of_function.items()}


def _commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
