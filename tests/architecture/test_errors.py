"""Every error is written once, and the page of errors has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from hydro_core.errors import CODES, Code
from tools.error_sentences import error_sentences, places_of_sentences
from tools.errors_page import page


def test_every_code_says_what_it_means() -> None:
    assert set(CODES) == set(get_args(Code))
    assert all(says.endswith(".") for says in CODES.values())


def test_the_codes_are_those_there_are() -> None:
    found = error_sentences()
    assert len(found) > 400
    assert {one.code for one in found} == set(CODES)


def test_a_sentence_is_written_in_one_place() -> None:
    assert {says: places for says, places in places_of_sentences().items() if len(places) > 1} == {}


def test_the_page_says_each_error_once() -> None:
    for section in page().split("\n## ")[1:]:
        code, rows = section.split("\n", 1)[0], re.findall(r"(?m)^\| (.*?) \|", section)[2:]
        forms = [re.sub(r"\{[^{}]*\}", "{}", row) for row in rows]
        assert forms, code
        assert len(forms) == len(set(forms)), code
        ends = [row for row in rows if row.endswith(", but the statement ends")]
        assert ends in ([], ["{message}, but the statement ends"]), code


def test_the_language_page_leaves_what_codes_mean_to_the_page_of_errors() -> None:
    text = (Path(__file__).parents[2] / "docs/language.md").read_text("utf-8")
    assert [says for says in CODES.values() if says.rstrip(".") in text] == []


def test_errors_are_found_in_whatever_way_they_are_made() -> None:
    by_code = defaultdict(set)
    for one in error_sentences():
        by_code[one.code].add(one.message)
    assert "`{name}` is not an input" in by_code["input"]  # by `Error.of`
    assert "there is no file `{path}`" in by_code["config"]  # by a function that is given it
    assert "flow `{name}`, `{place}`: nothing is expected" in by_code["config"]  # by a method
    assert "nothing flows into `{name}`" in by_code["port"]  # by a name, on one of two ways
    assert "no column would be left" in by_code["type"]  # by `TypeProblem`
    assert "`{name}` takes at least one argument" in by_code["type"]  # by an entry's type rule


GOLDEN = Path(__file__).parents[1] / "golden"
_LEAST_LITERAL = 6
"""Of so many characters that stand in a sentence it is known."""


def _pattern(message: str) -> re.Pattern[str] | None:
    """What the first line of a sentence looks like; None of one that says nothing of its own."""
    first = message.split("\n", maxsplit=1)[0]
    if len(re.sub(r"\{[^{}]*\}", "", first)) < _LEAST_LITERAL:
        return None
    texts = map(re.escape, re.split(r"\{[^{}]*\}", first))
    return re.compile(".*".join(texts))


def _seen() -> Iterator[tuple[Code, str, str]]:
    """What golden files have of errors: code and first line, and the file."""
    for file in sorted(GOLDEN.rglob("*.txt")):
        for code, message in re.findall(r"(?m)^error\[([\w-]+)\]: (.*)$", file.read_text("utf-8")):
            yield code, message, str(file.relative_to(GOLDEN))


def test_every_error_that_a_test_sees_is_in_the_table() -> None:
    table = defaultdict(list)
    for one in error_sentences():
        table[one.code].append(_pattern(one.message))
    missing, seen = [], 0
    for code, message, file in _seen():
        seen += 1
        # what is wrong with a value or a type is told of an operator, or of a file
        inner = re.sub(r"^`[^`]+`( in tick \d+)?:? ", "", message)
        known = (*((p, message) for p in table[code]), *((p, inner) for p in table[code]))
        of_types = ((p, inner) for p in table["type"] if inner != message)
        if not any(p and p.fullmatch(text) for p, text in (*known, *of_types)):
            missing.append(f"{file}: {code}: {message}")
    assert seen > 600
    assert missing == []
