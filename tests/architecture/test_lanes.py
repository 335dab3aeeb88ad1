"""The runs of `make test`: each test is in one of them, and none in two."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("mark", ["dagster", "vectors", "wheel"])
def test_a_run_is_given_where_its_marks_are(mark: str) -> None:
    (places,) = (given for marks, given in runs() if re.match(rf"\(?(\w+ or )?{mark}\b", marks))
    with_mark = {
        file.relative_to(ROOT)
        for file in (ROOT / "tests").rglob("*.py")
        if re.search(rf"mark\.{mark}\b", file.read_text(encoding="utf-8"))
    }
    assert with_mark
    assert [f for f in with_mark if not any(f.is_relative_to(place) for place in places)] == []
    assert all((ROOT / place).exists() for place in places)


def test_the_others_are_given_all() -> None:
    others = [given for marks, given in runs() if not marks.startswith(("(dagster", "wheel"))]
    assert others == [["tests"], ["tests"]]


def test_what_would_be_done_is_shown_and_not_done(tmp_path: Path) -> None:
    """`make -n` does what a line says that names make: the lanes are not called so."""
    python, begun = tmp_path / "python", tmp_path / "begun"
    python.write_text(f"#!/bin/sh\ntouch {begun}\n")
    python.chmod(0o755)
    words = ["make", "-n", "SETUP=", f"PY={python}", "test"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "second-lane" in done.stdout
    assert not begun.exists()
