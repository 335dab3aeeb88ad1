"""The runs of `make test`: each test is in one of them, and none in two."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support import selection
from tests.support.selection import Part, can_match, parts_of

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def runs() -> list[tuple[str, list[str]]]:
    """The expression of marks of each run of `make test`, and the folders that it is given."""
    variables = dict(re.findall(r"^(\w+) := (.*)$", MAKEFILE, re.MULTILINE))
    recipes = MAKEFILE[MAKEFILE.index("\ntest: ") : MAKEFILE.index("\ntest-all: ")]
    found = re.findall(r'\$\(PYTEST\) -q -m "([^"]+)" ([^;|\n]+?)(?:;| \|\||\n)', recipes)
    return [
        (marks, re.sub(r"\$\((\w+)\)", lambda m: variables[m[1]], folders).split())
        for marks, folders in found
    ]


@pytest.mark.parametrize(
    "marks",
    ["", "spark", "dagster", "spark dagster", "wheel", "spark vectors"],
    ids=lambda marks: marks or "none",
)
def test_whatever_marks_a_test_has_one_run_takes_it(marks: str) -> None:
    known = ("spark", "dagster", "wheel", "vectors", "slow")
    names = {name: name in marks.split() for name in known}
    taken = [run for run, _ in runs() if eval(run, {}, names)]
    assert len(taken) == 1, taken


def test_every_run_is_given_all_tests() -> None:
    assert [given for _, given in runs()] == [["tests"]] * 4


SPARK = "spark and not slow"
UNIT = "not spark and not slow"


@pytest.mark.parametrize(
    ("text", "spark", "unit"),
    [
        ("def test_a(): ...", False, True),
        ("@pytest.mark.spark\ndef test_a(): ...", True, True),
        ("pytestmark = pytest.mark.spark\n\n\ndef test_a(): ...", True, False),
        ("pytestmark = [\n    pytest.mark.spark,\n    pytest.mark.slow,\n]\n", False, False),
        ("pytestmark = pytest.mark.slow\n\n@pytest.mark.spark\ndef test_a(): ...", False, False),
        ("pytestmark = pytest.mark.wheel\n\n@pytest.mark.spark\ndef test_a(): ...", True, True),
    ],
)
def test_a_file_without_tests_for_a_run_is_not_collected(
    text: str, spark: bool, unit: bool
) -> None:
    assert (can_match(SPARK, text), can_match(UNIT, text)) == (spark, unit)


def test_a_mark_of_another_kind_may_be_anywhere() -> None:
    assert can_match("refuses and (spark or dagster)", "@pytest.mark.spark\ndef test_a(): ...")
    assert not can_match("refuses and spark", "def test_a(): ...")


def test_parts_have_every_test_once_in_order_and_take_equally_long() -> None:
    ids = [f"tests/a.py::test_a[{n}]" for n in range(8)] + ["tests/b.py::b", "tests/c.py::c"]
    parts = parts_of(ids, 3, {"tests/a.py::test_a": 1, "tests/b.py::b": 8, "tests/c.py::c": 8})
    assert parts == [ids[:8], ids[8:9], ids[9:]]
    assert [name for part in parts_of(ids, 7, {}) for name in part] == ids


@pytest.mark.parametrize("part", ["0/8", "9/8", "3", "a/b", "3/"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="--part"):
        Part(part)


def test_a_round_of_parts_renews_the_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "RECORD", tmp_path / "parts.json")
    monkeypatch.setattr(selection, "ROUND", tmp_path / "round")
    for part, duration, outcome in (("1/2", 2.0, "passed"), ("2/2", 4.0, "failed")):
        ran = Part(part)
        report = pytest.TestReport(
            f"a.py::a[{part}]", ("a.py", 1, "a"), {}, outcome, None, "call", duration=duration
        )  # type: ignore[arg-type]
        assert selection.recorded()["seconds"] == {}
        ran.pytest_runtest_logreport(report)
        ran.pytest_sessionfinish()
    record = selection.recorded()
    assert record["seconds"] == {"a.py::a": 3.0}
    assert [(r["passed"], r["failed"]) for r in record["runs"].values()] == [(1, 0), (0, 1)]
    assert record["runs"]["2/2"]["failures"] == ["a.py::a[2/2]"]


def test_what_would_be_done_is_shown_and_not_done(tmp_path: Path) -> None:
    """`make -n` does what a line says that names make: the lanes are not called so."""
    python, begun = tmp_path / "python", tmp_path / "begun"
    python.write_text(f"#!/bin/sh\ntouch {begun}\n")
    python.chmod(0o755)
    words = ["make", "-n", "SETUP=", f"PY={python}", "test"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "second-lane" in done.stdout
    assert not begun.exists()
